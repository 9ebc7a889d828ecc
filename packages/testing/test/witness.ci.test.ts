import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import * as z from 'zod'
import { startWitness, type TestWitness } from '../src/index.ts'

const statuses = z.object({ leases: z.array(z.object({ waiters: z.int() })) })

describe.each(['workerd', 'postgres'] as const)('a witness on %s', on => {
  let witness: TestWitness
  beforeAll(async () => {
    witness = await startWitness({ on, env: { MAX_WAIT_SECONDS: '60' } })
  })
  afterAll(() => witness?.stop())

  const send = async (method: string, slot: string, headers: Record<string, string> = {}, body?: object) => {
    const response = await fetch(`${witness.url}/lease/${slot}`, {
      method,
      headers: { Authorization: `Bearer ${witness.token}`, ...headers },
      ...(body ? { body: JSON.stringify(body) } : {}),
    })
    const text = await response.text()
    return { status: response.status, lease: text === '' ? undefined : JSON.parse(text) }
  }
  const acquire = (slot: string, holder: string, generation: number, ttlSeconds = 30) =>
    send('PUT', slot, { 'If-Match': String(generation) }, { holder, ttlSeconds })
  const countWaiters = async () => {
    const response = await fetch(`${witness.url}/leases?slot=waits`, {
      headers: { Authorization: `Bearer ${witness.token}` },
    })
    return statuses.parse(await response.json()).leases[0]?.waiters
  }

  test('a lease expires when the clock has moved', async () => {
    expect(await acquire('expiry', 'region-a', 0)).toMatchObject({ status: 200, lease: { generation: 1 } })
    expect(await acquire('expiry', 'region-b', 1)).toMatchObject({ status: 412 })
    const before = await witness.clock.now()
    await witness.clock.advance(30_000)
    expect((await witness.clock.now()).getTime() - before.getTime()).toBeGreaterThanOrEqual(30_000)
    const { status, lease } = await acquire('expiry', 'region-b', 1)
    expect([status, lease.holder]).toEqual([200, 'region-b'])
    expect(Date.parse(lease.acquiredAt) - before.getTime()).toBeGreaterThanOrEqual(30_000)
  })

  test('a client that waits for an expiry is notified when the clock has moved', async () => {
    await acquire('waits', 'region-a', 0, 86_400)
    const waiting = send('GET', 'waits?until=vacant', { Prefer: 'wait=60' })
    await expect.poll(countWaiters).toBe(1)
    await witness.clock.advance(86_400_000)
    expect(await waiting).toMatchObject({ status: 200, lease: { generation: 1 } })
  })

  test('moves of the clock add up', async () => {
    const before = await witness.clock.now()
    await Promise.all([60_000, 60_000, 60_000].map(ms => witness.clock.advance(ms)))
    expect((await witness.clock.now()).getTime() - before.getTime()).toBeGreaterThanOrEqual(180_000)
    const { lease } = await acquire('moves', 'region-a', 0)
    expect(Date.parse(lease.acquiredAt) - before.getTime()).toBeGreaterThanOrEqual(180_000)
  })

  test('the clock goes back as well', async () => {
    await acquire('back', 'region-a', 0)
    await witness.clock.advance(-3_600_000)
    expect(await acquire('back', 'region-b', 1)).toMatchObject({ status: 412, lease: { holder: 'region-a' } })
    await witness.clock.advance(3_600_000)
  })

  test.each([1e18, 6e12, -1e18, -9e11, Number.NaN, Number.POSITIVE_INFINITY])('no move by %d ms', async ms => {
    const before = await witness.clock.now()
    await expect(witness.clock.advance(ms)).rejects.toThrow(RangeError)
    expect((await witness.clock.now()).getTime() - before.getTime()).toBeLessThan(3_600_000)
  })

  test('it works at both ends of the clock', async () => {
    await using other = await startWitness({ on })
    const headers = { Authorization: `Bearer ${other.token}` }
    const body = JSON.stringify({ holder: 'region-a', ttlSeconds: 86_400 })
    for (const [slot, end] of [
      ['future', Date.UTC(2199, 11, 31)],
      ['past', Date.UTC(2000, 0, 2)],
    ] as const) {
      await other.clock.advance(end - (await other.clock.now()).getTime())
      const url = `${other.url}/lease/${slot}`
      const put = await fetch(url, { method: 'PUT', headers: { ...headers, 'If-Match': '0' }, body })
      expect(await put.json()).toMatchObject({ acquiredAt: expect.stringMatching(/^(?:2199-12|2000-01)/) })
      expect((await fetch(`${other.url}/history/${slot}`, { headers })).status).toBe(200)
    }
  })

  test('a response is lost after the write, and a request before it', async () => {
    const lostResponse = await witness.dropNextResponse({ method: 'PUT' })
    await expect(acquire('lost', 'region-a', 0)).rejects.toThrow('fetch failed')
    await lostResponse.occurred()
    expect(await send('GET', 'lost')).toMatchObject({ lease: { holder: 'region-a', generation: 1 } })
    const lostRequest = await witness.dropNextRequest({ method: 'PUT' })
    await expect(acquire('lost', 'region-a', 1)).rejects.toThrow('fetch failed')
    await lostRequest.occurred()
    expect(await send('GET', 'lost')).toMatchObject({ lease: { generation: 1 } })
  })

  test('it restarts after a kill, with its leases and its clock', async () => {
    const before = await witness.clock.now()
    const fault = await witness.killAfterWrite({ path: '/lease/kill' })
    await expect(acquire('kill', 'region-a', 0)).rejects.toThrow('fetch failed')
    await fault.occurred()
    expect(await send('GET', 'kill')).toMatchObject({ status: 200, lease: { holder: 'region-a', generation: 1 } })
    expect((await witness.clock.now()).getTime()).toBeGreaterThanOrEqual(before.getTime())
    const { lease } = await acquire('after-kill', 'region-a', 0)
    expect(Date.parse(lease.acquiredAt)).toBeGreaterThanOrEqual(before.getTime())
  })

  test.runIf(on === 'postgres')('it starts and restarts at the log level error', async () => {
    await using quiet = await startWitness({ on, env: { LOG_LEVEL: 'error' } })
    await quiet.kill()
    expect((await fetch(`${quiet.url}/healthz`)).status).toBe(200)
  })

  test.each<[options: object, message: string]>([
    [{ env: { MAX_WAIT_SECOND: '5' } }, 'did you mean MAX_WAIT_SECONDS?'],
    [{ env: { MAX_WAIT_SECONDS: 'abc' } }, 'MAX_WAIT_SECONDS must be a whole number'],
    [{ env: { MAX_REQUESTS_PER_MINUTE: '-3' } }, 'MAX_REQUESTS_PER_MINUTE must be a whole number'],
    [{ env: { TOKEN_POLICIES: '{' } }, 'TOKEN_POLICIES must be a JSON array'],
    [{ env: { LOG_LEVEL: 'warn' } }, 'LOG_LEVEL must be one of'],
    [{ env: { BEARER_TOKENS_CSV: 'x'.repeat(20) } }, 'use the option tokens'],
    [{ tokens: ['short'] }, 'has a token of fewer than 16 characters'],
    [{ tokens: ['schlüssel-0123456789'] }, 'must be tokens of printable ASCII'],
  ])('%j would have no effect: the start says why', async (options, message) => {
    await expect(startWitness({ on, ...options })).rejects.toThrow(message)
  })

  test.runIf(on === 'workerd')('settings of a worker only', async () => {
    await expect(startWitness({ env: { DRAIN: 'yes', JURISDICTION: 'x' } })).rejects.toThrow(
      /DRAIN must be true or false; JURISDICTION must be one of/,
    )
  })

  test('its log is readable', async () => {
    await send('GET', 'log')
    await expect.poll(() => witness.readLog()).toContainEqual(expect.stringContaining('"slot":"log"'))
  })
})
