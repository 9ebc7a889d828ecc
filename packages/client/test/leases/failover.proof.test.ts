import { until } from '@pool/test-kit/poll.ts'
import { proofSize, reportProof } from '@pool/test-kit/proof-size.ts'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type CandidateProcess, type Observer, startCandidate, startObserver } from './support/candidates.ts'
import { type RunningWitness, startWitness } from './support/witness.ts'

const DURATIONS = { leaseDuration: 6_000, renewDeadline: 4_000, retryPeriod: 1_000 } as const
/** Failovers for each row of the table. Each takes six seconds, whatever the machine does. */
const SAMPLES = proofSize(40, 10)

/** Far more than a busy machine needs. */
const TIMEOUT_MS = 120_000

interface Leader {
  readonly identity: string
  readonly since: number
}

interface Failover {
  readonly slot: string
  /** When the process was killed, or the observer saw the callback of the former leader. */
  readonly from: number
  readonly to: number
}

/** Each line of the log as its fields. */
const parseLog = (observer: Observer) =>
  observer
    .readLog()
    .split('\n')
    .filter(Boolean)
    .map(line => line.split(' '))

/** The current leader of each slot. */
const findLeaders = (observer: Observer): Map<string, Leader> => {
  const leaders = new Map<string, Leader>()
  for (const [at, identity = '', event, slot = ''] of parseLog(observer)) {
    if (event === 'start') leaders.set(slot, { identity, since: Number(at) })
    if (event === 'stop' && leaders.get(slot)?.identity === identity) leaders.delete(slot)
  }
  return leaders
}

const toProcessName = (identity: string): string => identity.split('.')[0] ?? ''

const percentile = (values: readonly number[], part: number): number => {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))] ?? Number.NaN
}

/** CLOCK_MONOTONIC, as in the observer. */
const now = () => Number(process.hrtime.bigint()) / 1e6

describe('failover', () => {
  let witness: RunningWitness

  beforeAll(async () => {
    witness = await startWitness()
  })
  afterAll(async () => {
    await witness?.[Symbol.asyncDispose]()
  })

  test.each([
    { candidates: 2, processes: 2, slots: 20, ending: 'SIGKILL' },
    { candidates: 2, processes: 2, slots: 20, ending: 'an orderly stop' },
    { candidates: 100, processes: 10, slots: 4, ending: 'SIGKILL' },
    { candidates: 100, processes: 10, slots: 4, ending: 'an orderly stop' },
  ])('$candidates candidates, $ending', { timeout: 120_000 + 10_000 * SAMPLES }, async row => {
    const { candidates, processes, ending } = row
    const run = `${candidates}-${ending.replaceAll(' ', '-')}`
    const slots = Array.from({ length: row.slots }, (_, index) => `${run}/${index}`)
    await using running = new AsyncDisposableStack()
    const observer = running.use(await startObserver())
    let starts = 0
    const start = async (): Promise<CandidateProcess> => {
      starts += 1
      return running.use(
        await startCandidate({
          name: `process-${starts}`,
          url: `http://127.0.0.1:${witness.port}`,
          token: witness.token,
          slots,
          pipe: observer.pipe,
          durations: DURATIONS,
          candidatesPerSlot: candidates / processes,
        }),
      )
    }
    const current = new Set(await Promise.all(Array.from({ length: processes }, start)))
    const failovers: Failover[] = []
    while (failovers.length < SAMPLES) {
      const leaders = await until(
        'every slot has a leader',
        () => {
          const found = findLeaders(observer)
          return found.size === slots.length && found
        },
        TIMEOUT_MS,
      )
      const ledBy = Map.groupBy(leaders, ([, { identity }]) => toProcessName(identity))
      const victim = [...current].reduce((a, b) =>
        (ledBy.get(a.name)?.length ?? 0) >= (ledBy.get(b.name)?.length ?? 0) ? a : b,
      )
      const led = (ledBy.get(victim.name) ?? []).map(([slot]) => slot)
      const endedAt = now()
      if (ending === 'SIGKILL') victim.signal('SIGKILL')
      else void victim.stop()
      current.delete(victim)
      for (const slot of led) {
        const to = await until(
          `${slot} has a new leader`,
          () => {
            const leader = findLeaders(observer).get(slot)
            return leader !== undefined && leader.since > endedAt && leader.since
          },
          TIMEOUT_MS,
        )
        const stopped = parseLog(observer).findLast(
          ([at, identity = '', event, name]) =>
            event === 'stop' && name === slot && toProcessName(identity) === victim.name && Number(at) >= endedAt,
        )
        // Without a callback, the leader changed in between.
        const from = ending === 'SIGKILL' ? endedAt : stopped && Number(stopped[0])
        if (from !== undefined) failovers.push({ slot, from, to })
      }
      current.add(await start())
    }
    const times = failovers.map(({ from, to }) => to - from)
    const { leaseDuration, retryPeriod } = DURATIONS
    const limit =
      ending === 'SIGKILL'
        ? `limit: expiry ${leaseDuration - retryPeriod} to ${leaseDuration} ms after the kill, median ${leaseDuration - retryPeriod / 2} ms`
        : 'limit: two requests'
    reportProof(
      `failover, ${candidates} candidates, ${ending}: ${times.length} failovers, median ${percentile(times, 0.5).toFixed(0)} ms, p99 ${percentile(times, 0.99).toFixed(0)} ms; ${limit}`,
    )
    expect(times.every(ms => ms > 0)).toBe(true)
  })
})
