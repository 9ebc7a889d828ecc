import { setTimeout as sleep } from 'node:timers/promises'
import type { LeaseHistory, LeaseList } from '@pool/contract/lease'
import { type Operation, summarizeHistory } from '@pool/test-kit/linearizability/history.ts'
import { chooseClockStep, SteppedClock } from '@pool/test-kit/linearizability/witness-clock.ts'
import { shouldSkip } from '@pool/test-kit/optional-deps.ts'
import { until } from '@pool/test-kit/poll.ts'
import { createPrng } from '@pool/test-kit/prng.ts'
import { createProcessClock, missingProcessClock, type ProcessClock } from '@pool/test-kit/process-clock.ts'
import { proofSize, reportProof } from '@pool/test-kit/proof-size.ts'
import { type Service, startLocalWitness } from '@pool/test-kit/services.ts'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { MIN_NOTICED_MS } from '../../src/object/domain/clock.ts'
import { type Client, type ClientResponse, createClient, parseLease, writeLease } from './support/client.ts'
import { expectLinearizable, HISTORY_SLOTS, recordHistory } from './support/record-history.ts'
import { untilWaiting } from './support/waiter.ts'
import { temporaryDirectory } from './support/witness.ts'

const OPERATIONS = proofSize(100_000, 1_000)
const HOUR = 3_600_000
const TTL_SECONDS = 3
const POLL_MS = 1_000
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
    witness = await startLocalWitness(directory.path, clock.env)
    client = createClient(witness.port, HISTORY_SLOTS.length)
  })
  afterAll(async () => {
    client?.[Symbol.dispose]()
    await witness?.[Symbol.asyncDispose]()
    clock?.[Symbol.dispose]()
    directory[Symbol.dispose]()
  })

  /** Acquires a slot for region-a by the right clock. */
  const acquire = async (slot: string, ttlSeconds: number): Promise<void> => {
    clock.setAhead(0)
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

  const readCopy = async (slot: string): Promise<string | undefined> => {
    const { leases }: LeaseList = JSON.parse((await client.send('GET', `/leases?prefix=${slot}`)).text)
    return leases.find(lease => lease.slot === slot)?.holder
  }

  const readEvents = async (slot: string): Promise<string[]> => (await readTransitions(slot)).map(({ event }) => event)

  test('set back by 20 s at a renewal, then right: the lease is as long as acknowledged', async () => {
    await acquire('bridged', 2)
    clock.setAhead(-20_000)
    const renewal = await writeLease(client, 'region-a', 'bridged', 1, { op: 'renew', ttlSeconds: 2 })
    expect(renewal.status).toBe(200)
    const { acquiredAt } = parseLease(renewal)
    clock.setAhead(0)
    while ((await takeOver('bridged', 2)).status === 412) await sleep(20)
    const takenOver = parseLease(await client.send('GET', '/lease/bridged'))
    expect(Date.parse(takenOver.acquiredAt) - Date.parse(acquiredAt)).toBeGreaterThanOrEqual(2_000)
    expect(await readEvents('bridged')).not.toContain('clock-set-back')
  })

  test('set back by an hour: a dead holder blocks its slot for one TTL, although polls keep its object in memory', async () => {
    await acquire('dead-holder', TTL_SECONDS)
    clock.setAhead(-HOUR)
    const setBackAt = performance.now()
    let rejections = 0
    while ((await takeOver('dead-holder', 1)).status === 412) {
      rejections += 1
      await sleep(POLL_MS)
    }
    const tookMs = performance.now() - setBackAt
    expect(rejections).toBeLessThanOrEqual((TTL_SECONDS * 1_000) / POLL_MS + 1)
    const [acquired, restart, ...older] = await readTransitions('dead-holder')
    expect([acquired, restart, ...older].map(transition => transition?.event)).toEqual([
      'acquired',
      'clock-set-back',
      'acquired',
    ])
    const waitedMs = Date.parse(acquired?.at ?? '') - Date.parse(restart?.at ?? '')
    expect(waitedMs).toBeGreaterThanOrEqual(TTL_SECONDS * 1_000)
    // An alarm of the stopped clock would be an hour late.
    await until('the copy in Workers KV has the new holder', async () => (await readCopy('dead-holder')) === 'region-b')
    const copiedMs = performance.now() - setBackAt - tookMs
    reportProof(
      `a step back of an hour: taken over after ${tookMs.toFixed(0)} ms, copied ${copiedMs.toFixed(0)} ms later`,
    )
  })

  test('set back by an hour: a standby that waits acquires too', async () => {
    await acquire('waited-for', TTL_SECONDS)
    const wait = () => client.send('GET', '/lease/waited-for?until=vacant', { Prefer: 'wait=25' })
    const interrupted = wait()
    await untilWaiting(client, 'waited-for', 1)
    clock.setAhead(-HOUR)
    // At the end of the TTL its object restarts.
    expect((await interrupted).status).toBe(503)
    expect((await wait()).status).toBe(200)
    expect((await takeOver('waited-for', 1)).status).toBe(200)
    expect(await readEvents('waited-for')).toContain('clock-set-back')
  })

  test('set back by an hour between two tenures: acquiredAt increases', async () => {
    await acquire('tenures', 30)
    const { acquiredAt } = parseLease(await client.send('GET', '/lease/tenures'))
    clock.setAhead(-HOUR)
    expect((await writeLease(client, 'region-a', 'tenures', 1, 'release')).status).toBe(204)
    const next = parseLease(await takeOver('tenures', 2))
    expect(Date.parse(next.acquiredAt)).toBe(Date.parse(acquiredAt) + 1)
  })

  test('set forward by an hour: leases expire, and the generation continues', async () => {
    await acquire('forward', 30)
    clock.setAhead(HOUR)
    expect(parseLease(await takeOver('forward', 1))).toMatchObject({ holder: 'region-b', generation: 2 })
  })

  test('set forward and back by up to an hour at random: the history is linearizable', {
    timeout: LOAD_TIMEOUT_MS + 60_000,
  }, async () => {
    clock.setAhead(0)
    const stepped = new SteppedClock({ errorMs: MIN_NOTICED_MS })
    const prng = createPrng(seed)
    /** A call during the step can be decided by the time of the last one of its slot, which the reads make a recent one. */
    const setAfterReads = async (aheadMs: number) => {
      await Promise.all(HISTORY_SLOTS.map(slot => client.send('GET', `/lease/${slot}`)))
      clock.setAhead(aheadMs)
    }
    const stop = new AbortController()
    const firstSteps = [...FIRST_STEPS]
    let hasRestarted = false
    const steps = (async () => {
      while (!stop.signal.aborted) {
        await sleep(prng.below(MAX_STEP_INTERVAL_MS))
        const aheadMs = firstSteps.shift() ?? chooseClockStep(prng)
        await stepped.step(aheadMs, setAfterReads)
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
