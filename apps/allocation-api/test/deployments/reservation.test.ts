import { expect, test } from 'vitest'
import { ReservationClient, type ReservationOperations } from '../../src/deployments/reservation.ts'
import { hashToken } from '../../src/lib/token.ts'
import { specFor } from '../support/deployments-fixture.ts'

const unexpected = () => Promise.reject(new Error('unexpected call'))
const clientWithRenew = (renew: (...args: unknown[]) => Promise<unknown>) =>
  new ReservationClient({
    commit: unexpected,
    release: unexpected,
    renew: renew as ReservationOperations['renew'],
    isActiveWithToken: unexpected,
  })
const holder = { id: 'an-id', spec: specFor('acme'), reservationTokenHash: hashToken('a-token') }

test.each([
  ['renewed', true],
  // Committed by this deployment, a moment before it is ready.
  ['already-active', true],
  ['not-found', false],
  ['reservation-expired', false],
  ['token-mismatch', false],
])('a renewal with the outcome %s: the name is still held: %s', async (kind, isHeld) => {
  const calls: unknown[] = []
  const client = clientWithRenew(async (...args) => {
    calls.push(args)
    return { kind }
  })
  expect(await client.renew(holder)).toBe(isHeld)
  expect(calls).toEqual([
    [
      { poolDomain: 'pool.test', subdomain: 'acme', tokenHash: hashToken('a-token') },
      { actor: 'deployment', address: null, requestId: 'an-id' },
    ],
  ])
})

test('without a name there is nothing to renew, commit or release', async () => {
  const client = clientWithRenew(unexpected)
  const nameless = { ...holder, spec: specFor('acme', { name: null }), reservationTokenHash: null }
  expect(await client.renew(nameless)).toBe(true)
  expect(await client.commit(nameless, '192.0.2.1')).toEqual({ kind: 'committed', isPublished: true })
  expect(await client.release(nameless)).toBeUndefined()
})
