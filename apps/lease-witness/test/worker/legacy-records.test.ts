import { evictDurableObject, runDurableObjectAlarm } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { describe, expect, test, vi } from 'vitest'
import { GENERATION_JUMP, jumpAfterLoss } from '../../src/lease/lease.ts'
import { Slot } from '../../src/object/slot.ts'
import {
  expectLease,
  expectProblem,
  expectRetryAfter,
  NEVER_WRITTEN,
  parseHistory,
  parseLease,
  parseList,
} from '../http/support/bodies.ts'
import { freshSlot, get, put, release, send } from '../http/support/client.ts'
import { fakeClock, iso } from '../http/support/clock.ts'
import { captureLogs } from '../http/support/logs.ts'
import { failingKv, kvKey, putLegacyRecord, readCopy } from './support/kv.ts'
import { deleteObject, readStored, replaceKv, slotObject } from './support/object.ts'

const DAY = 86_400_000

/** A lease that expires in `ms`. */
const record = (generation = 7, ms = DAY) => {
  const now = Date.now()
  return { holder: 'region-a', acquiredAt: iso(now - DAY), expiresAt: iso(now + ms), generation }
}

const list = async (prefix: string) => parseList(await send('GET', `/leases?prefix=${encodeURIComponent(prefix)}`))

