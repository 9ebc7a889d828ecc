import { missingPowerdns, startPowerdns } from '@pool/test-kit/dns/powerdns.ts'
import { shouldSkip } from '@pool/test-kit/optional-deps.ts'
import { timed } from '@pool/test-kit/poll.ts'
import { proofSize, reportProof } from '@pool/test-kit/proof-size.ts'
import { describe, expect, test } from 'vitest'
import { bind, knot, startServer } from '../providers/support/rfc2136.ts'
import {
  createPowerdnsHostStarter,
  createRfc2136HostStarter,
  type StartZoneHost,
  startCloudflareHost,
  startDynadotHost,
  startLocalHost,
} from '../support/random/hosts.ts'
import { createWorker, runInterleaving, toZone } from '../support/random/interleaving.ts'

/** `17` or `1-500`: these seeds only. */
const requestedSeeds = process.env.PDM_TEST_SEEDS
const INTERLEAVINGS = proofSize(1_000, 6)
const timeout = 180_000 + 5_000 * INTERLEAVINGS
const WORKERS = 6
/** More failures in full would hide the first ones. */
const MAX_REPORTED = 3

const toSeeds = (count: number): number[] => {
  const [from = 1, to = from] = (requestedSeeds ?? `1-${count}`).split('-').map(Number)
  if (!(from <= to))
    throw new Error(`PDM_TEST_SEEDS is ${requestedSeeds}: set it to a seed, or to a range such as 1-100`)
  return Array.from({ length: to - from + 1 }, (_, i) => from + i)
}

const runAll = async (kind: string, seeds: readonly number[], startHost: StartZoneHost): Promise<void> => {
  const failures: unknown[] = []
  const sums = new Map<string, number>()
  const queue = seeds.values()
  const { ms } = await timed(() =>
    Promise.all(
      Array.from({ length: Math.min(WORKERS, seeds.length) }, async () => {
        await using worker = await createWorker(startHost)
        for (const seed of queue)
          await runInterleaving(worker, seed).then(
            counts => {
              for (const [what, count] of Object.entries(counts)) sums.set(what, (sums.get(what) ?? 0) + count)
            },
            (error: unknown) => failures.push(error),
          )
      }),
    ),
  )
  const figures = Array.from(sums, ([what, count]) => `${count} ${what}`).join(', ')
  reportProof(`${kind}: ${seeds.length} interleavings in ${(ms / 1_000).toFixed(1)} s: ${figures}`)
  const reported = failures.slice(0, MAX_REPORTED).map(error => String(error))
  expect(reported, `${failures.length} of ${seeds.length} failed; PDM_TEST_SEEDS=<seed> runs a single one`).toEqual([])
}

describe('random interleavings with faults end with exactly the desired and the foreign records', { timeout }, () => {
  test('local', () => runAll('local', toSeeds(INTERLEAVINGS), startLocalHost))

  test('dynadot', () => runAll('dynadot', toSeeds(INTERLEAVINGS), startDynadotHost))

  test('cloudflare', () => runAll('cloudflare', toSeeds(INTERLEAVINGS), startCloudflareHost))

  test.skipIf(shouldSkip(missingPowerdns))('powerdns', async () => {
    await using server = await startPowerdns()
    await runAll('powerdns', toSeeds(INTERLEAVINGS), createPowerdnsHostStarter(server))
  })

  for (const kind of [knot, bind])
    test.skipIf(shouldSkip(kind.missingPrograms))(`rfc2136 with ${kind.name}`, async () => {
      const seeds = toSeeds(INTERLEAVINGS)
      await using server = await startServer(kind, seeds.map(toZone))
      await runAll(kind.name, seeds, createRfc2136HostStarter(server))
    })
})
