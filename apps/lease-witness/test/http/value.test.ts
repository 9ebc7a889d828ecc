import { describe, expect, test } from 'vitest'
import { expectLease, NEVER_WRITTEN, parseLease, parseRenewals, parseStatuses } from './support/bodies.ts'
import { freshSlot, get, leasePath, put, type ReceivedResponse, release, send, sendWith } from './support/client.ts'
import { fakeClock } from './support/clock.ts'
import { getHost } from './support/host.ts'
import { list } from './support/lists.ts'
import { captureLogs } from './support/logs.ts'
import { held, seed, waitForWaiters } from './support/slots.ts'

/** Of region-a. */
const VALUE = 'https://10.0.0.7:8443'

/** A slot that region-a holds with the value, at generation 1. */
const heldSlot = async (): Promise<string> => {
  const slot = freshSlot()
  expectLease(await put(slot, 0, { value: VALUE }), 200, { value: VALUE, generation: 1 })
  return slot
}

/** Expects that neither the response nor a later read has a value. */
const expectNoValue = async (slot: string, response: ReceivedResponse): Promise<void> => {
  expect(response.status).toBeLessThan(300)
  expect(response.text).not.toContain('value')
  expect(parseLease(await get(slot))).not.toHaveProperty('value')
}

describe('the value of a lease', () => {
  test.each([
    ['1,024 bytes', 'a'.repeat(1_024)],
    ['1,024 bytes in 512 characters', 'ä'.repeat(512)],
    ['1,024 bytes in 342 characters', `${'€'.repeat(341)}a`],
    ['1,024 bytes in 256 characters', '\u{1f600}'.repeat(256)],
    ['quotes, backslashes and braces', '{"a":"\\\\b"}'],
    ['separators and marks that are not control characters', ' \u00a0\u2028\u202e\ufeff '],
    ['what a property of an object could be', '__proto__'],
  ])('is returned as it was set: %s', async (_, value) => {
    const slot = freshSlot()
    expectLease(await put(slot, 0, { value }), 200, { value })
    expectLease(await get(slot), 200, { value, generation: 1 })
  })

  test('is absent if none was set, so the lease is as before', async () => {
    const slot = freshSlot()
    const response = await put(slot, 0)
    expect(Object.keys(parseLease(response))).toEqual(['holder', 'acquiredAt', 'expiresAt', 'generation'])
    await expectNoValue(slot, response)
  })

  test.each(['renew', 'acquire'])(
    'is kept by a renewal without one (%s), replaced and removed by one with it',
    async op => {
      const slot = await heldSlot()
      expectLease(await put(slot, 1, { op }), 200, { value: VALUE, generation: 2 })
      expectLease(await put(slot, 2, { op, value: 'other' }), 200, { value: 'other', generation: 3 })
      await expectNoValue(slot, await put(slot, 3, { op, value: '' }))
      await expectNoValue(slot, await put(slot, 4, { op }))
    },
  )

  test('is kept by a renewal of many leases, which takes no value', async () => {
    const slot = await heldSlot()
    const body = JSON.stringify({ holder: 'region-a', value: 'x', leases: [{ slot, generation: 1, value: 'x' }] })
    const { results } = parseRenewals(await send('POST', '/leases/renew', { body }))
    expect(results).toMatchObject([{ status: 200, lease: { value: VALUE, generation: 2 } }])
  })

  test.each(['region-a', 'region-b'])(
    'of an expired lease is shown, and ends with an acquisition by %s',
    async holder => {
      using clock = fakeClock()
      const slot = await heldSlot()
      clock.advance(30_000)
      expectLease(await get(slot), 200, { value: VALUE })
      await expectNoValue(slot, await put(slot, 1, { holder, ttlSeconds: 1 }))
      clock.advance(1_000)
      expectLease(await put(slot, 2, { holder, value: 'other' }), 200, { value: 'other', generation: 3 })
    },
  )

  test('is removed by a release', async () => {
    const slot = await heldSlot()
    await expectNoValue(slot, await release(slot, 1))
    await expectNoValue(slot, await put(slot, 2))
  })

  test('is not changed by a rejected write, whose response has it', async () => {
    const slot = await heldSlot()
    const write = { value: 'other' }
    expectLease(await put(slot, 1, { ...write, holder: 'region-b' }), 412, { value: VALUE })
    expectLease(await put(slot, 9, write), 412, { value: VALUE })
    expectLease(await put(slot, 1, { ...write, holder: 'region-b', op: 'renew' }), 412, { value: VALUE })
    expectLease(await release(slot, 9), 412, { value: VALUE })
    const body = JSON.stringify({ holder: 'region-b', leases: [{ slot, generation: 1 }] })
    const { results } = parseRenewals(await send('POST', '/leases/renew', { body }))
    expect(results).toMatchObject([{ status: 412, lease: { value: VALUE } }])
    expectLease(await get(slot), 200, { value: VALUE, generation: 1 })
  })

  test('is in lists, short or long', async () => {
    using _clock = fakeClock()
    const slots = [await heldSlot(), freshSlot()]
    const [short = '', long = ''] = slots
    await put(long, 0, { value: 'ä'.repeat(512) })
    for (const slot of slots) {
      const { value } = parseLease(await get(slot))
      await getHost().writeCopy(slot)
      expect((await list({ prefix: slot })).leases).toMatchObject([{ slot, value }])
    }
    const query = `slot=${encodeURIComponent(short)}`
    expect(parseStatuses(await send('GET', `/leases?${query}`)).leases).toMatchObject([{ slot: short, value: VALUE }])
  })

  test('is in the response to a wait that ends without a change, and of one that the next holder ends', async () => {
    const slot = freshSlot()
    await seed(slot, held({ value: VALUE, expiresAt: Date.now() + 600_000 }))
    const wait = { headers: { Prefer: 'wait=1' } }
    expectLease(await send('GET', `${leasePath(slot)}?until=vacant`, wait), 200, { value: VALUE })
    const changed = get(slot, { 'If-None-Match': '"1"', Prefer: 'wait=20' })
    await waitForWaiters(slot, 1)
    await put(slot, 1, { op: 'renew', value: 'other' })
    expectLease(await changed, 200, { value: 'other', generation: 2 })
    const vacant = send('GET', `${leasePath(slot)}?until=vacant`, { headers: { Prefer: 'wait=20' } })
    await waitForWaiters(slot, 1)
    await release(slot, 2)
    expect((await vacant).json).toEqual({ ...NEVER_WRITTEN, generation: 3 })
  })

  test('is never that of a former holder, for readers that wait while holders change', async () => {
    const slot = freshSlot()
    const last = 40
    const readAll = async () => {
      const seen = []
      for (let generation = 0; generation < last; ) {
        const response = await get(slot, { 'If-None-Match': `"${generation}"`, Prefer: 'wait=20' })
        if (response.status === 304) continue
        if (response.status === 200) seen.push(parseLease(response))
        generation = seen.at(-1)?.generation ?? 0
      }
      return seen
    }
    const readers = [readAll(), readAll()]
    for (let generation = 0; generation < last; generation += 4) {
      const holder = `region-${(generation / 4) % 3}`
      await put(slot, generation, { holder })
      await put(slot, generation + 1, { holder, value: `of ${holder}` })
      await put(slot, generation + 2, { holder, op: 'renew' })
      await release(slot, generation + 3, holder)
    }
    for (const { holder, generation, value } of (await Promise.all(readers)).flat()) {
      expect(value).toBe([2, 3].includes(generation % 4) ? `of ${holder}` : undefined)
    }
  })

  test('is in no log line at any level, nor in the history', async () => {
    using logged = captureLogs()
    const secret = 'not-for-logs'
    const slot = freshSlot()
    const path = leasePath(slot)
    const sendAtDebug = (method: string, target: string, tag: number, body?: object) =>
      sendWith({ LOG_LEVEL: 'debug' }, method, target, {
        headers: { 'If-Match': `${tag}`, 'X-Holder': 'region-a' },
        ...(body ? { body: JSON.stringify(body) } : {}),
      })
    const statuses = [
      await sendAtDebug('PUT', path, 0, { value: secret }),
      await sendAtDebug('PUT', path, 1, { value: secret, op: 'renew' }),
      await sendAtDebug('PUT', path, 1, { value: secret }),
      await sendAtDebug('PUT', path, 2, { value: `${secret}\n` }),
      await sendAtDebug('PUT', path, 2, { value: [secret] }),
      await sendAtDebug('POST', '/leases/renew', 0, {
        holder: 'region-a',
        value: secret,
        leases: [{ slot, generation: 2, value: secret }],
      }),
      await sendAtDebug('GET', path, 3),
      await sendAtDebug('GET', path.replace('/lease/', '/history/'), 3),
      await sendAtDebug('DELETE', path, 3),
    ].map(({ status, text }) => [status, text.includes(secret)])
    const shown = [true, true, true, false, false, true, true, false, false]
    expect(statuses).toEqual([200, 200, 412, 400, 400, 200, 200, 200, 204].map((status, i) => [status, shown[i]]))
    expect(logged.accessLines()).toHaveLength(statuses.length)
    expect(logged.text()).not.toContain(secret)
  })
})
