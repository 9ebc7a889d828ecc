import { startCloudflareDouble } from '@pool/test-kit/dns/cloudflare-double.ts'
import { until } from '@pool/test-kit/poll.ts'
import { startApi } from '@pool/test-kit/services.ts'
import { expect, test } from 'vitest'
import { createTestDatabase } from '../support/database.ts'
import { testWithDynadot } from '../support/dynadot-fixture.ts'
import { commit, pool, release, reserveToken } from '../support/operations.ts'

/** Records of a name, and the marker of the zone. */
const PER_NAME = 6
const WAITING = 8

const names = (count: number) => Array.from({ length: count }, (_, i) => `waits${i}`)

test('a full zone at Cloudflare: few calls for waiting names, none for other pools, and a release makes room', async () => {
  await using cleanup = new AsyncDisposableStack()
  const double = cleanup.use(await startCloudflareDouble())
  for (const zone of [pool, 'second.test']) double.addZone(zone)
  double.setQuota(pool, 2 * PER_NAME + 1)
  const database = await createTestDatabase({ connections: 2 })
  cleanup.defer(() => database.drop())
  const api = await startApi(database.url, {
    ...{ DNSPROVIDER_KIND: 'cloudflare', DNSPROVIDER_CLOUDFLARE_API_TOKEN: double.token, PDM_DNS_COMMIT_WAIT: '30s' },
    ...{ PDM_TEST_SETTINGS: JSON.stringify({ providerUrl: double.url }) },
    DNSPROVIDER_MANAGED_DOMAINS: `${pool},second.test`,
  })
  cleanup.defer(async () => void (await api.process.kill()))
  const grant = async (name: string) => commit(api, name, await reserveToken(api, name))
  for (const name of ['first', 'second']) expect((await grant(name)).status).toBe(200)
  double.resetCalls()
  for (const name of names(WAITING)) {
    const { status, body } = await grant(name)
    expect([status, body.detail]).toEqual([202, expect.stringContaining('no room')])
  }
  // All changes, those that need no room, and the first of the waiting names; the lists are of up to four names, or of the zone.
  expect(double.count('batch')).toBeLessThanOrEqual(3 * WAITING)
  expect(double.count('list')).toBeLessThanOrEqual(4 * WAITING)
  const [pause] = await database.sql<{ first: number; attempts: number }[]>`
    select min(extract(epoch from next_attempt_at - changed_at))::float8 as first, count(distinct next_attempt_at)::int as attempts
    from dns_names where applied_version < version`
  expect(pause?.first).toBeGreaterThan(50)
  expect(pause?.attempts).toBe(1)

  const second = '/api/v1/pool/second.test'
  const { body } = await api.call('POST', `${second}/reserve`, { subdomain: 'other' })
  const fields = { subdomain: 'other', reservationToken: body.reservationToken, loadBalancerIP: '192.0.2.1' }
  const other = await api.call('POST', `${second}/commit`, { ...fields, sovereignFQDN: 'other.second.test' })
  expect(other.status).toBe(200)

  expect((await release(api, 'first')).status).toBe(200)
  const published = () => new Set(double.records(pool).map(({ name }) => name.split('.').at(-3)))
  await until('the name that has waited longest is published', () => published().has('waits0'))
  expect([...published()].filter(label => label?.startsWith('waits'))).toEqual(['waits0'])
})

testWithDynadot(
  'a full domain at Dynadot: waiting names share their attempts, and a release makes room',
  {
    foreignSub: Array.from({ length: 98 }, (_, i) => ({ host: `x${i}`, type: 'A', value: '198.51.100.1', extra: '' })),
  },
  async fixture => {
    const { api, double, database } = fixture
    const grant = async (name: string) => commit(api, name, await reserveToken(api, name))
    expect((await grant('first')).status).toBe(200)
    double.resetCalls()
    for (const name of names(WAITING)) {
      const { status, body } = await grant(name)
      expect([status, body.detail]).toEqual([202, expect.stringContaining('no room')])
    }
    expect(double.calls).toMatchObject({ get_dns: 2 * WAITING, set_dns2: WAITING })
    const [pause] = await database.sql<{ attempts: number }[]>`
      select count(distinct next_attempt_at)::int as attempts from dns_names where applied_version < version`
    expect(pause?.attempts).toBe(1)
    expect((await release(api, 'first')).status).toBe(200)
    await until('a waiting name is published', () => double.domain(pool).sub.some(({ host }) => host === 'waits0'))
  },
)

testWithDynadot('a refusal of the account at Dynadot: one write, and no record is blamed', {}, async fixture => {
  const { api, double } = fixture
  expect((await commit(api, 'first', await reserveToken(api, 'first'))).status).toBe(200)
  double.resetCalls()
  double.fail('set_dns2', { error: 'you have reached the rate limit of your plan' })
  const { status, body } = await commit(api, 'acme', await reserveToken(api, 'acme'))
  expect([status, body.detail]).toEqual([202, expect.stringContaining('refuses calls of the account')])
  expect(double.calls.set_dns2).toBe(1)
})
