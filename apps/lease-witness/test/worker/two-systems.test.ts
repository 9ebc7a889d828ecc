import { runDurableObjectAlarm } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { describe, expect, test } from 'vitest'
import { GENERATION_JUMP, jumpAfterLoss } from '../../src/lease/lease.ts'
import { expectLease, expectProblem, parseHistory, parseLease } from '../http/support/bodies.ts'
import { freshSlot, get, put, send } from '../http/support/client.ts'
import { fakeClock, iso } from '../http/support/clock.ts'
import { captureLogs } from '../http/support/logs.ts'
import { failingKv, kvKey, putLegacyRecord } from './support/kv.ts'
import { deleteObject, readAlarm, readStored, replaceKv, seed, slotObject } from './support/object.ts'

/** A record that the other system writes: a lease that expires in `ms`. */
const record = (holder: string, generation: number, ms: number) => {
  const now = Date.now()
  return { holder, acquiredAt: iso(now - 60_000), expiresAt: iso(now + ms), generation }
}

const readHistory = async (slot: string) =>
  parseHistory(await send('GET', `/history/${encodeURIComponent(slot)}`)).transitions

const runAlarm = (slot: string) => runDurableObjectAlarm(slotObject(slot))

const readKv = (slot: string) => env.OPENOVA_LEASES.getWithMetadata<{ lease: unknown }>(kvKey(slot))

describe('while another system writes to the same namespace', () => {
  test('it and the witness never grant the same generation of a record that both continue', async () => {
    using clock = fakeClock()
    using _logged = captureLogs()
    const slot = freshSlot()
    await putLegacyRecord(slot, record('region-a', 10, -1))
    const ours = parseLease(await put(slot, 10, { holder: 'region-c' }))
    // It has read generation 10, too.
    await putLegacyRecord(slot, record('region-b', 11, 30_000))
    expect(ours.generation).toBe(10 + GENERATION_JUMP)
    await runAlarm(slot)
    // From now on it reads our copy, and may continue from that.
    const { value } = await readKv(slot)
    const theirs: number = JSON.parse(value ?? '').generation
    const later = parseLease(await get(slot)).generation
    expect(theirs).toBe(later + GENERATION_JUMP)
    clock.advance(30_000)
    await putLegacyRecord(slot, record('region-b', theirs + 1, 30_000))
    expectLease(await put(slot, later, { holder: 'region-c' }), 200, { generation: later + 1 })
    await runAlarm(slot)
    expectLease(await get(slot), 200, { holder: 'region-c', generation: theirs + 1 + GENERATION_JUMP })
  })
})

describe('a record of another system where our copy was', () => {
  test('is logged and recorded, and the generation jumps above it; holder and expiry stay', async () => {
    using clock = fakeClock()
    using logged = captureLogs()
    const slot = freshSlot()
    const before = parseLease(await put(slot, 0))
    await runAlarm(slot)
    clock.advance(10_000)
    await putLegacyRecord(slot, record('region-b', 40, 30_000))
    await put(slot, 1, { op: 'renew' })
    const renewed = parseLease(await get(slot))
    await runAlarm(slot)

    const lease = { ...renewed, acquiredAt: before.acquiredAt, generation: 40 + GENERATION_JUMP }
    expect((await get(slot)).json).toEqual(lease)
    expect((await readHistory(slot))[0]).toMatchObject({
      event: 'foreign-writer',
      generation: 40 + GENERATION_JUMP,
      from: 'region-b',
      to: 'region-a',
    })
    const [line] = logged.lines().filter(({ msg }) => msg === 'foreign-writer')
    expect(line).toMatchObject({ level: 'error', slot, generation: 40 + GENERATION_JUMP })
    expect((await readKv(slot)).metadata?.lease).toEqual(lease)
    expect((await readStored(slot))?.dueAt).toBeUndefined()
  })

  test('is noticed once, also if Workers KV returns it again', async () => {
    using clock = fakeClock()
    using logged = captureLogs()
    const slot = freshSlot()
    const theirs = JSON.stringify(record('region-b', 40, 30_000))
    await putLegacyRecord(slot, theirs)
    clock.advance(30_000)
    const { generation } = parseLease(await put(slot, 40))
    await runAlarm(slot)
    await putLegacyRecord(slot, theirs)
    clock.advance(600_000)
    await put(slot, generation)
    await runAlarm(slot)
    expectLease(await get(slot), 200, { generation: generation + 1 })
    expect(logged.text()).not.toContain('foreign-writer')
  })

  test('that is not a lease is replaced, and the generation jumps', async () => {
    using _clock = fakeClock()
    using _logged = captureLogs()
    const slot = freshSlot()
    await put(slot, 0)
    await putLegacyRecord(slot, 'junk')
    await runAlarm(slot)
    expectLease(await get(slot), 200, { holder: 'region-a', generation: 1 + GENERATION_JUMP })
    expect((await readKv(slot)).metadata?.lease).toEqual((await get(slot)).json)
  })
})

test('objects that were rolled back continue above their copy in Workers KV', async () => {
  using clock = fakeClock()
  using logged = captureLogs()
  const slot = freshSlot()
  for (let generation = 0; generation < 6; generation++) await put(slot, generation)
  const before = await readStored(slot)
  for (let generation = 6; generation < 12; generation++) await put(slot, generation)
  await runAlarm(slot)
  await deleteObject(slot)
  if (before) await seed(slot, before.lease, before)
  clock.advance(60_000)
  expectLease(await put(slot, 6), 200, { generation: 7 })
  await runAlarm(slot)
  const above = 12 + jumpAfterLoss(60_000)
  expect(parseLease(await put(slot, above)).generation).toBe(above + 1)
  expect((await readHistory(slot))[0]).toMatchObject({ event: 'jumped', generation: above, to: 'region-a' })
  expect(logged.lines()).toContainEqual(expect.objectContaining({ level: 'error', msg: 'rolled-back', slot }))
})

describe('a slot whose object was lost twice', () => {
  test('before the first copy after the loss: no generation is granted twice', async () => {
    using clock = fakeClock()
    const slot = freshSlot()
    await put(slot, 0)
    await runAlarm(slot)
    const granted: number[] = []
    for (let losses = 1; losses <= 3; losses++) {
      await deleteObject(slot)
      const { generation } = parseLease(await get(slot))
      granted.push(parseLease(await put(slot, generation)).generation)
      expect(await readAlarm(slot)).not.toBeNull()
    }
    clock.advance(-3_600_000)
    await deleteObject(slot)
    granted.push(parseLease(await get(slot)).generation)
    expect(granted).toEqual(granted.toSorted((a, b) => a - b))
    expect(new Set(granted).size).toBe(granted.length)
  })

  test('is unavailable until its new generation is in Workers KV', async () => {
    using _clock = fakeClock()
    using _logged = captureLogs()
    const slot = freshSlot()
    await put(slot, 0)
    await runAlarm(slot)
    await deleteObject(slot)
    const readKvRecord = env.OPENOVA_LEASES.getWithMetadata.bind(env.OPENOVA_LEASES)
    await replaceKv(slot, { ...failingKv, getWithMetadata: readKvRecord as KVNamespace['getWithMetadata'] })
    expectProblem(await get(slot), 503, 'lease-unavailable')
    expect(await readStored(slot)).toBeUndefined()
    await replaceKv(slot, env.OPENOVA_LEASES)
    expectLease(await get(slot), 200, { generation: 1 + GENERATION_JUMP })
    expect((await readKv(slot)).metadata?.lease).toEqual((await get(slot)).json)
  })
})
