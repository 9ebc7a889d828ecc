import { setTimeout as sleep } from 'node:timers/promises'
import type { Lease, LeaseList } from '@pool/contract/lease'
import { hasProc, untilGone, WITHOUT_PROC, workerdOf } from '@pool/test-kit/processes.ts'
import { expect, test } from 'vitest'
import { type Client, createClient, leaseOf } from './support/client.ts'
import { median, ms, print } from './support/figures.ts'
import { Ledger } from './support/ledger.ts'
import { look, runController, type Tally, writeOf } from './support/load.ts'
import { type RunningWitness, startWitness, temporaryFolder } from './support/witness.ts'

const KILLS_OF_WORKERD = 20
const KILLS_OF_ALL = 3
const slots = Array.from({ length: 20 }, (_, index) => `busy/${index}`)
/** Their last write is a renewal, which is copied a minute after the copy before it. */
const renewed = ['kept/0', 'kept/1', 'kept/2']

const leasesIn = async (client: Client) => {
  const { text } = await client.send('GET', '/leases')
  const { leases }: LeaseList = JSON.parse(text)
  return new Map(leases.map(({ slot, ...lease }) => [slot, lease]))
}

/** The slots whose copy differs from their object. */
const differing = async (client: Client, of: readonly string[]): Promise<string[]> => {
  const copies = await leasesIn(client)
  const differences: string[] = []
  for (const slot of of) {
    const lease = leaseOf(await client.send('GET', `/lease/${encodeURIComponent(slot)}`))
    const copy = copies.get(slot)
    const isEqual =
      copy !== undefined && Object.entries(lease).every(([name, value]) => Reflect.get(copy, name) === value)
    if (!isEqual) differences.push(`${slot}: ${JSON.stringify(lease)}, in KV ${JSON.stringify(copy)}`)
  }
  return differences
}

/** Milliseconds until the copies of some slots are what their objects are. */
const untilCopied = async (client: Client, of: readonly string[], withinMs: number): Promise<number> => {
  const started = performance.now()
  for (let left = await differing(client, of); left.length > 0; left = await differing(client, of)) {
    if (performance.now() - started > withinMs) throw new Error(`after ${withinMs} ms:\n${left.join('\n')}`)
    await sleep(100)
  }
  return performance.now() - started
}

/** Sees to it that `by` holds every slot, or has just held it: each gets a new holder, whose copy is due at once. */
const takeOver = async (client: Client, ledger: Ledger, by: string): Promise<void> => {
  for (const slot of slots) {
    for (;;) {
      const { holder, generation } = await look(client, ledger, slot)
      if (holder === by) break
      const answer = await writeOf(client, by, slot, generation, { op: 'acquire', ttlSeconds: 1 })
      // The lease of a controller that has stopped ends within its two seconds.
      if (answer.status === 412) await sleep(100)
    }
  }
}

const releaseHalf = async (client: Client, ledger: Ledger, by: string): Promise<void> => {
  for (const slot of slots.filter((_, index) => index % 2 === 0)) {
    const { generation } = await look(client, ledger, slot)
    expect((await writeOf(client, by, slot, generation, 'release')).status).toBe(204)
  }
}

/** Takes over every slot in one moment, and calls `kill` when half of that is acknowledged. Returns that half. */
const takeOverUnder = async (client: Client, ledger: Ledger, by: string, kill: () => Promise<void>) => {
  const leases = new Map<string, Lease>()
  for (const slot of slots) leases.set(slot, await look(client, ledger, slot))
  const ends = [...leases.values()].map(({ expiresAt }) => Date.parse(expiresAt) || 0)
  await sleep(Math.max(0, Math.max(...ends) - Date.now()) + 20)
  const half = Promise.withResolvers<void>()
  const acknowledged: string[] = []
  const writes = [...leases].map(async ([slot, { generation }]) => {
    const answer = await writeOf(client, by, slot, generation, { op: 'acquire', ttlSeconds: 1 }).catch(() => undefined)
    if (answer?.status !== 200) return
    ledger.told(slot, leaseOf(answer), generation)
    acknowledged.push(slot)
    if (acknowledged.length >= slots.length / 2) half.resolve()
  })
  await Promise.race([half.promise, Promise.all(writes)])
  await kill()
  await Promise.all(writes)
  return acknowledged
}

const workerdPid = async (witness: RunningWitness): Promise<number> => {
  for (let tries = 0; tries < 500; tries += 1) {
    const pid = workerdOf(witness.process.pid)
    if (pid !== undefined) return pid
    await sleep(10)
  }
  throw new Error(`no workerd runs:\n${witness.lines.join('\n')}`)
}

