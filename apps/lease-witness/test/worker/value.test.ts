import { runDurableObjectAlarm } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { describe, expect, test } from 'vitest'
import { GENERATION_JUMP } from '../../src/lease/lease.ts'
import { expectLease, parseLease } from '../http/support/bodies.ts'
import { freshSlot, get, put, release } from '../http/support/client.ts'
import { fakeClock } from '../http/support/clock.ts'
import { list } from '../http/support/lists.ts'
import { captureLogs } from '../http/support/logs.ts'
import { drain, setDraining } from './support/drain.ts'
import { kvKey, putLegacyRecord, readCopy } from './support/kv.ts'
import { KvOnlyWitness } from './support/kv-only-witness.ts'
import { deleteObject, readAlarm, readStored, seed, slotObject } from './support/object.ts'

/** Of region-a. */
const VALUE = 'https://10.0.0.7:8443'

const runAlarm = (slot: string) => runDurableObjectAlarm(slotObject(slot))

/** A slot that region-a holds with the value at generation 1, with its copy. */
const copiedSlot = async (value = VALUE): Promise<string> => {
  const slot = freshSlot()
  await put(slot, 0, { value })
  await runAlarm(slot)
  return slot
}

const drainedSlot = async (): Promise<string> => {
  const slot = await copiedSlot()
  await setDraining(slot, true)
  await drain({ slots: [slot] })
  await setDraining(slot, false)
  return slot
}

describe('the copy in Workers KV', () => {
  test('has the value, and follows a release and the next holder as it follows the lease', async () => {
    using clock = fakeClock()
    const slot = await copiedSlot()
    expect(await readCopy(slot)).toMatchObject({ holder: 'region-a', value: VALUE })
    clock.advance(2_000)
    await release(slot, 1)
    await runAlarm(slot)
    expect(await readCopy(slot)).not.toHaveProperty('value')
    clock.advance(2_000)
    await put(slot, 2, { holder: 'region-b', value: 'other' })
    await runAlarm(slot)
    expect(await readCopy(slot)).toMatchObject({ holder: 'region-b', value: 'other' })
  })

  test('of a renewal that changes the value is due with the other renewals, so it costs no write', async () => {
    using clock = fakeClock()
    const slot = await copiedSlot()
    await put(slot, 1, { op: 'renew' })
    const dueAt = (await readAlarm(slot)) ?? 0
    expect(dueAt - clock.now()).toBeGreaterThanOrEqual(9 * 60_000)
    await put(slot, 2, { op: 'renew', value: 'other' })
    expect(await readAlarm(slot)).toBe(dueAt)
    clock.advance(dueAt - clock.now())
    await runAlarm(slot)
    expect(await readCopy(slot)).toMatchObject({ value: 'other', generation: 3 })
  })

  test.each([VALUE, 'ä'.repeat(512)])(
    'restores the value with the holder after the loss of the object: %s',
    async value => {
      using _clock = fakeClock()
      const slot = await copiedSlot(value)
      await deleteObject(slot)
      const { generation } = expectLease(await get(slot), 200, { holder: 'region-a', value })
      expectLease(await put(slot, generation, { op: 'renew' }), 200, { value, generation: generation + 1 })
    },
  )
})

describe('beside a system that keeps its leases in Workers KV only', () => {
  test('the value stays over a drain', async () => {
    using _clock = fakeClock()
    const slot = await drainedSlot()
    expectLease(await get(slot), 200, { value: VALUE, generation: 1 })
    expectLease(await put(slot, 1, { op: 'renew' }), 200, { value: VALUE, generation: 1 + GENERATION_JUMP })
  })

  test('that system ignores the value, and the lease has none once it has written', async () => {
    using clock = fakeClock()
    const slot = await drainedSlot()
    const old = new KvOnlyWitness(env.OPENOVA_LEASES)
    expect(await old.read(slot)).toEqual({ ...parseLease(await get(slot)), value: undefined })
    clock.advance(30_000)
    expect(await old.write(slot, { kind: 'acquire', holder: 'region-b', ttlMs: 30_000, generation: 1 })).toBe(2)
    expect(expectLease(await get(slot), 200, { holder: 'region-b' })).not.toHaveProperty('value')
  })

  test('a value that it leaves in the record of another holder is not shown', async () => {
    using _clock = fakeClock()
    const slot = await drainedSlot()
    const record = { ...(await readCopy(slot)), holder: 'region-b', generation: 2 }
    await putLegacyRecord(slot, record)
    expect(record).toMatchObject({ value: VALUE })
    expect(expectLease(await get(slot), 200, { holder: 'region-b' })).not.toHaveProperty('value')
    const [listed] = (await list({ prefix: slot })).leases
    expect(listed).toMatchObject({ holder: 'region-b', generation: 2 })
    expect(listed).not.toHaveProperty('value')
  })

  test.each<readonly [rule: string, msg: string, spoil: (slot: string, record: object) => Promise<void>]>([
    [
      'wrote',
      'foreign-writer',
      (slot, record) => putLegacyRecord(slot, { ...record, holder: 'region-b', generation: 2 }),
    ],
    ['wrote nonsense', 'foreign-writer', (slot, record) => putLegacyRecord(slot, { ...record, generation: 'x' })],
    [
      'did not write, but the objects were rolled back',
      'rolled-back',
      async slot => {
        const before = await readStored(slot)
        await release(slot, 1)
        await put(slot, 2, { value: VALUE })
        await runAlarm(slot)
        if (before) await seed(slot, before.lease, before)
      },
    ],
  ])('the log line says what it found, without the value: it %s', async (_, msg, spoil) => {
    using clock = fakeClock()
    using logged = captureLogs()
    const slot = await copiedSlot()
    await spoil(slot, JSON.parse((await env.OPENOVA_LEASES.get(kvKey(slot))) ?? ''))
    clock.advance(2_000)
    await put(slot, parseLease(await get(slot)).generation, { op: 'renew', ttlSeconds: 900 })
    clock.advance(600_000)
    await runAlarm(slot)
    expect(logged.lines()).toContainEqual(
      expect.objectContaining({ msg, found: expect.stringContaining('"holder":"region-') }),
    )
    expect(logged.text()).not.toContain(VALUE)
  })
})
