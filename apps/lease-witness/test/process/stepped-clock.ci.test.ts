import { setTimeout as sleep } from 'node:timers/promises'
import type { LeaseHistory } from '@pool/contract/lease'
import { type Operation, summarizeHistory } from '@pool/test-kit/linearizability/history.ts'
import { chooseClockStep, SteppedClock } from '@pool/test-kit/linearizability/witness-clock.ts'
import { shouldSkip } from '@pool/test-kit/optional-deps.ts'
import { createPrng } from '@pool/test-kit/prng.ts'
import { createProcessClock, missingProcessClock, type ProcessClock } from '@pool/test-kit/process-clock.ts'
import { proofSize, reportProof } from '@pool/test-kit/proof-size.ts'
import type { Service } from '@pool/test-kit/services.ts'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Client, type ClientResponse, createClient, parseLease, writeLease } from './support/client.ts'
import { expectLinearizable, HISTORY_SLOTS, recordHistory } from './support/record-history.ts'
import { startRestartableWitness, temporaryDirectory } from './support/witness.ts'

/** An everyday run is a smoke test: each operation takes several milliseconds, because objects restart all the time. */
const OPERATIONS = proofSize(100_000, 1_000)
const HOUR = 3_600_000
const MAX_STEP_INTERVAL_MS = 1_000
/** The first steps, so that leases start again in every history. */
const FIRST_STEPS = [HOUR, -HOUR]
/** Far more than a busy machine needs. */
const LOAD_TIMEOUT_MS = 120_000 + 30 * OPERATIONS

/** Different in every run, and printed with every failure. */
const seed = Date.now() % 2 ** 31

const isSkipped = shouldSkip(missingProcessClock)

describe.skipIf(isSkipped)('the clock of a running workerd', () => {
  const directory = temporaryDirectory()
  let clock: ProcessClock
  let witness: Service
  let client: Client

  beforeAll(async () => {
    clock = createProcessClock()
    witness = await startRestartableWitness(directory.path, clock.env)
    client = createClient(witness.port, HISTORY_SLOTS.length)
  })
  afterAll(async () => {
    client?.[Symbol.dispose]()
    await witness?.[Symbol.asyncDispose]()
    clock?.[Symbol.dispose]()
    directory[Symbol.dispose]()
  })

  /**
   * Restarts the objects: while an object is in memory, its clock does not go back behind its last event. A read makes that
   * event a recent one.
   */
  const setAhead = async (aheadMs: number, slots: readonly string[]): Promise<void> => {
    await Promise.all(slots.map(slot => client.send('GET', `/lease/${slot}`)))
    clock.setAhead(aheadMs)
    await Promise.all(slots.map(slot => client.send('POST', `/restart/${slot}`)))
  }

  /** Acquires a slot for region-a by the right clock. */
  const acquire = async (slot: string, ttlSeconds: number): Promise<void> => {
    await setAhead(0, [slot])
    expect((await writeLease(client, 'region-a', slot, 0, { op: 'acquire', ttlSeconds })).status).toBe(200)
  }

  const takeOver = (slot: string, generation: number): Promise<ClientResponse> =>
    writeLease(client, 'region-b', slot, generation, { op: 'acquire', ttlSeconds: 30 })

  /** Empty if the slot was never written, or is unavailable during a restart of its object. */
  const readTransitions = async (slot: string): Promise<LeaseHistory['transitions']> => {
    const { status, text } = await client.send('GET', `/history/${slot}`)
    if (status !== 200) return []
    const history: LeaseHistory = JSON.parse(text)
    return history.transitions
  }

  const readEvents = async (slot: string): Promise<string[]> => (await readTransitions(slot)).map(({ event }) => event)

  test('set back by 20 s at a renewal, then right: the lease is as long as acknowledged', async () => {
    await acquire('bridged', 2)
    await setAhead(-20_000, ['bridged'])
    const renewal = await writeLease(client, 'region-a', 'bridged', 1, { op: 'renew', ttlSeconds: 2 })
    expect(renewal.status).toBe(200)
    const { acquiredAt } = parseLease(renewal)
    await setAhead(0, ['bridged'])
    while ((await takeOver('bridged', 2)).status === 412) await sleep(20)
    const takenOver = parseLease(await client.send('GET', '/lease/bridged'))
    expect(Date.parse(takenOver.acquiredAt) - Date.parse(acquiredAt)).toBeGreaterThanOrEqual(2_000)
    expect(await readEvents('bridged')).not.toContain('clock-set-back')
  })

  test('set back by an hour: a dead holder blocks its slot for one TTL', async () => {
    await acquire('dead-holder', 1)
    await setAhead(-HOUR, ['dead-holder'])
    expect((await takeOver('dead-holder', 1)).status).toBe(412)
    const [restart] = await readTransitions('dead-holder')
    const { expiresAt } = parseLease(await client.send('GET', '/lease/dead-holder'))
    expect(Date.parse(expiresAt) - Date.parse(restart?.at ?? '')).toBe(1_000)
    while ((await takeOver('dead-holder', 1)).status === 412) await sleep(20)
    expect(await readEvents('dead-holder')).toEqual(['acquired', 'clock-set-back', 'acquired'])
  })

  test('set back by an hour between two tenures: acquiredAt increases', async () => {
    await acquire('tenures', 30)
    const { acquiredAt } = parseLease(await client.send('GET', '/lease/tenures'))
    await setAhead(-HOUR, ['tenures'])
    expect((await writeLease(client, 'region-a', 'tenures', 1, 'release')).status).toBe(204)
    const next = parseLease(await takeOver('tenures', 2))
    expect(Date.parse(next.acquiredAt)).toBe(Date.parse(acquiredAt) + 1)
  })

  test('set forward by an hour: leases expire, and the generation continues', async () => {
    await acquire('forward', 30)
    await setAhead(HOUR, ['forward'])
    expect(parseLease(await takeOver('forward', 1))).toMatchObject({ holder: 'region-b', generation: 2 })
  })

  test('set forward and back by up to an hour at random: the history is linearizable', {
    timeout: LOAD_TIMEOUT_MS + 60_000,
  }, async () => {
    await setAhead(0, [])
    const stepped = new SteppedClock({ standsStill: true })
    const prng = createPrng(seed)
    const stop = new AbortController()
    const firstSteps = [...FIRST_STEPS]
    let hasRestarted = false
    const steps = (async () => {
      while (!stop.signal.aborted) {
        await sleep(prng.below(MAX_STEP_INTERVAL_MS))
        const aheadMs = firstSteps.shift() ?? chooseClockStep(prng)
        await stepped.step(aheadMs, ms => setAhead(ms, HISTORY_SLOTS))
        if (hasRestarted) continue
        const events = await Promise.all(HISTORY_SLOTS.map(readEvents))
        hasRestarted = events.flat().includes('clock-set-back')
      }
    })()
    const options = {
      ports: [witness.port],
      operations: OPERATIONS,
      isComplete: () => hasRestarted,
      seed,
      timeoutMs: LOAD_TIMEOUT_MS,
      clock: stepped,
    }
    const history: Operation[] = await recordHistory(options).finally(() => stop.abort())
    await steps
    reportProof(`linearizability in workerd, seed ${seed}, ${stepped.steps} steps: ${summarizeHistory(history)}`)
    expect(history.length).toBeGreaterThanOrEqual(OPERATIONS)
    expect(hasRestarted, 'a lease started again').toBe(true)
    expectLinearizable(history, seed, stepped)
  })
})
