import { describe, expect, test } from 'vitest'
import { createContractCall, createSteps, poolPath, startTestService } from '../support/service.ts'

const { api, call, database } = await startTestService({ PDM_OPERATOR_TOKENS: 'operator-token-of-tests' })
const { reserveAndCommit, reserveName } = createSteps(call)
const operator = createContractCall(api.operatorUrl ?? '')
const converge = (query = '') =>
  operator('POST', `${poolPath}/converge${query}`, undefined, { Authorization: 'Bearer operator-token-of-tests' })

const removeRecords = (subdomain: string) => database.sql`
  delete from local_dns_record_sets where reversed_name like ${`test.pool.${subdomain}%`}`
const readRecords = async (subdomain: string) => {
  const rows = await database.sql<{ type: string; values: string[] }[]>`
    select type, array_to_json(record_values) as values from local_dns_record_sets
    where reversed_name like ${`test.pool.${subdomain}%`} order by reversed_name`
  return rows.map(({ type, values }) => [type, ...values])
}
const nothing = { changes: [], changeCount: 0, conflicts: [], conflictCount: 0, orphans: [], orphanCount: 0 }

test('a zone without drift: 200 and no changes, with dryRun or without', async () => {
  await reserveAndCommit('right')
  await reserveName('only-reserved')
  for (const [query, dryRun] of [
    ['?dryRun=true', true],
    ['?dryRun=false', false],
    ['', false],
  ] as const) {
    const { status, body } = await converge(query)
    expect([status, body]).toEqual([200, { poolDomain: 'pool.test', dryRun, ...nothing }])
  }
})

test('dryRun=true reports the planned changes by name and applies none', async () => {
  await reserveAndCommit('first')
  await reserveAndCommit('second')
  await removeRecords('first')
  await removeRecords('second')
  const { status, body } = await converge('?dryRun=true')
  expect(status).toBe(200)
  const upsert = (subdomain: string, name: string) => ({
    subdomain,
    action: 'upsert',
    name,
    type: 'A',
    ttl: 300,
    values: ['203.0.113.10'],
  })
  expect(body).toEqual({
    poolDomain: 'pool.test',
    dryRun: true,
    changes: ['first', 'second'].flatMap(name => [
      upsert(name, `${name}.pool.test`),
      upsert(name, `*.${name}.pool.test`),
    ]),
    changeCount: 4,
    conflicts: [],
    conflictCount: 0,
    orphans: [],
    orphanCount: 0,
  })
  expect(await readRecords('first')).toEqual([])
})

test('without dryRun the repair is complete in the response and in the history', async () => {
  const { status, body } = await converge()
  expect([status, body.changeCount, body.dryRun]).toEqual([200, 4, false])
  expect(await readRecords('first')).toEqual([
    ['A', '203.0.113.10'],
    ['A', '203.0.113.10'],
  ])
  const { entries } = (await call('GET', `${poolPath}/history?sub=first&limit=1`)).body
  expect(entries).toMatchObject([{ event: 'repaired', actor: 'convergence', detail: expect.stringMatching(/^2 /) }])
})

describe('a foreign record in the way of a name', () => {
  test('202: a conflict with its reason, the other names repaired, the metric counts it', async () => {
    await reserveAndCommit('blocked')
    await removeRecords('blocked')
    await removeRecords('first')
    await database.sql`
      insert into local_dns_record_sets (zone, reversed_name, type, ttl, record_values)
      values ('pool.test', 'test.pool.blocked', 'CNAME', 60, array['elsewhere.example.'])`
    const { status, body } = await converge()
    expect(status).toBe(202)
    expect(body).toMatchObject({
      warning: 'dns-pending',
      detail: expect.stringMatching(/^1 name\(s\) do not have their desired records yet; 1 of them failed/),
      conflicts: [{ subdomain: 'blocked', detail: expect.stringContaining('CNAME') }],
      conflictCount: 1,
      changeCount: 2,
    })
    expect(await readRecords('first')).toHaveLength(2)
    expect(await readRecords('blocked')).toEqual([['CNAME', 'elsewhere.example.']])
    const { text } = await call('GET', '/metrics')
    expect(text).toMatch(/^pdm_dns_failing_names\{zone="pool\.test",cause="foreign-record"\} 1$/m)
    expect(text).toMatch(/^pdm_dns_drifted_names_total\{zone="pool\.test"\} [1-9]/m)
    expect(text).toMatch(/^pdm_dns_drift_checks_total\{zone="pool\.test",outcome="compared"\} [1-9]/m)
  })

  test('GET shows the conflict until the record is deleted and the zone is synced again', async () => {
    const dns = async () => (await call('GET', `${poolPath}/allocations/blocked`)).body.dns
    expect(await dns()).toEqual({ status: 'failing', detail: expect.stringContaining('Delete it') })
    await removeRecords('blocked')
    expect((await converge()).status).toBe(200)
    expect(await dns()).toEqual({ status: 'published' })
  })
})

test('a provider that does not answer: 503 dns-unavailable with Retry-After, without internal details', async () => {
  await database.sql`alter table local_dns_record_sets rename to local_dns_record_sets_away`
  for (const query of ['?dryRun=true', '']) {
    const { status, body, headers, text } = await converge(query)
    expect([status, body.error]).toEqual([503, 'dns-unavailable'])
    expect(Number(headers.get('retry-after'))).toBeGreaterThan(0)
    expect(text).not.toMatch(/local_dns|relation|42P01/)
  }
  await database.sql`alter table local_dns_record_sets_away rename to local_dns_record_sets`
})