const answers = async (port: number): Promise<void> => {
  using client = createClient(port)
  await look(client, new Ledger(), 'nobody/asked')
}

test.runIf(hasProc)('kills under write load lose nothing that was acknowledged', async () => {
  using folder = temporaryFolder()
  const ledger = new Ledger()
  const tally: Tally = { acknowledged: 0, refused: 0, applied: 0, notApplied: 0 }
  const restarts: number[] = []
  const fullRestarts: number[] = []
  let witness = await startWitness(folder.path)
  const { port } = witness
  using client = createClient(port, slots.length)
  try {
    for (const slot of renewed) {
      for (const [generation, op] of (['acquire', 'renew', 'renew'] as const).entries()) {
        const answer = await writeOf(client, 'keeper', slot, generation, { op, ttlSeconds: 3_600 })
        ledger.told(slot, leaseOf(answer), generation)
        // The first copy lands between, so that the renewals come after it.
        if (op === 'acquire') await untilCopied(client, [slot], 5_000)
      }
    }
    const lastRenewal = performance.now()

    const underLoad = async (kill: () => Promise<void>, kills: number) => {
      const stop = new AbortController()
      const controllers = Array.from({ length: 12 }, (_, index) =>
        runController(port, `controller-${index}`, slots, ledger, tally, stop.signal),
      )
      const load = Promise.all(controllers)
      // A controller that fails ends the run at its end, with its reason.
      load.catch(() => {})
      for (let n = 0; n < kills; n += 1) {
        await sleep(120 + Math.random() * 120)
        const floors = slots.map(slot => ledger.floorOf(slot))
        await kill()
        for (const [index, slot] of slots.entries()) {
          const { generation } = await look(client, ledger, slot)
          expect(generation, slot).toBeGreaterThanOrEqual(floors[index] ?? 0)
        }
      }
      stop.abort()
      await load
    }

    const killWorkerd = async () => {
      const pid = await workerdPid(witness)
      const killed = performance.now()
      process.kill(pid, 'SIGKILL')
      await untilGone(pid, 5_000)
      await answers(port)
      restarts.push(performance.now() - killed)
    }
    await underLoad(killWorkerd, KILLS_OF_WORKERD - 1)
    // What is due is copied by the next workerd, whatever the last one had begun.
    const acknowledged = await takeOverUnder(client, ledger, 'last-of-workerd', killWorkerd)
    expect(acknowledged.length).toBeGreaterThanOrEqual(slots.length / 2)
    const copiedAfter = await untilCopied(client, acknowledged, 15_000)
    await takeOver(client, ledger, 'last-of-workerd')
    await untilCopied(client, slots, 15_000)

    await underLoad(async () => {
      const pid = await workerdPid(witness)
      const killed = performance.now()
      await witness.process.kill()
      await untilGone(pid, 5_000)
      witness = await startWitness(folder.path, { PORT: String(port) })
      await answers(port)
      fullRestarts.push(performance.now() - killed)
    }, KILLS_OF_ALL)
    await takeOver(client, ledger, 'last-of-all')
    await releaseHalf(client, ledger, 'last-of-all')
    await untilCopied(client, slots, 15_000)

    await untilCopied(client, renewed, 65_000 - (performance.now() - lastRenewal))
    const renewalsCopiedAfter = performance.now() - lastRenewal
    for (const slot of [...slots, ...renewed]) await look(client, ledger, slot)
    expect(ledger.faults).toEqual([])
    expect(tally.acknowledged).toBeGreaterThan(1_000)

    print('kills under write load', [
      ['SIGKILLs of workerd', restarts.length],
      ['  until it answers again, median ms', ms(median(restarts))],
      ['  until it answers again, worst ms', ms(Math.max(...restarts))],
      ['SIGKILLs of the whole witness', fullRestarts.length],
      ['  until it answers again, median ms', ms(median(fullRestarts))],
      ['acknowledged writes', tally.acknowledged],
      ['refused writes (412)', tally.refused],
      ['unanswered writes found applied', tally.applied],
      ['unanswered writes found not applied', tally.notApplied],
      ['KV equals the objects after the last kill, ms', ms(copiedAfter)],
      ['KV has the renewals, ms after the last one', ms(renewalsCopiedAfter)],
    ])
  } finally {
    await witness.process.stop()
  }
})

if (!hasProc) test.skip(`kills: ${WITHOUT_PROC}`)
