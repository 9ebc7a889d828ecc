import { runDurableObjectAlarm } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { type DrainLeasesResponse, drainLeasesResponse, type Lease } from '@pool/contract/lease'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { GENERATION_JUMP } from '../../src/lease/lease.ts'
import { expectLease, expectProblem, parseLease } from '../http/support/bodies.ts'
import { freshSlot, get, put, release, send, TOKEN } from '../http/support/client.ts'
import { fakeClock, iso } from '../http/support/clock.ts'
import { captureLogs } from '../http/support/logs.ts'
import { sendWithBindings } from './support/host.ts'
import { failingKv, kvKey } from './support/kv.ts'
import { KvOnlyWitness } from './support/kv-only-witness.ts'
import { readAlarm, readStored, replaceBindings, slotObject } from './support/object.ts'

const TTL_SECONDS = 30
const HOLDERS = ['region-a', 'region-b'] as const

const kvOnly = new KvOnlyWitness(env.OPENOVA_LEASES)

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

describe('the migration from a system that keeps its leases in Workers KV', () => {
  test('in any order, with the old system still writing: no generation is granted twice', async () => {
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
      { numRuns: 60 },
    )
  })

  test('of a slot that the old system stored without decoding its path: no generation is granted twice', async () => {
    using clock = fakeClock()
    using _logged = captureLogs()
    const old = new KvOnlyWitness(env.OPENOVA_LEASES, encodeURIComponent)
    const slot = freshSlot()
    const acquire = (generation: number) =>
      old.write(slot, { kind: 'acquire', holder: 'region-a', ttlMs: 1_000, generation })
    const granted = [await acquire(0), await acquire(1)]
    clock.advance(1_000)
    granted.push(parseLease(await put(slot, 2, { holder: 'region-b', ttlSeconds: 1 })).generation)
    granted.push(await acquire(2))
    await runDurableObjectAlarm(slotObject(slot))
    granted.push(await acquire(3), parseLease(await put(slot, 2 + GENERATION_JUMP, { holder: 'region-b' })).generation)
    expect(granted).toEqual([1, 2, 2 + GENERATION_JUMP, 3, 4, 3 + GENERATION_JUMP])
  })
})

const drain = async (body: object = {}): Promise<DrainLeasesResponse> => {
  const response = await sendWithBindings({ DRAIN: 'true' }, 'POST', '/leases/drain', { body: JSON.stringify(body) })
  expect(response.status, response.text).toBe(200)
  return drainLeasesResponse.strict().parse(response.json)
}

const setDraining = (slot: string, isDraining: boolean) => replaceBindings(slot, isDraining ? { DRAIN: 'true' } : {})

