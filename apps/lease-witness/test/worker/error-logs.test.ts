import { expect, test } from 'vitest'
import { freshSlot, leasePath, OTHER_TOKEN, sendWith, TOKEN } from '../http/support/client.ts'
import { captureLogs } from '../http/support/logs.ts'
import { held, seed } from '../http/support/slots.ts'
import { failingKv, putLegacyRecord } from './support/kv.ts'
import { replaceKv } from './support/object.ts'

test('LOG_LEVEL error: one line for a failed request', async () => {
  const slot = freshSlot()
  await putLegacyRecord(slot, 'junk')
  using logged = captureLogs()
  await sendWith({ LOG_LEVEL: 'error' }, 'GET', leasePath(slot))
  expect(logged.lines()).toMatchObject([
    { level: 'error', msg: 'request', outcome: 'invalid-lease-record', status: 503, slot },
  ])
})

test('no line of an error contains a token', async () => {
  using logged = captureLogs()
  const slot = `${TOKEN}/${crypto.randomUUID()}`
  await replaceKv(slot, failingKv)
  await sendWith({ LOG_LEVEL: 'debug' }, 'GET', leasePath(slot))
  await replaceKv(slot, { getWithMetadata: () => Promise.reject(new Error(`no response for ${OTHER_TOKEN}`)) })
  await sendWith({ LOG_LEVEL: 'debug' }, 'GET', leasePath(slot))
  const broken = `${TOKEN}/${crypto.randomUUID()}`
  await putLegacyRecord(broken, TOKEN)
  await sendWith({ LOG_LEVEL: 'debug' }, 'GET', leasePath(broken))
  await seed(`${broken}/x`, held({ expiresAt: Number.NaN }))
  await sendWith({ LOG_LEVEL: 'debug' }, 'GET', leasePath(`${broken}/x`))
  expect(logged.lines().map(({ msg }) => msg)).toContain('unhandled-error')
  expect(logged.lines().map(({ msg }) => msg)).toContain('import-failed')
  for (const token of [TOKEN, OTHER_TOKEN]) expect(logged.text()).not.toContain(token)
})
