import { startApi } from '@pool/test-kit/services.ts'
import { expect, test } from 'vitest'
import {
  createSteps,
  DEFAULT_RESERVATION_TTL_MS,
  poolPath,
  startTestService,
  unknownToken,
} from '../support/service.ts'

const { call, database } = await startTestService({
  PDM_RELEASE_TOKEN: 'required',
  PDM_NAME_COOL_OFF: '1h',
  DNSPROVIDER_MANAGED_DOMAINS: 'pool.test draining.test',
})
const { reserveName, reserveAndCommit } = createSteps(call)
const release = (pool: string, subdomain: string, reservationToken?: string, query = '') =>
  call('DELETE', `/api/v1/pool/${pool}/release${query}`, {
    subdomain,
    ...(reservationToken !== undefined && { reservationToken }),
  })
const statusOf = async (...request: Parameters<typeof release>) => (await release(...request)).status

const tokens = {
  expired: (await reserveName('expired')).reservationToken,
  active: (await reserveAndCommit('active')).reservationToken,
  'cooling-off': (await reserveAndCommit('cooling-off')).reservationToken,
  held: (await reserveAndCommit('held')).reservationToken,
}
await database.advance(DEFAULT_RESERVATION_TTL_MS)
const reserved = (await reserveName('reserved')).reservationToken
await database.sql`update pool_allocations set lineage_id = gen_random_uuid() where subdomain = 'held'`
for (const subdomain of ['cooling-off', 'held'] as const) await release('pool.test', subdomain, tokens[subdomain])

test.each<readonly [subdomain: string, reason: string | undefined, status: number, own: string | null]>([
  ['never-reserved', undefined, 404, null],
  ['www', 'reserved', 404, null],
  ['expired', undefined, 404, tokens.expired],
  ['cooling-off', 'cooling-off', 404, tokens['cooling-off']],
  ['held', 'active-state', 403, tokens.held],
  ['reserved', 'reserved-state', 403, null],
  ['active', 'active-state', 403, null],
])('without the token of a name, no more is told than by check: %s, %s, %i', async (subdomain, reason, status, own) => {
  expect((await call('GET', `${poolPath}/check?sub=${subdomain}`)).body.reason).toBe(reason)
  for (const query of ['', '?dryRun=true']) {
    expect(await statusOf('pool.test', subdomain, unknownToken, query)).toBe(status)
    expect(await statusOf('pool.test', subdomain, undefined, query)).toBe(403)
    if (own) expect(await statusOf('pool.test', subdomain, own, query), 'its former client: it is gone').toBe(404)
  }
})

test('the response says what to send', async () => {
  const { detail } = (await call('DELETE', `${poolPath}/release?sub=active`)).body
  expect(detail).toMatch(/reservationToken.*X-Deployment-Token.*operator/)
})

test('a repeated release replays its result under its key, and is 404 without one', async () => {
  const { reservationToken } = await reserveName('twice')
  const send = (headers?: Record<string, string>) =>
    call('DELETE', `${poolPath}/release`, { subdomain: 'twice', reservationToken }, headers)
  const key = { 'Idempotency-Key': 'a-key-of-more-than-sixteen' }
  expect([(await send(key)).status, (await send(key)).status, (await send()).status]).toEqual([200, 200, 404])
})

test('the own token releases a name, reserved or active', async () => {
  expect(await statusOf('pool.test', 'reserved', reserved)).toBe(200)
  expect(await statusOf('pool.test', 'active', tokens.active, '?sub=other')).toBe(200)
})

test('in a draining pool, of which check tells no states, only the own token is not 403', async () => {
  const path = '/api/v1/pool/draining.test'
  const { body } = await call('POST', `${path}/reserve`, { subdomain: 'one' })
  const env = { PDM_RELEASE_TOKEN: 'required', PDM_NAME_COOL_OFF: '1h', PDM_SWEEPER_INTERVAL: '1h' }
  await using draining = await startApi(database.url, env)
  const statuses = []
  for (const subdomain of ['one', 'free'])
    for (const reservationToken of [undefined, unknownToken, body.reservationToken])
      for (const query of ['?dryRun=true', ''])
        statuses.push(
          (await draining.call('DELETE', `${path}/release${query}`, { subdomain, reservationToken })).status,
        )
  expect(statuses).toEqual([403, 403, 403, 403, 200, 200, 403, 403, 403, 403, 403, 403])
})