describe('a record of a system that keeps its leases in Workers KV', () => {
  test('under the decoded key: reads show it, and the first write takes it over and jumps', async () => {
    const slot = freshSlot()
    const left = record()
    await putLegacyRecord(slot, left)
    expect((await get(slot)).json).toEqual(left)
    expect((await get(slot)).headers.get('ETag')).toBe('"7"')
    expectLease(await put(slot, 0, { holder: 'region-b' }), 412, left)
    expectLease(await put(slot, 7, { holder: 'region-b' }), 412, left)
    expectLease(await put(slot, 7, { op: 'renew' }), 200, {
      acquiredAt: left.acquiredAt,
      generation: 7 + GENERATION_JUMP,
    })
    expectLease(await put(slot, 7 + GENERATION_JUMP), 200, { generation: 8 + GENERATION_JUMP })
  })

  test.each<readonly [rule: string, encode: (slot: string) => string]>([
    [
      'as a whole, lower case',
      slot => encodeURIComponent(slot).replaceAll('%2F', '%2f').replaceAll('%C3%A4', '%c3%a4'),
    ],
    ["by Go's url.PathEscape", slot => slot.replaceAll('/', '%2F').replace('ä', '%C3%A4')],
  ])('under an encoded key is found for every encoding of the request: %s', async (_, encode) => {
    const slot = `${freshSlot()}/ä`
    const left = record()
    await putLegacyRecord(encode(slot), left)
    expect((await send('GET', `/lease/${slot}`)).json).toEqual(left)
    expectLease(await put(slot, 7), 200, { generation: 7 + GENERATION_JUMP })
  })

  test('under the exact encoding of the request is found', async () => {
    const name = crypto.randomUUID()
    const left = record()
    await putLegacyRecord(`%6E%73/${name}`, left)
    expect((await send('GET', `/lease/%6E%73/${name}`)).json).toEqual(left)
  })

  test('that is released keeps its generation', async () => {
    const slot = freshSlot()
    await putLegacyRecord(slot, { ...NEVER_WRITTEN, generation: 12 })
    expectLease(await put(slot, 0), 412, { ...NEVER_WRITTEN, generation: 12 })
    expectLease(await put(slot, 12), 200, { holder: 'region-a', generation: 12 + GENERATION_JUMP })
  })

  test('can be released by its holder immediately', async () => {
    const slot = freshSlot()
    await putLegacyRecord(slot, record())
    expect((await release(slot, 7)).status).toBe(204)
    expectLease(await get(slot), 200, { ...NEVER_WRITTEN, generation: 7 + GENERATION_JUMP })
  })

  test('is taken over once, recorded in the history, and replaced by our own copy', async () => {
    using clock = fakeClock()
    const slot = freshSlot()
    const left = record()
    await putLegacyRecord(encodeURIComponent(slot), left)
    const lease = parseLease(await put(slot, 7))
    expect(parseHistory(await send('GET', `/history/${encodeURIComponent(slot)}`))).toEqual({
      slot,
      transitions: [
        { generation: 7, at: iso(clock.now()), event: 'adopted', by: '', from: '', to: 'region-a', token: '' },
      ],
    })
    await runDurableObjectAlarm(slotObject(slot))
    expect((await list(slot)).leases).toEqual([{ slot, ...lease }])
  })

  test('is not stored by reads, so a later record is found', async () => {
    const slot = freshSlot()
    expect((await get(slot)).status).toBe(404)
    await putLegacyRecord(slot, record(57))
    expectLease(await get(slot), 200, { generation: 57 })
    await putLegacyRecord(slot, record(58))
    expect(parseHistory(await send('GET', `/history/${encodeURIComponent(slot)}`)).transitions).toEqual([])
    expectLease(await put(slot, 57), 412, { generation: 58 })
    expect(await readStored(slot)).toBeUndefined()
    await evictDurableObject(slotObject(slot))
    await putLegacyRecord(slot, record(59))
    expectLease(await put(slot, 59), 200, { generation: 59 + GENERATION_JUMP })
  })

  test('written after the first write does not change responses', async () => {
    const slot = freshSlot()
    await put(slot, 0)
    await putLegacyRecord(slot, record(99))
    await putLegacyRecord(encodeURIComponent(slot), record(99))
    expectLease(await get(slot), 200, { generation: 1 })
    await evictDurableObject(slotObject(slot))
    expectLease(await get(slot), 200, { generation: 1 })
  })

  test('is read once for many concurrent first requests', async () => {
    using _clock = fakeClock()
    const slot = freshSlot()
    await putLegacyRecord(slot, record(7, -1))
    let reads = 0
    await replaceKv(slot, {
      getWithMetadata: ((keys: string[], type: 'text') => {
        reads += 1
        return env.OPENOVA_LEASES.getWithMetadata(keys, type)
      }) as KVNamespace['getWithMetadata'],
    })
    const holders = Array.from({ length: 16 }, (_, i) => `region-${i}`)
    const responses = await Promise.all(holders.map(holder => put(slot, 7, { holder })))
    expect(reads).toBe(1)
    const granted = responses.filter(({ status }) => status === 200)
    expect(granted).toHaveLength(1)
    const winner = granted.map(parseLease)
    for (const loser of responses.filter(({ status }) => status !== 200)) {
      expect(expectLease(loser, 412, { generation: 7 + GENERATION_JUMP })).toEqual(winner[0])
    }
    const { transitions } = parseHistory(await send('GET', `/history/${encodeURIComponent(slot)}`))
    expect(transitions.map(({ event }) => event)).toEqual(['acquired', 'adopted'])
  })
})

describe('a record that we would not write ourselves', () => {
  test('is returned, even with a very long holder', async () => {
    const slot = freshSlot()
    const left = { ...record(), holder: 'x'.repeat(3_000) }
    await putLegacyRecord(slot, left)
    expect((await get(slot)).json).toEqual(left)
    expectLease(await put(slot, 7), 412, { holder: left.holder })
  })
})

describe('an invalid record', () => {
  test.each(['junk', '{"holder":"a","generation":7}'])(
    '%s: 503, no grant, and the response names the key',
    async value => {
      using _logged = captureLogs()
      const slot = freshSlot()
      await putLegacyRecord(slot, value)
      for (const ifMatch of [0, 1, 7]) {
        const { detail } = expectProblem(await put(slot, ifMatch), 503, 'invalid-lease-record')
        expect(detail).toContain(kvKey(slot))
      }
      const read = await get(slot)
      expectProblem(read, 503, 'invalid-lease-record')
      // Only a person can repair it.
      expect(Number(read.headers.get('Retry-After'))).toBeGreaterThanOrEqual(60)
      expectProblem(await release(slot, 7), 503, 'invalid-lease-record')
      expectProblem(await send('GET', `/history/${encodeURIComponent(slot)}`), 503, 'invalid-lease-record')
      expect(await readStored(slot)).toBeUndefined()
    },
  )

  test('under an encoded key is an error too', async () => {
    using _logged = captureLogs()
    const slot = freshSlot()
    await putLegacyRecord(slot, record())
    await putLegacyRecord(encodeURIComponent(slot), 'junk')
    const { detail } = expectProblem(await get(slot), 503, 'invalid-lease-record')
    expect(detail).toContain(kvKey(encodeURIComponent(slot)))
  })

  test('is imported after its repair', async () => {
    using _logged = captureLogs()
    const slot = freshSlot()
    await putLegacyRecord(slot, 'junk')
    await put(slot, 0)
    await putLegacyRecord(slot, record())
    expectLease(await get(slot), 200, { generation: 7 })
  })
})

