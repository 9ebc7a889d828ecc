import { runDurableObjectAlarm } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { describe, expect, test } from 'vitest'
import { GENERATION_JUMP } from '../../src/lease/lease.ts'
import { expectLease, expectProblem, NEVER_WRITTEN, parseLease, parseList } from '../http/support/bodies.ts'
import { freshSlot, get, hashToken, put, release, send, TOKEN } from '../http/support/client.ts'
import { fakeClock, iso } from '../http/support/clock.ts'
import { captureLogs } from '../http/support/logs.ts'
import { drain, setDraining } from './support/drain.ts'
import { sendWithBindings } from './support/host.ts'
import { failingKv, kvKey, putLegacyRecord, readCopy } from './support/kv.ts'
import { KvOnlyWitness } from './support/kv-only-witness.ts'
import { deleteObject, readAlarm, readStored, replaceBindings, seed, slotObject } from './support/object.ts'

const TTL_MS = 30_000
const LONG_TTL_MS = 600_000

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

test('after a takeover, every record of the slot follows its holder', async () => {
  using _clock = fakeClock()
  const slot = freshSlot()
  const keys = [slot, encodeURIComponent(slot), encodeURIComponent(slot).toLowerCase()]
  await Promise.all(keys.slice(1).map(key => putLegacyRecord(key, { ...NEVER_WRITTEN, generation: 7 })))
  await put(slot, 7)
  await runDurableObjectAlarm(slotObject(slot))
  for (const key of keys) expect(await readCopy(key), key).toMatchObject({ holder: 'region-a' })
  await release(slot, 7 + GENERATION_JUMP)
  await runDurableObjectAlarm(slotObject(slot))
  const released = { ...NEVER_WRITTEN, generation: 8 + 2 * GENERATION_JUMP }
  for (const key of keys) expect(await readCopy(key), key).toEqual(released)
  expect(parseList(await send('GET', `/leases?prefix=${encodeURIComponent(keys[1] ?? '')}`)).leases).toEqual([])
})

test("a copy under a legacy key is not taken for another slot's, and does not replace another slot's", async () => {
  using _clock = fakeClock()
  const slot = freshSlot()
  const other = encodeURIComponent(slot)
  await setDraining(slot, true)
  await seed(slot, { kind: 'released', acquiredAt: 0, writtenAt: 0, generation: 5 })
  await drain({ slots: [slot] })
  expect((await get(other)).status).toBe(404)
  expectLease(await put(other, 0, { holder: 'region-b' }), 200, { generation: 1 })
  await runDurableObjectAlarm(slotObject(other))
  await setDraining(slot, false)
  expectLease(await put(slot, 5), 200, { generation: 5 + GENERATION_JUMP })
  await runDurableObjectAlarm(slotObject(slot))
  expect(await readCopy(other)).toMatchObject({ holder: 'region-b', generation: 1 })
})

test('after a drain and the loss of the objects, the witness takes over what the old system wrote beside a copy', async () => {
  using clock = fakeClock()
  const slot = freshSlot()
  const old = new KvOnlyWitness(env.OPENOVA_LEASES, encodeURIComponent)
  await put(slot, 0)
  await setDraining(slot, true)
  await drain({ slots: [slot] })
  clock.advance(LONG_TTL_MS)
  expect(await old.write(slot, { kind: 'acquire', holder: 'region-b', ttlMs: LONG_TTL_MS, generation: 1 })).toBe(2)
  await deleteObject(slot)
  expectLease(await put(slot, 2), 412, { holder: 'region-b', generation: 2 })
  clock.advance(LONG_TTL_MS)
  const { generation } = parseLease(await put(slot, 2))
  expect(generation).toBeGreaterThan(2 + GENERATION_JUMP)
})

test.each([
  { first: 'old', encoded: '%2F' },
  { first: 'witness', encoded: '%2F' },
  { first: 'witness', encoded: '%2f' },
])(
  'the migration back and forward again of a system that does not decode its path: no generation twice, never two holders ($first first, $encoded)',
  async ({ first, encoded }) => {
    using clock = fakeClock()
    const slot = freshSlot()
    const old = new KvOnlyWitness(env.OPENOVA_LEASES, name => name.replace('/', encoded))
    const granted: number[] = []
    const last = () => granted.at(-1) ?? 0
    const add = (generation: number | undefined) => generation !== undefined && granted.push(generation) > 0
    const byOld = async (holder: string, generation = last()) =>
      add(await old.write(slot, { kind: 'acquire', holder, ttlMs: LONG_TTL_MS, generation }))
    const byWitness = async (holder: string) => {
      const response = await put(slot, last(), { holder, ttlSeconds: LONG_TTL_MS / 1_000 })
      return add(response.status === 200 ? parseLease(response).generation : undefined)
    }
    if (first === 'old') expect(await byOld('region-a')).toBe(true)
    expect(await byWitness('region-a')).toBe(true)
    await runDurableObjectAlarm(slotObject(slot))
    clock.advance(60_000)
    expect(await byWitness('region-a')).toBe(true)
    await setDraining(slot, true)
    await drain({ slots: [slot] })
    const left = await old.read(slot)
    expect(left).toMatchObject({ holder: 'region-a', expiresAt: iso(clock.now() + LONG_TTL_MS) })
    expect(await byOld('region-b', 0)).toBe(false)
    expect(await byOld('region-b', left.generation)).toBe(false)
    clock.advance(LONG_TTL_MS)
    expect(await byOld('region-b', left.generation)).toBe(true)
    await drain({ slots: [slot] })
    await setDraining(slot, false)
    expect(await byWitness('region-a')).toBe(false)
    clock.advance(LONG_TTL_MS)
    expect(await byWitness('region-a')).toBe(true)
    expect(granted).toEqual([...new Set(granted)].toSorted((a, b) => a - b))
  },
)

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
