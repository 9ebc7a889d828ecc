import { expect, test } from 'vitest'
import { expectLease, expectProblem } from '../http/support/bodies.ts'
import { freshSlot, leasePath, type SendOptions } from '../http/support/client.ts'
import { captureLogs } from '../http/support/logs.ts'
import { sendWithBindings } from './support/host.ts'

const TOKEN = 'token-of-a-stored-policy-0123456789'
const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(TOKEN)))
const hex = [...digest].map(byte => byte.toString(16).padStart(2, '0')).join('')
const policies = JSON.stringify([{ name: 'stored', token: `sha256:${hex}`, access: 'write' }])

const write: SendOptions = {
  authorization: `Bearer ${TOKEN}`,
  headers: { 'If-Match': '0', 'X-Holder': 'region-a' },
}

test('a token of a policy in the Secrets Store is accepted', async () => {
  const TOKEN_POLICIES = { get: async () => policies }
  expectLease(await sendWithBindings({ TOKEN_POLICIES }, 'PUT', leasePath(freshSlot()), write), 200, { generation: 1 })
})

test('while the Secrets Store does not respond: 503, but tokens of BEARER_TOKENS_CSV are accepted', async () => {
  using logged = captureLogs()
  const TOKEN_POLICIES = { get: () => Promise.reject(new Error('no response')) }
  const path = leasePath(freshSlot())
  expectProblem(await sendWithBindings({ TOKEN_POLICIES }, 'PUT', path, write), 503, 'lease-unavailable')
  expect(logged.lines()).toContainEqual(
    expect.objectContaining({ msg: 'policies-unavailable', reason: 'Error: no response' }),
  )
  const { headers } = write
  const listed = await sendWithBindings({ TOKEN_POLICIES }, 'PUT', path, headers ? { headers } : {})
  expectLease(listed, 200, { generation: 1 })
  const anonymous = await sendWithBindings({ TOKEN_POLICIES }, 'PUT', path, { authorization: null })
  expect(anonymous.status).toBe(401)
})
