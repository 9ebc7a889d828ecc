import { runDurableObjectAlarm } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { describe, expect, test } from 'vitest'
import { expectProblem, expectRetryAfter, parseLease } from '../http/support/bodies.ts'
import { put, send } from '../http/support/client.ts'
import { fakeClock } from '../http/support/clock.ts'
import { acquireWithCopy, freshPrefix, list } from '../http/support/lists.ts'
import { captureLogs } from '../http/support/logs.ts'
import { sendWithBindings } from './support/host.ts'
import { failingKv, kvKey, putLegacyRecord } from './support/kv.ts'
import { slotObject } from './support/object.ts'

const record = (generation: number) => ({
  holder: 'region-old',
  acquiredAt: '2026-01-01T00:00:00.000Z',
  expiresAt: '2026-01-01T00:00:30.000Z',
  generation,
})

test('a list is 503 when Workers KV fails, and leases are still granted', async () => {
  using logged = captureLogs()
  const response = await sendWithBindings(
    { OPENOVA_LEASES: failingKv as KVNamespace, LOG_LEVEL: 'error' },
    'GET',
    '/leases',
  )
  expectProblem(response, 503, 'copy-unavailable')
  expectRetryAfter(response)
  expect(response.text).not.toContain('KV is down')
  expect(logged.lines().map(({ msg }) => msg)).toEqual(['copy-unavailable', 'request'])
  expect((await put(`${freshPrefix()}a`, 0)).status).toBe(200)
})

describe('legacy records in the list', () => {
  test('are listed under the decoded slot before their import', async () => {
    const prefix = freshPrefix()
    const whole = encodeURIComponent(prefix)
    await putLegacyRecord(`${prefix}plain`, record(3))
    await putLegacyRecord(`${whole}encoded`, record(4))
    expect((await list({ prefix })).leases).toEqual([{ slot: `${prefix}plain`, ...record(3) }])
    expect((await list({ prefix: whole })).leases).toEqual([{ slot: `${prefix}encoded`, ...record(4) }])
  })

  test('are not listed twice after they were taken over', async () => {
    using _clock = fakeClock()
    const name = crypto.randomUUID()
    const slot = `ns/${name}`
    await putLegacyRecord(`ns%2F${name}`, record(4))
    const lease = parseLease(await put(slot, 4))
    await runDurableObjectAlarm(slotObject(slot))
    const all = await list({ prefix: 'ns' })
    expect(all.leases.filter(listed => listed.slot === slot)).toEqual([{ slot, ...lease }])
    expect((await list({ prefix: `ns%2F${name}` })).leases).toEqual([])
  })

  test.each([
    ['with a decoded key', 'ns/', 'ns%2F'],
    ['without a decoded key', 'ns%2F', 'ns%2f'],
  ])('are listed once if several encodings exist, %s', async (_, one, other) => {
    const name = crypto.randomUUID()
    await putLegacyRecord(`${one}${name}`, record(4))
    await putLegacyRecord(`${other}${name}`, record(6))
    const all = await list({ prefix: 'ns' })
    expect(all.leases.filter(({ slot }) => slot === `ns/${name}`)).toHaveLength(1)
  })

  test('are listed also with a holder that a PUT rejects', async () => {
    const slot = `${freshPrefix()}a`
    await putLegacyRecord(slot, { ...record(3), holder: 'région' })
    expect((await send('GET', `/leases?prefix=${slot}`)).json).toMatchObject({ leases: [{ slot, holder: 'région' }] })
  })

  test('that are not leases, or whose keys are not slots, are omitted', async () => {
    const prefix = freshPrefix()
    await putLegacyRecord(`${prefix}a`, 'junk')
    await putLegacyRecord(`${prefix}%zz`, record(3))
    await putLegacyRecord(`${prefix}b`, record(3))
    await env.OPENOVA_LEASES.put(`${prefix}not-a-lease`, '{}')
    expect((await list({ prefix })).leases.map(({ slot }) => slot)).toEqual([`${prefix}b`])
  })

  test('are read in as many bulk requests as needed', async () => {
    const prefix = freshPrefix()
    const names = Array.from({ length: 230 }, (_, i) => `${prefix}${String(i).padStart(3, '0')}`)
    await Promise.all(names.map(name => putLegacyRecord(name, record(1))))
    expect((await list({ prefix })).leases.map(({ slot }) => slot)).toEqual(names)
  })

  test('are ignored if our own copy exists', async () => {
    using _clock = fakeClock()
    const slot = `${freshPrefix()}a`
    const held = await acquireWithCopy(slot)
    await putLegacyRecord(encodeURIComponent(slot), record(99))
    expect((await list({ prefix: slot })).leases).toEqual([held])
    expect((await list({ prefix: encodeURIComponent(slot) })).leases).toEqual([])
    expect(await env.OPENOVA_LEASES.get(kvKey(slot))).not.toBeNull()
  })
})
