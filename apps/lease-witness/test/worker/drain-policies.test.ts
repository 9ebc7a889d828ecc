import { expect, test } from 'vitest'
import { expectProblem } from '../http/support/bodies.ts'
import { sendWithBindings } from './support/host.ts'

const TOKEN = 'token-that-may-write-every-slot-012345'
const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(TOKEN)))
const hex = [...digest].map(byte => byte.toString(16).padStart(2, '0')).join('')
const TOKEN_POLICIES = JSON.stringify([{ name: 'all-slots', token: `sha256:${hex}`, access: 'write' }])

test('a token with a policy cannot drain the leases, even if it may write every slot', async () => {
  const authorization = `Bearer ${TOKEN}`
  const bindings = { TOKEN_POLICIES, DRAIN: 'true' }
  expectProblem(await sendWithBindings(bindings, 'POST', '/leases/drain', { authorization }), 403, 'forbidden')
  expect((await sendWithBindings(bindings, 'POST', '/leases/drain')).status).toBe(200)
})
