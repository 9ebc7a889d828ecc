import { runDurableObjectAlarm } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { describe, expect, test } from 'vitest'
import { GENERATION_JUMP } from '../../src/lease/lease.ts'
import { expectLease, expectProblem, parseLease } from '../http/support/bodies.ts'
import { freshSlot, get, hashToken, put, release, send, TOKEN } from '../http/support/client.ts'
import { fakeClock, iso } from '../http/support/clock.ts'
import { captureLogs } from '../http/support/logs.ts'
import { drain, setDraining } from './support/drain.ts'
import { sendWithBindings } from './support/host.ts'
import { failingKv, kvKey } from './support/kv.ts'
import { KvOnlyWitness } from './support/kv-only-witness.ts'
import { readAlarm, readStored, replaceBindings, slotObject } from './support/object.ts'

const TTL_MS = 30_000

test('the migration of a slot that the old system stored without decoding its path: no generation is granted twice', async () => {
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
  // The old system reads our copy, and may continue from that.
  expect(await old.read(slot)).toMatchObject({ holder: 'region-b', generation: 2 + 3 * GENERATION_JUMP })
  expect(await acquire(3)).toBeUndefined()
  clock.advance(3_600_000)
  granted.push(await acquire(2 + 3 * GENERATION_JUMP))
  granted.push(parseLease(await put(slot, 2 + 2 * GENERATION_JUMP, { holder: 'region-b' })).generation)
  expect(granted).toEqual([1, 2, 2 + GENERATION_JUMP, 3, 3 + 3 * GENERATION_JUMP, 3 + 2 * GENERATION_JUMP])
})

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

  test('the witness takes over what the other system wrote after a drain', async () => {
    using clock = fakeClock()
    const slot = freshSlot()
    await put(slot, 0)
    await setDraining(slot, true)
    await drain({ slots: [slot] })
    clock.advance(2 * TTL_MS)
    const kvOnly = new KvOnlyWitness(env.OPENOVA_LEASES)
    const write = { kind: 'acquire', holder: 'region-b', ttlMs: TTL_MS, generation: 1 } as const
    expect(await kvOnly.write(slot, write)).toBe(2)
    await setDraining(slot, false)
    expectLease(await get(slot), 200, { holder: 'region-b', generation: 2 })
    expectLease(await put(slot, 1), 412, { holder: 'region-b', generation: 2 })
    clock.advance(2 * TTL_MS)
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
    const token = await hashToken('limited-token-0123456789')
    const limited = { ...bindings, TOKEN_POLICIES: JSON.stringify([{ name: 'a', token, access: 'write' }]) }
    const authorization = 'Bearer limited-token-0123456789'
    expectProblem(await sendWithBindings(limited, 'POST', '/leases/drain', { authorization }), 403, 'forbidden')
    expect(
      (await sendWithBindings(limited, 'POST', '/leases/drain', { authorization: `Bearer ${TOKEN}` })).status,
    ).toBe(200)
  })
})