describe('while Workers KV fails', () => {
  test('503 with Retry-After and no grant; afterwards the record is imported', async () => {
    using logged = captureLogs()
    const slot = freshSlot()
    await putLegacyRecord(slot, record())
    await replaceKv(slot, failingKv)
    for (const response of [await put(slot, 0), await get(slot), await release(slot, 7), await put(slot, 7)]) {
      expectProblem(response, 503, 'lease-unavailable')
      expectRetryAfter(response)
      expect(response.text).not.toContain('KV is down')
    }
    expect(await readStored(slot)).toBeUndefined()
    expect(logged.lines().filter(({ msg }) => msg === 'import-failed')).toHaveLength(4)
    await replaceKv(slot, env.OPENOVA_LEASES)
    expectLease(await put(slot, 0), 412, { generation: 7 })
  })

  test('each of many concurrent requests gets the 503, and Workers KV is read once', async () => {
    using _logged = captureLogs()
    const slot = freshSlot()
    const { promise, reject } = Promise.withResolvers<never>()
    let reads = 0
    await replaceKv(slot, {
      getWithMetadata: () => {
        reads += 1
        return promise
      },
    })
    const opened = vi.spyOn(Slot.prototype, 'open')
    const pending = Array.from({ length: 8 }, () => put(slot, 0))
    while (opened.mock.calls.length < pending.length) await new Promise(resolve => setTimeout(resolve, 20))
    opened.mockRestore()
    reject(new Error('KV is down'))
    for (const response of await Promise.all(pending)) expectProblem(response, 503, 'lease-unavailable')
    expect(reads).toBe(1)
  })
})

describe('a slot whose object was lost', () => {
  /** Writes the copy of a slot, then deletes its object. */
  const deleteAfterCopy = async (slot: string): Promise<void> => {
    await runDurableObjectAlarm(slotObject(slot))
    await deleteObject(slot)
  }

  test('skips generations, and its holder gets its full TTL again', async () => {
    using clock = fakeClock()
    const slot = freshSlot()
    const before = parseLease(await put(slot, 0, { ttlSeconds: 40 }))
    await deleteAfterCopy(slot)
    clock.advance(3_600_000)
    const after = expectLease(await get(slot), 200, {
      holder: 'region-a',
      acquiredAt: before.acquiredAt,
      expiresAt: iso(clock.now() + 40_000),
      generation: 1 + jumpAfterLoss(3_600_000),
    })
    expectLease(await put(slot, after.generation, { holder: 'region-b' }), 412, { holder: 'region-a' })
    expectLease(await put(slot, 1), 412, { generation: after.generation })
    expectLease(await put(slot, after.generation, { op: 'renew' }), 200, { generation: after.generation + 1 })
  })
})

test("another slot's own copy under a legacy key is not imported", async () => {
  using _clock = fakeClock()
  const name = crypto.randomUUID()
  const other = `ns%2F${name}`
  await put(other, 0, { holder: 'region-b' })
  await runDurableObjectAlarm(slotObject(other))
  expect(await readCopy(other)).toMatchObject({ holder: 'region-b' })
  expect((await get(`ns/${name}`)).status).toBe(404)
  expectLease(await put(`ns/${name}`, 0), 200, { holder: 'region-a', generation: 1 })
})