describe('the migration back', () => {
  test('a drain rejects writes, writes the copy, and says from when it can be read everywhere', async () => {
    using clock = fakeClock()
    const slot = freshSlot()
    await put(slot, 0)
    await runDurableObjectAlarm(slotObject(slot))
    const renewed = parseLease(await put(slot, 1, { op: 'renew' }))
    await setDraining(slot, true)
    for (const response of [await put(slot, 2), await release(slot, 2), await put(slot, 9)]) {
      expectProblem(response, 503, 'draining')
      expect(Number(response.headers.get('Retry-After'))).toBeGreaterThanOrEqual(1)
    }
    expect(await drain({ slots: [slot] })).toEqual({
      drained: 1,
      pending: [],
      readableAt: iso(clock.now() + 120_000),
    })
    expect(JSON.parse((await env.OPENOVA_LEASES.get(kvKey(slot))) ?? '')).toEqual(renewed)
    expect(await readStored(slot)).toMatchObject({ isDrained: true })
    expect((await get(slot)).json).toEqual(renewed)
  })

  test('after a drain, and forward again: no generation is granted twice', async () => {
    using clock = fakeClock()
    using _logged = captureLogs()
    await fc.assert(
      fc.asyncProperty(
        fc.array(step, { maxLength: 15 }),
        fc.array(step, { maxLength: 15 }),
        fc.array(step, { maxLength: 15 }),
        async (before, between, after) => {
          const slot = freshSlot()
          const grants = new Grants()
          grants.add(slot, await writeWitness(slot, 'region-a', 'acquire', 0))
          const only = (steps: readonly Step[], other: Step['action']) => steps.filter(({ action }) => action !== other)
          await runSteps(slot, only(before, 'kv-only'), grants, clock.advance)
          await setDraining(slot, true)
          expect((await drain({ slots: [slot] })).pending).toEqual([])
          await runSteps(slot, only(between, 'witness'), grants, clock.advance)
          await setDraining(slot, false)
          await runSteps(slot, after, grants, clock.advance)
          expect(grants.repeated).toEqual([])
        },
      ),
      { numRuns: 40 },
    )
  })

  test('the witness takes over what the other system wrote after a drain', async () => {
    using clock = fakeClock()
    const slot = freshSlot()
    await put(slot, 0)
    await setDraining(slot, true)
    await drain({ slots: [slot] })
    clock.advance(TTL_SECONDS * 2_000)
    expect(await writeKvOnly(slot, 'region-b', 'acquire', 1)).toBe(2)
    await setDraining(slot, false)
    expectLease(await get(slot), 200, { holder: 'region-b', generation: 2 })
    expectLease(await put(slot, 1), 412, { holder: 'region-b', generation: 2 })
    clock.advance(TTL_SECONDS * 2_000)
    expectLease(await put(slot, 2), 200, { holder: 'region-a', generation: 2 + GENERATION_JUMP })
  })

  test('a slot whose copy was never written is drained by the id of its object', async () => {
    using _clock = fakeClock()
    const slot = freshSlot()
    const lease = parseLease(await put(slot, 0))
    await setDraining(slot, true)
    expect((await drain({ objects: [slotObject(slot).id.toString()] })).drained).toBe(1)
    expect(JSON.parse((await env.OPENOVA_LEASES.get(kvKey(slot))) ?? '')).toEqual(lease)
  })

  test('a slot stays pending while its copy cannot be written, or its object runs without DRAIN', async () => {
    using _clock = fakeClock()
    using _logged = captureLogs()
    const slot = freshSlot()
    await put(slot, 0)
    expect((await drain({ slots: [slot] })).pending).toEqual([{ slot, reason: 'its object still runs without DRAIN' }])
    await replaceBindings(slot, { DRAIN: 'true', OPENOVA_LEASES: failingKv as KVNamespace })
    expect((await drain({ slots: [slot] })).pending).toEqual([{ slot, reason: 'Workers KV did not accept its copy' }])
    expect(await readAlarm(slot)).not.toBeNull()
    expect(await readStored(slot)).not.toHaveProperty('isDrained')
    const unknown = 'f'.repeat(64)
    expect((await drain({ objects: [unknown] })).pending).toMatchObject([{ slot: unknown }])
  })

  test('without names, it drains a page of the slots that have a record', async () => {
    using _clock = fakeClock()
    const slots = Array.from({ length: 130 }, freshSlot)
    await Promise.all(slots.map(slot => env.OPENOVA_LEASES.put(kvKey(slot), '{"generation":3}')))
    let drained = 0
    let pages = 0
    for (let cursor: string | undefined; pages === 0 || cursor !== undefined; pages++) {
      const page = await drain(cursor === undefined ? {} : { cursor })
      // Slots of other tests are not draining.
      drained += page.drained
      cursor = page.nextCursor
    }
    expect(drained).toBeGreaterThanOrEqual(130)
    expect(pages).toBeGreaterThan(1)
  })

  test('409 if the witness accepts writes, 403 without full power, 400 for an invalid body', async () => {
    expectProblem(await send('POST', '/leases/drain'), 409, 'not-draining')
    const bindings = { DRAIN: 'true' }
    for (const body of ['[]', '{', '{"objects":["x"]}', '{"slots":[""]}']) {
      expect((await sendWithBindings(bindings, 'POST', '/leases/drain', { body })).status, body).toBe(400)
    }
    const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode('limited-token-0123456789'))
    const token = `sha256:${[...new Uint8Array(digest)].map(byte => byte.toString(16).padStart(2, '0')).join('')}`
    const limited = { ...bindings, TOKEN_POLICIES: JSON.stringify([{ name: 'a', token, access: 'write' }]) }
    const authorization = 'Bearer limited-token-0123456789'
    expectProblem(await sendWithBindings(limited, 'POST', '/leases/drain', { authorization }), 403, 'forbidden')
    expect(
      (await sendWithBindings(limited, 'POST', '/leases/drain', { authorization: `Bearer ${TOKEN}` })).status,
    ).toBe(200)
  })
})
