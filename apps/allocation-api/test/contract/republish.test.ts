import { startApi } from '@pool/test-kit/services.ts'
import { afterAll, expect, test } from 'vitest'
import { createContractCall, createSteps, poolPath, startTestService } from '../support/service.ts'

const tokens = { PDM_OPERATOR_TOKENS: 'operator-token-of-tests' }
const { database, call } = await startTestService(tokens)
const { reserveAndCommit, reserveName } = createSteps(call)
const changed = await startApi(database.url, {
  ...tokens,
  PDM_SWEEPER_INTERVAL: '1h',
  DNSPROVIDER_RECORD_NAMES: '@,api',
  DNSPROVIDER_RECORD_TTL: '60s',
})
afterAll(() => changed.process.stop())
const operator = createContractCall(changed.operatorUrl ?? '')
const republish = (query = '') =>
  operator('POST', `${poolPath}/republish${query}`, undefined, { Authorization: 'Bearer operator-token-of-tests' })

const readRecords = () => database.sql<{ name: string; ttl: number }[]>`
  select reversed_name as name, ttl from local_dns_record_sets where type = 'A' order by reversed_name`
const readEvents = async (subdomain: string) =>
  (await call('GET', `${poolPath}/history?sub=${subdomain}`)).body.entries.toReversed()

const upsert = (subdomain: string, name: string) => ({
  ...{ subdomain, action: 'upsert', name, type: 'A', ttl: 60, values: ['203.0.113.10'] },
})
const changesOf = (subdomain: string) => [
  { subdomain, action: 'delete', name: `*.${subdomain}.pool.test`, type: 'A' },
  upsert(subdomain, `${subdomain}.pool.test`),
  upsert(subdomain, `api.${subdomain}.pool.test`),
]

test('dryRun=true lists what the current template changes, and changes nothing', async () => {
  await reserveAndCommit('first')
  await reserveAndCommit('second')
  await reserveName('only-reserved')
  await reserveAndCommit('released')
  await call('DELETE', `${poolPath}/release?sub=released`)
  const before = await readRecords()
  const { status, body } = await republish('?dryRun=true')
  expect([status, body]).toEqual([
    200,
    {
      poolDomain: 'pool.test',
      dryRun: true,
      changes: [...changesOf('first'), ...changesOf('second')],
      changeCount: 6,
      nameCount: 2,
    },
  ])
  expect(await readRecords()).toEqual(before)
  expect((await readEvents('first')).map(({ event }: { event: string }) => event)).toEqual([
    'reserved',
    'committed',
    'published',
  ])
})

test('without dryRun the records are published in the response, and the history names the operator', async () => {
  const { status, body } = await republish()
  expect([status, body]).toMatchObject([200, { dryRun: false, changeCount: 6, nameCount: 2 }])
  expect([...(await readRecords())]).toEqual(
    ['test.pool.first', 'test.pool.first.api', 'test.pool.second', 'test.pool.second.api'].map(name => ({
      name,
      ttl: 60,
    })),
  )
  expect((await readEvents('first')).slice(3)).toMatchObject([
    { event: 'republished', from: 'active', to: 'active', actor: 'operator', requestId: expect.any(String) },
    { event: 'published', actor: 'convergence' },
  ])
})

test('a second call changes nothing', async () => {
  const before = await readEvents('first')
  const { status, body } = await republish()
  expect([status, body]).toEqual([
    200,
    { poolDomain: 'pool.test', dryRun: false, changes: [], changeCount: 0, nameCount: 0 },
  ])
  expect(await readEvents('first')).toEqual(before)
})

test('a record of another writer in the way of a new name: 202, and the others are published', async () => {
  await reserveAndCommit('blocked')
  await reserveAndCommit('free')
  await database.sql`
    insert into local_dns_record_sets (zone, reversed_name, type, ttl, record_values)
    values ('pool.test', 'test.pool.blocked.api', 'CNAME', 60, array['elsewhere.example.'])`
  const { status, body } = await republish()
  expect([status, body]).toMatchObject([202, { warning: 'dns-pending', nameCount: 2 }])
  const dns = async (subdomain: string) => (await call('GET', `${poolPath}/allocations/${subdomain}`)).body.dns.status
  expect([await dns('blocked'), await dns('free')]).toEqual(['failing', 'published'])
})
