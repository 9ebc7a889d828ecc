import { runDurableObjectAlarm } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { expect, test } from 'vitest'
import { GENERATION_JUMP } from '../../src/lease/lease.ts'
import { expectLease, NEVER_WRITTEN, parseLease, parseList } from '../http/support/bodies.ts'
import { freshSlot, get, put, release, send } from '../http/support/client.ts'
import { fakeClock, iso } from '../http/support/clock.ts'
import { drain, setDraining } from './support/drain.ts'
import { putLegacyRecord, readCopy } from './support/kv.ts'
import { KvOnlyWitness } from './support/kv-only-witness.ts'
import { deleteObject, seed, slotObject } from './support/object.ts'

const TTL_MS = 600_000

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
  clock.advance(TTL_MS)
  expect(await old.write(slot, { kind: 'acquire', holder: 'region-b', ttlMs: TTL_MS, generation: 1 })).toBe(2)
  await deleteObject(slot)
  expectLease(await put(slot, 2), 412, { holder: 'region-b', generation: 2 })
  clock.advance(TTL_MS)
  const { generation } = parseLease(await put(slot, 2))
  expect(generation).toBeGreaterThan(2 + GENERATION_JUMP)
})

const upper = encodeURIComponent
const lower = (slot: string) => encodeURIComponent(slot).toLowerCase()

test.each([
  { first: 'old', encode: upper },
  { first: 'witness', encode: upper },
  { first: 'old', encode: lower },
  { first: 'witness', encode: lower },
  { first: 'witness', encode: (slot: string) => slot },
])(
  'the migration back and forward again of a system that does not decode its path: no generation twice, never two holders ($first first)',
  async ({ first, encode }) => {
    using clock = fakeClock()
    const slot = freshSlot()
    const old = new KvOnlyWitness(env.OPENOVA_LEASES, encode)
    const granted: number[] = []
    const byOld = async (holder: string, from = granted.at(-1) ?? 0) => {
      const generation = await old.write(slot, { kind: 'acquire', holder, ttlMs: TTL_MS, generation: from })
      if (generation !== undefined) granted.push(generation)
      return generation !== undefined
    }
    const byWitness = async (holder: string, from = granted.at(-1) ?? 0) => {
      const response = await put(slot, from, { holder, ttlSeconds: TTL_MS / 1_000 })
      if (response.status === 200) granted.push(parseLease(response).generation)
      return response.status === 200
    }
    if (first === 'old') expect(await byOld('region-a')).toBe(true)
    expect(await byWitness('region-a')).toBe(true)
    await runDurableObjectAlarm(slotObject(slot))
    for (let round = 0; round < 2; round++) {
      clock.advance(60_000)
      expect(await byWitness('region-a')).toBe(true)
      await setDraining(slot, true)
      await drain({ slots: [slot] })
      const left = await old.read(slot)
      expect(left).toMatchObject({ holder: 'region-a', expiresAt: iso(clock.now() + TTL_MS) })
      expect(await byOld('region-b', 0)).toBe(false)
      expect(await byOld('region-b', left.generation)).toBe(false)
      clock.advance(TTL_MS)
      expect(await byOld('region-b', left.generation)).toBe(true)
      await drain({ slots: [slot] })
      await setDraining(slot, false)
      expect(await byWitness('region-a')).toBe(false)
      clock.advance(TTL_MS)
      expect(await byWitness('region-a')).toBe(true)
    }
    expect(granted).toEqual([...new Set(granted)].toSorted((a, b) => a - b))
  },
)
