import { startCloudflareDouble } from '@pool/test-kit/dns/cloudflare-double.ts'
import { withoutZoneMarker } from '@pool/test-kit/dns/zone-marker.ts'
import { type Api, runUntilExit, startApi, toApiEntry } from '@pool/test-kit/services.ts'
import { afterAll, describe, expect, test } from 'vitest'
import { createContractCall, createSteps, poolPath, startTestService } from '../support/service.ts'

const env = { PDM_OPERATOR_TOKENS: 'operator-token-of-tests', PDM_DNS_COMMIT_WAIT: '2s' }
const { api, call, database } = await startTestService(env)
const { reserveAndCommit, reserveName, commitBody } = createSteps(call)
const bearer = { Authorization: 'Bearer operator-token-of-tests' }
const started: Api[] = []
afterAll(() => Promise.all(started.map(({ process }) => process.stop())))

const post = (path: string, body?: unknown, { operatorUrl } = api) =>
  createContractCall(operatorUrl ?? '')('POST', `${poolPath}${path}`, body, bearer)
const resume = (trust: string, query = '', on = api) => post(`/resume${query}`, { trust }, on)
const startAnother = async (more: Record<string, string>): Promise<Api> => {
  const other = await startApi(database.url, { ...env, DNSPROVIDER_RECORD_NAMES: '@,*', ...more })
  started.push(other)
  return other
}

/** The zone as a newer state of the database would have written it. */
const makeZoneNewer = () => database.sql`
  update local_dns_record_sets set record_values = array[regexp_replace(record_values[1], 'serial=\\d+', 'serial=999')]
  where reversed_name = 'test.pool._allocation-serial'`

test('a zone that is written is not resumed', async () => {
  await reserveAndCommit('first')
  for (const query of ['', '?dryRun=true']) {
    const { status, body } = await resume('database', query)
    expect([status, body.error]).toEqual([409, 'not-stopped'])
  }
})

describe('a zone with a higher number than the database', () => {
  test('a commit: 202 with the reason; converge and the metrics name the cause', async () => {
    await makeZoneNewer()
    const { reservationToken } = await reserveName('late')
    const { status, body } = await call('POST', `${poolPath}/commit`, commitBody('late', reservationToken))
    expect([status, body.warning]).toEqual([202, 'dns-pending'])
    const shown = (await call('GET', `${poolPath}/allocations/late`)).body.dns
    expect(shown).toMatchObject({
      status: 'failing',
      detail: expect.stringMatching(/older than the last write.*resume/),
    })
    expect((await post('/converge?dryRun=true')).body).toMatchObject({ stopped: 'database-older', changeCount: 2 })
    const { text } = await call('GET', '/metrics')
    expect(text).toMatch(/^pdm_dns_failing_names\{zone="pool\.test",cause="database-older"\} 1$/m)
    expect(text).toMatch(/^pdm_dns_zone_stopped\{zone="pool\.test",cause="database-older"\} 1$/m)
  })

  test('with PDM_DNS_WRITES=off: 409 dns-writes-off, and a dry run works', async () => {
    const off = await startAnother({ PDM_DNS_WRITES: 'off' })
    const { status, body } = await resume('database', '', off)
    expect([status, body.error]).toEqual([409, 'dns-writes-off'])
    expect((await resume('database', '?dryRun=true', off)).body).toMatchObject({ dryRun: true, differenceCount: 1 })
  })

  test.each([undefined, {}, { trust: 'both' }, { trust: null }, []])('the body %j is rejected', async body => {
    const response = await post('/resume', body)
    expect([response.status, response.body.error]).toEqual(
      body === undefined ? [400, 'invalid-json'] : [422, 'invalid-format'],
    )
  })

  test('a dry run lists the difference, and a resume publishes it', async () => {
    const difference = { subdomain: 'late', databaseAddress: '203.0.113.10', action: 'publish' }
    const plan = { poolDomain: 'pool.test', cause: 'database-older', differences: [difference], differenceCount: 1 }
    expect((await resume('database', '?dryRun=true')).body).toEqual({ ...plan, dryRun: true })
    const { status, body } = await resume('database')
    expect([status, body]).toEqual([200, { ...plan, dryRun: false }])
    expect((await call('GET', `${poolPath}/allocations/late`)).body.dns).toEqual({ status: 'published' })
    expect((await post('/converge?dryRun=true')).body).not.toHaveProperty('stopped')
    expect((await call('GET', '/metrics')).text).not.toMatch(/^pdm_dns_zone_stopped/m)
  })
})

describe('another DNSPROVIDER_KIND', () => {
  test('the start fails with exit code 2 and says which kind the pool has', async () => {
    const { code, lines } = await runUntilExit({
      entry: toApiEntry(),
      env: {
        ...{ PORT: '0', PDM_DATABASE_URL: database.url, PDM_LOG_LEVEL: 'error' },
        ...{ DNSPROVIDER_KIND: 'cloudflare', DNSPROVIDER_CLOUDFLARE_API_TOKEN: 'x' },
      },
    })
    expect(code).toBe(2)
    expect(lines).toEqual([
      expect.stringMatching(/DNSPROVIDER_KIND is cloudflare, but pool\.test was published with local/),
    ])
  })

  test('PDM_DNS_PROVIDER_MOVE=true publishes every name there, and lists the former records', async () => {
    await using double = await startCloudflareDouble()
    double.addZone('pool.test')
    const moved = await startAnother({
      ...{ DNSPROVIDER_KIND: 'cloudflare', DNSPROVIDER_CLOUDFLARE_API_TOKEN: double.token },
      ...{ PDM_TEST_SETTINGS: JSON.stringify({ providerUrl: double.url }), PDM_DNS_PROVIDER_MOVE: 'true' },
    })
    expect((await post('/converge', undefined, moved)).status).toBe(200)
    const names = withoutZoneMarker(double.records('pool.test')).map(({ name }) => name)
    expect(names.sort()).toEqual(['*.first.pool.test', '*.late.pool.test', 'first.pool.test', 'late.pool.test'])
    const operator = createContractCall(moved.operatorUrl ?? '')
    const { status, body } = await operator('GET', `${poolPath}/former-records`, undefined, bearer)
    const data = ['203.0.113.10']
    expect([status, body]).toEqual([
      200,
      {
        poolDomain: 'pool.test',
        records: [
          { provider: 'local', name: '*.first.pool.test', type: 'A', data },
          { provider: 'local', name: '*.late.pool.test', type: 'A', data },
          { provider: 'local', name: '_allocation-serial.pool.test', type: 'TXT' },
          { provider: 'local', name: 'first.pool.test', type: 'A', data },
          { provider: 'local', name: 'late.pool.test', type: 'A', data },
        ],
      },
    ])
    // The replica with the former provider leaves the names to the other one.
    const { reservationToken } = await reserveName('third')
    const committed = await call('POST', `${poolPath}/commit`, commitBody('third', reservationToken))
    expect([committed.status, committed.body.dns.status]).toEqual([200, 'published'])
    expect(double.records('pool.test').some(({ name }) => name === 'third.pool.test')).toBe(true)
    await moved.process.stop()
  })
})
