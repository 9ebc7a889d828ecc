import { beforeAll, describe, expect, test } from 'vitest'
import { createContractCall, createSteps, poolPath, startTestService } from '../support/service.ts'

const { api, call, database } = await startTestService({ PDM_OPERATOR_TOKENS: 'operator-token-of-tests' })
const { reserveAndCommit } = createSteps(call)
const operator = createContractCall(api.operatorUrl ?? '')
const change = (path: string, body?: unknown) =>
  operator('POST', `${poolPath}/orphans/${path}`, body, { Authorization: 'Bearer operator-token-of-tests' })

const putRecords = (subdomain: string) => database.sql`
  insert into local_dns_record_sets (zone, reversed_name, type, ttl, record_values)
  select 'pool.test', 'test.pool.' || name, 'A', 300, array['203.0.113.77']
  from unnest(array[${subdomain}::text, ${`${subdomain}.*`}::text]) name`
const orphan = (subdomain: string) => ({
  subdomain,
  loadBalancerIP: '203.0.113.77',
  records: [subdomain, `*.${subdomain}`].map(name => ({
    name: `${name}.pool.test`,
    type: 'A',
    ttl: 300,
    data: ['203.0.113.77'],
  })),
  otherRecordCount: 0,
})

test('a dry run lists them and changes nothing; converge lists them as well', async () => {
  await reserveAndCommit('known')
  await putRecords('one')
  await putRecords('two')
  for (const path of ['adopt?dryRun=true', 'remove?dryRun=true']) {
    const { status, body } = await change(path)
    expect([status, body]).toEqual([
      200,
      {
        poolDomain: 'pool.test',
        dryRun: true,
        orphans: [orphan('one'), orphan('two')],
        orphanCount: 2,
        changedCount: 0,
      },
    ])
  }
  const { body } = await operator('POST', `${poolPath}/converge?dryRun=true`, undefined, {
    Authorization: 'Bearer operator-token-of-tests',
  })
  expect(body).toMatchObject({ changeCount: 0, orphans: [orphan('one'), orphan('two')], orphanCount: 2 })
  expect((await call('GET', `${poolPath}/allocations/one`)).status).toBe(404)
})

test('adopt makes the chosen names allocations, and remove deletes the records of the others', async () => {
  const adopted = await change('adopt', { subdomains: ['One', 'known', 'none'] })
  expect([adopted.status, adopted.body]).toMatchObject([200, { orphans: [orphan('one')], changedCount: 1 }])
  expect((await call('GET', `${poolPath}/allocations/one`)).body).toMatchObject({
    state: 'active',
    loadBalancerIP: '203.0.113.77',
    createdBy: 'operator',
    dns: { status: 'published' },
  })
  const removed = await change('remove')
  expect([removed.status, removed.body]).toMatchObject([200, { orphans: [orphan('two')], changedCount: 1 }])
  const [rows] = await database.sql`
    select count(*)::int as two from local_dns_record_sets where reversed_name like 'test.pool.two%'`
  expect(rows).toEqual({ two: 0 })
  const history = await call('GET', `${poolPath}/history`)
  expect(
    history.body.entries
      .map(({ subdomain, event, actor }: Record<string, string>) => [subdomain, event, actor])
      .slice(0, 4),
  ).toEqual([
    ['two', 'withdrawn', 'convergence'],
    ['two', 'orphan-removed', 'operator'],
    ['one', 'published', 'convergence'],
    ['one', 'adopted', 'operator'],
  ])
})

describe('rejections', () => {
  beforeAll(() => putRecords('left'))

  test.each([
    [{ subdomains: null }, 'invalid-format'],
    [{ subdomains: [] }, 'invalid-format'],
    [{ subdomains: ['-'] }, 'invalid-format'],
    [{ subdomains: 'one' }, 'invalid-format'],
    [{ subdomains: Array.from({ length: 1_001 }, (_, i) => `n${i}`) }, 'invalid-format'],
    [[], 'invalid-format'],
    [null, 'invalid-format'],
    ['"AAA"', 'invalid-format'],
    [1, 'invalid-format'],
    [0, 'invalid-format'],
    [false, 'invalid-format'],
  ])('%j: 422 %s, and no orphan is changed', async (body, error) => {
    for (const path of ['adopt', 'remove']) {
      const answer = await change(path, body)
      expect([answer.status, answer.body.error]).toEqual([422, error])
    }
    expect((await change('remove?dryRun=true')).body.orphans).toEqual([orphan('left')])
  })
})

test('a provider that does not answer: 503 dns-unavailable', async () => {
  await database.sql`alter table local_dns_record_sets rename to local_dns_record_sets_away`
  const { status, body } = await change('adopt')
  expect([status, body.error]).toEqual([503, 'dns-unavailable'])
  await database.sql`alter table local_dns_record_sets_away rename to local_dns_record_sets`
})
