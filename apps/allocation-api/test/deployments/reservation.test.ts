import { expect, test } from 'vitest'
import { ReservationClient, type ReservationOperations } from '../../src/deployments/fqdn.ts'
import { hashToken } from '../../src/lib/token.ts'
import { specFor } from '../support/deployments-fixture.ts'

const unexpected = () => Promise.reject(new Error('unexpected call'))
const clientWithRenew = (renew: (...args: unknown[]) => Promise<unknown>, isActiveWithToken = false) =>
  new ReservationClient({
    reserve: unexpected,
    retake: unexpected,
    update: unexpected,
    commit: unexpected,
    release: unexpected,
    renew: renew as ReservationOperations['renew'],
    isActiveWithToken: async () => isActiveWithToken,
  })
const holder = {
  id: 'an-id',
  spec: specFor('acme'),
  lineageId: 'a-lineage',
  reservationTokenHash: hashToken('a-token'),
}

test.each([
  ['renewed', false, true],
  // Committed by this deployment, a moment before it is ready.
  ['already-active', true, true],
  ['already-active', false, false],
  ['not-found', false, false],
  ['reservation-expired', false, false],
  ['token-mismatch', false, false],
])(
  'a renewal with the outcome %s, active under its token: %s: the name is still held: %s',
  async (kind, isOwn, isHeld) => {
    const calls: unknown[] = []
    const client = clientWithRenew(async (...args) => {
      calls.push(args)
      return { kind }
    }, isOwn)
    expect(await client.renew(holder)).toBe(isHeld)
    expect(calls).toEqual([[{ poolDomain: 'pool.test', subdomain: 'acme', tokenHash: hashToken('a-token') }]])
  },
)

test('without a name there is nothing to renew, commit or release', async () => {
  const client = clientWithRenew(unexpected)
  const nameless = { ...holder, spec: specFor('acme', { name: null }), reservationTokenHash: null }
  expect(await client.renew(nameless)).toBe(true)
  expect(await client.commit(nameless, '192.0.2.1')).toEqual({ kind: 'committed', isPublished: true })
  expect(await client.release(nameless)).toBeUndefined()
})
