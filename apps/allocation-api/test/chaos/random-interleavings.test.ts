import { lacksPowerdns, startPowerdns } from '@pool/test-kit/dns/powerdns.ts'
import { shouldSkip } from '@pool/test-kit/optional-deps.ts'
import { timed } from '@pool/test-kit/poll.ts'
import { describe, expect, test } from 'vitest'
import { missingDsn, testDsn } from '../support/database.ts'
import { powerdnsHostOn, type StartZoneHost, startDynadotHost, startLocalHost } from '../support/random/hosts.ts'
import { runInterleaving } from '../support/random/interleaving.ts'
import { createLane } from '../support/random/worker.ts'

if (!testDsn) process.stderr.write(`${missingDsn}\n`)

/** `17` or `1-500`: these seeds and no others. */
const wanted = process.env.PDM_TEST_SEEDS
/** One that forgets what it once wrote fails in every sixth of them; PDM_TEST_SEEDS runs more. */
const SEEDS = 500
const LANES = 6
/** So many are told in full; more would hide them. */
const MOST_TOLD = 3

const seedsOf = (count: number): number[] => {
  const [from = 1, to = from] = (wanted ?? `1-${count}`).split('-').map(Number)
  return Array.from({ length: to - from + 1 }, (_, i) => from + i)
}

const runAll = async (kind: string, seeds: readonly number[], startHost: StartZoneHost): Promise<void> => {
  const failures: unknown[] = []
  const sums = new Map<string, number>()
  const queue = seeds.values()
  const { ms } = await timed(() =>
    Promise.all(
      Array.from({ length: Math.min(LANES, seeds.length) }, async () => {
        await using lane = await createLane(startHost)
        for (const seed of queue)
          await runInterleaving(lane, seed).then(
            counts => {
              for (const [what, count] of Object.entries(counts)) sums.set(what, (sums.get(what) ?? 0) + count)
            },
            (error: unknown) => failures.push(error),
          )
      }),
    ),
  )
  const figures = Array.from(sums, ([what, count]) => `${count} ${what}`).join(', ')
  process.stdout.write(`${kind}: ${seeds.length} interleavings in ${(ms / 1_000).toFixed(1)} s: ${figures}\n`)
  const told = failures.slice(0, MOST_TOLD).map(error => String(error))
  expect(told, `${failures.length} of ${seeds.length} failed; PDM_TEST_SEEDS=<seed> runs one alone`).toEqual([])
}

describe.skipIf(!testDsn)(
  'random interleavings with faults end with what is desired and what is foreign, exactly',
  () => {
    test('local', { timeout: 300_000 }, () => runAll('local', seedsOf(SEEDS), startLocalHost))

    test('dynadot', { timeout: 300_000 }, () => runAll('dynadot', seedsOf(SEEDS), startDynadotHost))

    test.skipIf(shouldSkip(lacksPowerdns))('powerdns', { timeout: 300_000 }, async () => {
      await using server = await startPowerdns()
      await runAll('powerdns', seedsOf(60), powerdnsHostOn(server))
    })
  },
)
