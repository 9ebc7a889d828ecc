import { runDurableObjectAlarm } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import type { Lease } from '@pool/contract/lease'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { parseLease } from '../http/support/bodies.ts'
import { freshSlot, get, put, release } from '../http/support/client.ts'
import { fakeClock } from '../http/support/clock.ts'
import { captureLogs } from '../http/support/logs.ts'
import { drain, setDraining } from './support/drain.ts'
import { KvOnlyWitness } from './support/kv-only-witness.ts'
import { slotObject } from './support/object.ts'

const TTL_SECONDS = 30
const HOLDERS = ['region-a', 'region-b'] as const

/** It does not decode its path. The clients of half of the slots encode them. */
const kvOnly = new KvOnlyWitness(env.OPENOVA_LEASES, slot => (/[0-7]$/.test(slot) ? slot : encodeURIComponent(slot)))

/** The grants of both systems. */
class Grants {
  readonly #granted = new Set<string>()
  readonly repeated: string[] = []

  add(slot: string, generation: number | undefined): void {
    if (generation === undefined) return
    const grant = `${slot} ${generation}`
    if (this.#granted.has(grant)) this.repeated.push(grant)
    this.#granted.add(grant)
  }
}

const NEVER: Lease = { holder: '', acquiredAt: '', expiresAt: '', generation: 0 }

const readWitness = async (slot: string): Promise<Lease> => {
  const response = await get(slot)
  return response.status === 404 ? NEVER : parseLease(response)
}

interface Step {
  readonly action: 'kv-only' | 'witness' | 'read' | 'alarm' | 'wait'
  readonly holder: (typeof HOLDERS)[number]
  readonly kind: 'acquire' | 'release'
  /** Whether the client names the generation that it saw earlier, not that of a new read. */
  readonly isStale: boolean
  readonly waitMs: number
}

const step: fc.Arbitrary<Step> = fc.record({
  action: fc.constantFrom('kv-only', 'kv-only', 'witness', 'witness', 'read', 'alarm', 'wait'),
  holder: fc.constantFrom(...HOLDERS),
  kind: fc.constantFrom('acquire', 'acquire', 'acquire', 'release'),
  isStale: fc.boolean(),
  waitMs: fc.constantFrom(1_000, 10_000, TTL_SECONDS * 1_000, 600_000),
})

const writeKvOnly = (slot: string, holder: string, kind: Step['kind'], generation: number) =>
  kvOnly.write(
    slot,
    kind === 'acquire' ? { kind, holder, ttlMs: TTL_SECONDS * 1_000, generation } : { kind, holder, generation },
  )

const writeWitness = async (slot: string, holder: string, kind: Step['kind'], generation: number) => {
  const response =
    kind === 'acquire' ? await put(slot, generation, { holder }) : await release(slot, generation, holder)
  const tag = response.headers.get('ETag')
  return (response.status === 200 || response.status === 204) && tag ? Number(tag.slice(1, -1)) : undefined
}

/** Both systems at the same time, each with clients that use it only. */
const runSteps = async (slot: string, steps: readonly Step[], grants: Grants, advance: (ms: number) => void) => {
  const seen = { 'kv-only': 0, witness: 0 }
  for (const { action, holder, kind, isStale, waitMs } of steps) {
    switch (action) {
      case 'kv-only':
        if (!isStale) seen[action] = (await kvOnly.read(slot)).generation
        grants.add(slot, await writeKvOnly(slot, holder, kind, seen[action]))
        break
      case 'witness':
        if (!isStale) seen[action] = (await readWitness(slot)).generation
        grants.add(slot, await writeWitness(slot, holder, kind, seen[action]))
        break
      case 'read':
        await readWitness(slot)
        break
      case 'alarm':
        await runDurableObjectAlarm(slotObject(slot))
        break
      case 'wait':
        advance(waitMs)
    }
  }
}

test('the migration in any order, with the old system still writing: no generation is granted twice', async () => {
  using clock = fakeClock()
  using _logged = captureLogs()
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 40 }), async steps => {
      const slot = freshSlot()
      const grants = new Grants()
      grants.add(slot, await writeKvOnly(slot, 'region-a', 'acquire', 0))
      await runSteps(slot, steps, grants, clock.advance)
      expect(grants.repeated).toEqual([])
    }),
    { numRuns: 100 },
  )
})

test('the migration back by a drain, and forward again: no generation is granted twice', async () => {
  using clock = fakeClock()
  using _logged = captureLogs()
  await fc.assert(
    fc.asyncProperty(
      fc.array(step, { maxLength: 15 }),
      fc.array(fc.array(step, { maxLength: 15 }), { minLength: 1, maxLength: 2 }),
      fc.array(step, { maxLength: 15 }),
      async (before, drains, after) => {
        const slot = freshSlot()
        const grants = new Grants()
        grants.add(slot, await writeWitness(slot, 'region-a', 'acquire', 0))
        const only = (steps: readonly Step[], other: Step['action']) => steps.filter(({ action }) => action !== other)
        await runSteps(slot, only(before, 'kv-only'), grants, clock.advance)
        for (const between of drains) {
          await setDraining(slot, true)
          expect((await drain({ slots: [slot] })).pending).toEqual([])
          await runSteps(slot, only(between, 'witness'), grants, clock.advance)
          await setDraining(slot, false)
          await runSteps(slot, after, grants, clock.advance)
        }
        expect(grants.repeated).toEqual([])
      },
    ),
    { numRuns: 60 },
  )
})
