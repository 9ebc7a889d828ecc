import { expect, test } from 'vitest'
import { createNames, type ReservationOperations } from '../../src/deployments/reservation.ts'
import { orderFor } from '../support/deployments-fixture.ts'

const never = () => Promise.reject(new Error('not asked for here'))
const namesThatRenew = (renew: (...args: unknown[]) => Promise<unknown>) =>
  createNames({
    commit: never,
    release: never,
    renew: renew as ReservationOperations['renew'],
    isActiveWithToken: never,
  })
const job = { id: 'an-id', order: orderFor('acme'), reservationToken: 'a-token' }

test.each([
  ['renewed', true],
  // Committed by this deployment, a moment before it is ready.
  ['already-active', true],
  ['not-found', false],
  ['reservation-expired', false],
  ['token-mismatch', false],
])('a renewal that comes to %s: the name is kept: %s', async (kind, isKept) => {
  const asked: unknown[] = []
  const names = namesThatRenew(async (...args) => {
    asked.push(args)
    return { kind }
  })
  expect(await names.keep(job)).toBe(isKept)
  expect(asked).toEqual([
    [
      { poolDomain: 'pool.test', subdomain: 'acme', reservationToken: 'a-token' },
      { actor: 'deployment', address: null, requestId: 'an-id' },
    ],
  ])
})

test('without a name there is nothing to keep, take or free', async () => {
  const names = namesThatRenew(never)
  const nameless = { ...job, order: orderFor('acme', { name: null }), reservationToken: null }
  expect(await names.keep(nameless)).toBe(true)
  expect(await names.take(nameless, '192.0.2.1')).toEqual({ kind: 'taken', isPublished: true })
  expect(await names.free(nameless)).toBeUndefined()
})
