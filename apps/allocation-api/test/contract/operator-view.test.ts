import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ListedName } from '@pool/contract'
import { until } from '@pool/test-kit/poll.ts'
import { afterAll, beforeEach, describe, expect, test } from 'vitest'
import { parseEvents, type StreamedEvent } from '../support/events.ts'
import { createContractCall, createSteps, poolPath, startTestService } from '../support/service.ts'

const folder = mkdtempSync(join(tmpdir(), 'console-'))
writeFileSync(join(folder, '..', 'outside.js'), 'outside')
afterAll(() => rmSync(folder, { recursive: true }))

/** A lease witness whose next response is `respond`. */
let respond: (request: IncomingMessage) => { status: number; body?: unknown } = () => ({ status: 500 })
const requests: IncomingMessage[] = []
const witness = createServer((request, response) => {
  requests.push(request)
  const { status, body } = respond(request)
  response.writeHead(status, { 'Content-Type': 'application/json', Location: 'http://127.0.0.1:1/' })
  response.end(body === undefined ? undefined : JSON.stringify(body))
})
await new Promise<void>(resolve => witness.listen(0, '127.0.0.1', resolve))
afterAll(() => witness.close())

const { api, database } = await startTestService({
  PDM_OPERATOR_TOKENS: 'operator-token-of-tests',
  DNSPROVIDER_MANAGED_DOMAINS: 'pool.test other.test',
  PDM_NAME_COOL_OFF: '1h',
  PDM_WITNESS_URL: `http://127.0.0.1:${(witness.address() as AddressInfo).port}/`,
  PDM_WITNESS_TOKEN: 'witness-token',
  PDM_TEST_SETTINGS: JSON.stringify({ consoleFolder: folder }),
})
const authorization = { Authorization: 'Bearer operator-token-of-tests' }
const contractCall = createContractCall(api.operatorUrl ?? '')
const call = (method: string, path: string, body?: unknown, headers: Record<string, string> = {}) =>
  contractCall(method, path, body, { ...authorization, ...headers })
const { reserveName, reserveAndCommit } = createSteps(call)

const search = async (query: Record<string, string>) => {
  const names: ListedName[] = []
  for (let cursor: string | undefined, isLast = false; !isLast; ) {
    const { status, body } = await call(
      'GET',
      `/api/v1/names?${new URLSearchParams({ ...query, ...(cursor ? { cursor } : {}) })}`,
    )
    expect(status).toBe(200)
    names.push(...body.names)
    cursor = body.nextCursor
    isLast = cursor === undefined
  }
  return names
}
/** Yields the events of a stream as they arrive, until the caller stops. */
async function* followChanges(headers: Record<string, string> = {}): AsyncGenerator<StreamedEvent, void> {
  const connection = new AbortController()
  const url = `${api.operatorUrl}/api/v1/changes`
  const response = await fetch(url, { headers: { ...authorization, ...headers }, signal: connection.signal })
  const decoder = new TextDecoder()
  let text = ''
  let count = 0
  try {
    for await (const chunk of response.body ?? []) {
      text += decoder.decode(chunk, { stream: true })
      const events = parseEvents(text.slice(0, text.lastIndexOf('\n\n') + 2))
      yield* events.slice(count)
      count = events.length
    }
  } finally {
    connection.abort()
  }
}
/** The next event that names the topic. */
const nextWith = async (events: AsyncGenerator<StreamedEvent, void>, topic: string): Promise<StreamedEvent> => {
  for await (const event of { [Symbol.asyncIterator]: () => ({ next: () => events.next() }) }) {
    if (JSON.parse(event.data).topics.includes(topic)) return event
  }
  throw new Error('the stream has ended')
}

const findLabels = async (query: Record<string, string>) =>
  (await search(query)).map(({ subdomain, poolDomain }) => `${subdomain}.${poolDomain}`)

describe('the search', async () => {
  await reserveName('alpha', { createdBy: 'ci-1' })
  await reserveAndCommit('alpine', { createdBy: 'ci-2' })
  await reserveAndCommit('beta', { createdBy: 'Zoë' })
  await call('POST', '/api/v1/pool/other.test/reserve', { subdomain: 'alpha', createdBy: 'ci-2' })
  const released = await reserveAndCommit('gamma', { createdBy: 'ops' })
  await call('DELETE', `${poolPath}/release`, { subdomain: 'gamma', reservationToken: released.reservationToken })

  test.each<readonly [query: Record<string, string>, names: readonly string[]]>([
    [{}, ['alpha.other.test', 'alpha.pool.test', 'alpine.pool.test', 'beta.pool.test', 'gamma.pool.test']],
    [{ q: 'al' }, ['alpha.other.test', 'alpha.pool.test', 'alpine.pool.test']],
    [{ q: ' ALP ' }, ['alpha.other.test', 'alpha.pool.test', 'alpine.pool.test']],
    [{ q: 'alpha.' }, ['alpha.other.test', 'alpha.pool.test']],
    [{ q: 'alpha.po' }, ['alpha.pool.test']],
    [{ q: 'al', pool: 'pool.test' }, ['alpha.pool.test', 'alpine.pool.test']],
    [{ q: 'x' }, []],
    [{ q: '"; drop table' }, []],
    [{ address: '203.0.113.10' }, ['alpine.pool.test', 'beta.pool.test']],
    [{ address: '203.0' }, ['alpine.pool.test', 'beta.pool.test']],
    [{ address: '203.1' }, []],
    [{ address: '203', q: 'b' }, ['beta.pool.test']],
    [{ createdBy: 'ci' }, ['alpha.pool.test', 'alpha.other.test', 'alpine.pool.test']],
    [{ createdBy: 'ci-2', pool: 'pool.test' }, ['alpine.pool.test']],
    [{ createdBy: 'Zo' }, ['beta.pool.test']],
    [{ createdBy: 'zo' }, []],
    [{ state: 'active' }, ['alpine.pool.test', 'beta.pool.test']],
    [{ state: 'reserved' }, ['alpha.other.test', 'alpha.pool.test']],
    [{ state: 'cooling-off' }, ['gamma.pool.test']],
    [{ state: 'held' }, []],
    [{ dns: 'published' }, ['alpine.pool.test', 'beta.pool.test']],
    [{ dns: 'failing' }, []],
    [{ state: 'reserved', dns: 'published' }, []],
  ])('%j', async (query, names) => {
    expect(await findLabels(query)).toEqual(names)
    // Every page size leads to the same list.
    expect(await findLabels({ ...query, limit: '1' })).toEqual(names)
  })

  test('a name has its state and the status of its records', async () => {
    const [alpha, alpine, , gamma] = (await search({ pool: 'pool.test' })).map(({ reservedAt, ...name }) => name)
    expect(alpha).toEqual({
      poolDomain: 'pool.test',
      subdomain: 'alpha',
      state: 'reserved',
      createdBy: 'ci-1',
      expiresAt: expect.any(String),
    })
    expect(alpine).toMatchObject({ state: 'active', loadBalancerIP: '203.0.113.10', dns: { status: 'published' } })
    expect(gamma).toMatchObject({ state: 'cooling-off', availableAt: expect.any(String), dns: { status: 'published' } })
  })

  test('an expired reservation is free', async () => {
    await reserveName('expired')
    await database.sql`update pool_allocations set reserved_at = now() - interval '2 h', expires_at = now() - interval '1 h' where subdomain = 'expired'`
    expect(await findLabels({ q: 'expired' })).toEqual([])
    expect(await findLabels({ state: 'reserved', q: 'expired' })).toEqual([])
  })

  test('names whose records are not published are found by their status, also if they are free', async () => {
    const sql = database.sql
    await sql`insert into dns_names (zone, subdomain, version, desired, changed_at, next_attempt_at, attempts, failure, last_error)
      values ('other.test', 'gone', 1000000, '[]', now(), 'infinity', 1, 'rejected', 'not accepted'),
        ('other.test', 'alpha', 1000001, '[]', now(), 'infinity', 0, null, null)`
    expect(await search({ dns: 'failing' })).toEqual([
      {
        poolDomain: 'other.test',
        subdomain: 'gone',
        state: 'free',
        dns: { status: 'failing', detail: 'not accepted' },
      },
    ])
    expect(await findLabels({ dns: 'pending' })).toEqual(['alpha.other.test'])
    await sql`delete from dns_names where zone = 'other.test'`
  })

  test.each([
    [{ dns: 'x' }, 'invalid-state'],
    [{ address: '203.0.113.256' }, 'invalid-format'],
    [{ address: 'abc' }, 'invalid-format'],
    [{ createdBy: 'a\u0000' }, 'invalid-format'],
    [{ cursor: 'bmFtZTphOmI6Yw' }, 'invalid-cursor'],
  ])('%j is invalid', async (query, code) => {
    const { status, body } = await call('GET', `/api/v1/names?${new URLSearchParams(query as Record<string, string>)}`)
    expect([status, body.error]).toEqual([422, code])
  })

  test('a cursor belongs to its search', async () => {
    const { body } = await call('GET', '/api/v1/names?limit=1')
    const other = await call('GET', `/api/v1/names?createdBy=ci&cursor=${body.nextCursor}`)
    expect([other.status, other.body.error]).toEqual([422, 'invalid-cursor'])
  })
})

describe('one name', () => {
  const describeName = async (label: string) => (await call('GET', `${poolPath}/names/${label}`)).body
  const plan = {
    release: (label: string, body: object = {}) =>
      call('DELETE', `${poolPath}/release?dryRun=true`, { subdomain: label, ...body }),
    update: (label: string, body: object = {}) =>
      call('POST', `${poolPath}/update?dryRun=true`, { subdomain: label, ...body }),
    lift: (label: string) => call('DELETE', `${poolPath}/cool-off/${label}?dryRun=true`),
  }
  const toA = (name: string, address: string) => ({ name, type: 'A', ttl: 300, data: [address] })

  test('has its desired records, and those of the zone', async () => {
    await reserveAndCommit('delta')
    const records = [toA('delta.pool.test', '203.0.113.10'), toA('*.delta.pool.test', '203.0.113.10')]
    expect(await describeName('delta')).toMatchObject({
      fqdn: 'delta.pool.test',
      state: 'active',
      desired: records,
      dns: { status: 'published' },
    })
    const { status, body } = await call('GET', `${poolPath}/names/delta/records`)
    expect(status).toBe(200)
    expect(body).toMatchObject({ desired: records, changes: [] })
    expect(body.found).toHaveLength(2)
    expect(body.found).toEqual(expect.arrayContaining(records))
  })

  test('shows a difference between the two', async () => {
    await reserveAndCommit('drifted')
    await database.sql`delete from local_dns_record_sets where reversed_name = 'test.pool.drifted.*'`
    const { body } = await call('GET', `${poolPath}/names/drifted/records`)
    expect(body.found).toEqual([toA('drifted.pool.test', '203.0.113.10')])
    expect(body.changes).toEqual([
      {
        subdomain: 'drifted',
        action: 'upsert',
        name: '*.drifted.pool.test',
        type: 'A',
        ttl: 300,
        values: ['203.0.113.10'],
      },
    ])
  })

  test('can be free', async () => {
    expect(await describeName('nobody')).toEqual({
      poolDomain: 'pool.test',
      subdomain: 'nobody',
      state: 'free',
      fqdn: 'nobody.pool.test',
      desired: [],
    })
    expect((await call('GET', `${poolPath}/names/nobody/records`)).body).toMatchObject({
      desired: [],
      found: [],
      changes: [],
    })
  })

  test('a plan of a release lists what is deleted, with the records of others, and the release does it', async () => {
    const { reservationToken } = await reserveAndCommit('planned')
    await database.sql`
      insert into local_dns_record_sets (zone, reversed_name, type, ttl, record_values)
      values ('pool.test', 'test.pool.planned.mail', 'A', 60, array['203.0.113.99'])`
    const { status, body } = await plan.release('planned')
    expect(status).toBe(200)
    expect(body).toMatchObject({ from: 'active', to: 'cooling-off', coolOffSeconds: 3_600 })
    const names = body.changes.map(({ action, name }: { action: string; name: string }) => `${action} ${name}`)
    expect(names).toEqual(expect.arrayContaining(['delete planned.pool.test', 'delete *.planned.pool.test']))
    expect(names).toContain('delete mail.planned.pool.test')
    expect(body.deletedRecords).toEqual([
      { name: 'mail.planned.pool.test', type: 'A', ttl: 60, data: ['203.0.113.99'] },
    ])
    expect((await describeName('planned')).state).toBe('active')
    await call('DELETE', `${poolPath}/release`, { subdomain: 'planned', reservationToken })
    expect((await describeName('planned')).state).toBe('cooling-off')
    expect((await call('GET', `${poolPath}/names/planned/records`)).body.found).toEqual([])
    expect((await plan.lift('planned')).body).toMatchObject({
      from: 'cooling-off',
      to: 'free',
      changes: [],
    })
  })

  test('a plan of an update lists the records of the new address', async () => {
    await reserveAndCommit('moving')
    const { body } = await plan.update('moving', { loadBalancerIP: '203.0.113.77' })
    expect([body.from, body.to]).toEqual(['active', 'active'])
    expect(body.changes.map(({ action, values }: { action: string; values: string[] }) => [action, values])).toEqual([
      ['upsert', ['203.0.113.77']],
      ['upsert', ['203.0.113.77']],
    ])
    expect(body.deletedRecords).toEqual([])
  })

  test('an update without an address, and one to the same address, plan no change', async () => {
    await reserveAndCommit('staying')
    expect((await plan.update('staying')).body).toMatchObject({ from: 'active', to: 'active', changes: [] })
    const { body } = await plan.update('staying', { loadBalancerIP: '203.0.113.10' })
    expect(body.changes).toEqual([])
  })

  test('a dry run is rejected as the request itself would be', async () => {
    await reserveName('reserved-only')
    await reserveAndCommit('owned')
    const token = { reservationToken: 'another-token' }
    const address = { loadBalancerIP: '203.0.113.1' }
    const rejected = async (response: Promise<{ status: number; body: { error: string } }>) => {
      const { status, body } = await response
      return [status, body.error]
    }
    expect(await rejected(plan.release('nobody'))).toEqual([404, 'not-found'])
    expect(await rejected(plan.release('-bad'))).toEqual([422, 'invalid-format'])
    expect(await rejected(plan.release('owned', token))).toEqual([403, 'token-mismatch'])
    expect(await rejected(plan.lift('nobody'))).toEqual([404, 'not-found'])
    expect(await rejected(plan.lift('owned'))).toEqual([404, 'not-found'])
    expect(await rejected(plan.update('nobody', address))).toEqual([404, 'not-found'])
    expect(await rejected(plan.update('reserved-only', address))).toEqual([409, 'not-active'])
    expect(await rejected(plan.update('owned', { ...address, ...token }))).toEqual([403, 'token-mismatch'])
    expect(await rejected(plan.update('owned', { loadBalancerIP: '224.0.0.1' }))).toEqual([422, 'invalid-lb-ip'])
    expect(await rejected(plan.update('owned', { sovereignFQDN: 'other.pool.test' }))).toEqual([422, 'invalid-fqdn'])
    for (const query of ['dryRun=1', 'dryRun=']) {
      const release = call('DELETE', `${poolPath}/release?${query}`, { subdomain: 'owned' })
      expect(await rejected(release)).toEqual([422, 'invalid-format'])
    }
    expect(
      await rejected(api.call('POST', `${poolPath}/update?dryRun=true`, { subdomain: 'owned', ...address })),
    ).toEqual([422, 'missing-token'])
    expect((await describeName('owned')).state).toBe('active')
  })

  test('a dry run does not use its Idempotency-Key up', async () => {
    const { reservationToken } = await reserveAndCommit('keyed')
    const body = { subdomain: 'keyed', reservationToken }
    const headers = { 'Idempotency-Key': 'key-of-a-dry-run-0123456789abcdef' }
    expect((await call('DELETE', `${poolPath}/release?dryRun=true`, body, headers)).body.to).toBe('cooling-off')
    expect((await call('DELETE', `${poolPath}/release`, body, headers)).status).toBe(200)
    expect((await describeName('keyed')).state).toBe('cooling-off')
  })

  test('the plan for a reservation changes no record', async () => {
    await reserveName('only-reserved')
    expect((await plan.release('only-reserved')).body).toMatchObject({
      from: 'reserved',
      to: 'free',
      changes: [],
    })
  })
})

test('the settings have what a client needs, and no secret', async () => {
  const { status, body, text } = await call('GET', '/api/v1/settings')
  expect(status).toBe(200)
  expect(body).toMatchObject({
    managedDomains: ['pool.test', 'other.test'],
    dnsProvider: 'local',
    coolOffSeconds: 3_600,
    bucketPrefix: 'catalyst',
    hasWitness: true,
    recordNames: ['@', '*'],
  })
  expect(text).not.toMatch(/witness-token|operator-token|127\.0\.0\.1|postgres/)
})

test('the zones have their health', async () => {
  const { status, body } = await call('GET', '/api/v1/zones')
  expect([status, body.provider]).toEqual([200, { kind: 'local', writesZones: true, circuitOpen: false }])
  expect(body.zones.map(({ zone, status }: { zone: string; status: string }) => [zone, status])).toEqual([
    ['other.test', 'managed'],
    ['pool.test', 'managed'],
  ])
  expect(body.zones[1]).toMatchObject({ pendingNames: 0, failing: [], syncedAt: expect.any(String) })
})

test('the overview has this replica, and the pools', async () => {
  const read = async () => {
    const { body } = await call('GET', '/api/v1/overview?minutes=5&points=10')
    return body.replicas.length > 0 && body.pools.length > 0 ? body : undefined
  }
  const body = await until('a sample', read)
  expect(body.times).toHaveLength(10)
  expect([body.stepSeconds, body.times.at(-1) - body.times[0]]).toEqual([30, 270])
  expect(body.replicas).toMatchObject([{ version: '1.0.0', node: process.versions.node.replace(/^/, 'v') }])
  expect(body.pools.map(({ poolDomain }: { poolDomain: string }) => poolDomain)).toContain('pool.test')
})

describe('the stream of changes', () => {
  test('names everything at first, then what has changed, also to a client that comes back', async () => {
    const events = followChanges()
    const first = await nextWith(events, 'names')
    expect(JSON.parse(first.data)).toEqual({ topics: ['names', 'zones', 'deployments', 'samples'] })
    await reserveName('noticed')
    await nextWith(events, 'names')
    await events.return()
    const resumed = followChanges({ 'Last-Event-ID': first.lastEventId })
    expect(JSON.parse((await nextWith(resumed, 'names')).data).topics).not.toContain('zones')
    await resumed.return()
  })
})

describe('the leases of the witness', () => {
  beforeEach(() => {
    requests.length = 0
  })
  const lease = { holder: 'a', acquiredAt: '', expiresAt: '', generation: 7 }

  test('a page is forwarded, with the token of the service and without that of the caller', async () => {
    const page = { consistency: 'eventual', detail: 'x', leases: [{ ...lease, slot: 'a/b' }], nextCursor: 'next' }
    respond = () => ({ status: 200, body: page })
    const { status, body } = await call('GET', '/api/v1/leases?prefix=a%2F&limit=10&cursor=c')
    expect([status, body]).toEqual([200, page])
    expect(requests.map(({ method, url, headers }) => [method, url, headers.authorization])).toEqual([
      ['GET', '/leases?prefix=a%2F&limit=10&cursor=c', 'Bearer witness-token'],
    ])
  })

  test('named slots are read exactly', async () => {
    const exact = { consistency: 'exact', leases: [{ ...lease, slot: 'a', waiters: 2, remainingMs: 5 }] }
    respond = () => ({ status: 200, body: exact })
    expect((await call('GET', '/api/v1/leases?slot=a&slot=b%20c')).body).toEqual(exact)
    expect(requests[0]?.url).toBe('/leases?slot=a&slot=b+c')
  })

  test('a history is read', async () => {
    respond = () => ({ status: 200, body: { slot: 'a/b', transitions: [] } })
    expect((await call('GET', '/api/v1/leases/history?slot=a%2Fb')).body).toEqual({ slot: 'a/b', transitions: [] })
    expect(requests[0]?.url).toBe('/history/a%2Fb')
  })

  test('a release names the holder and the generation', async () => {
    respond = () => ({ status: 204 })
    const { status } = await call('POST', '/api/v1/leases/release', { slot: 'a/b', holder: 'dead', generation: 7 })
    expect(status).toBe(204)
    expect(requests.map(({ method, url, headers }) => [method, url, headers['x-holder'], headers['if-match']])).toEqual(
      [['DELETE', '/lease/a%2Fb', 'dead', '"7"']],
    )
  })

  test.each([
    [400, 422, 'invalid-format'],
    [401, 503, 'witness-unavailable'],
    [403, 403, 'forbidden'],
    [404, 404, 'not-found', 'PDM_WITNESS_URL'],
    [404, 404, 'not-found', 'was never written', 'This slot was never written.'],
    [412, 409, 'lease-changed'],
    [429, 503, 'witness-unavailable'],
    [302, 503, 'witness-unavailable'],
    [500, 503, 'witness-unavailable'],
    [503, 503, 'witness-unavailable'],
  ])('its response %i is %i %s', async (status, expected, code, text = '', detail = 'witness-token') => {
    respond = () => ({ status, body: { error: 'x', detail } })
    const response = await call('POST', '/api/v1/leases/release', { slot: 'a', holder: 'h', generation: 1 })
    expect([response.status, response.body.error]).toEqual([expected, code])
    expect(response.text).toContain(text)
    expect(response.text).not.toContain('witness-token')
    expect(requests).toHaveLength(1)
  })

  test('another body is not that of a witness', async () => {
    respond = () => ({ status: 200, body: { leases: 'x' } })
    expect((await call('GET', '/api/v1/leases')).body.error).toBe('witness-unavailable')
  })

  test.each([
    ['GET', '/api/v1/leases?slot=', undefined],
    ['GET', '/api/v1/leases/history', undefined],
    ['GET', '/api/v1/leases/history?slot=..', undefined],
    ['POST', '/api/v1/leases/release', { slot: '.', holder: 'h', generation: 1 }],
    ['POST', '/api/v1/leases/release', { slot: 'a', holder: '', generation: 1 }],
    ['POST', '/api/v1/leases/release', { slot: 'a', holder: 'h\r\nX: y', generation: 1 }],
    ['POST', '/api/v1/leases/release', { slot: 'a', holder: 'h', generation: -1 }],
    ['POST', '/api/v1/leases/release', {}],
  ])('%s %s %j does not reach the witness', async (method, path, body) => {
    expect((await call(method, path, body)).body.error).toBe('invalid-format')
    expect(requests).toEqual([])
  })

  test.each(['/api/v1/leases/drain', '/api/v1/leases/renew', '/api/v1/lease/a'])('%s is not forwarded', async path => {
    expect((await call('POST', path, {})).status).toBe(404)
    expect(requests).toEqual([])
  })
})

describe('the console', () => {
  /** `fetch` would resolve the dots of a path. */
  const get = (path: string, headers: Record<string, string> = {}) =>
    new Promise<{ status: number; headers: IncomingMessage['headers']; text: string }>((resolve, reject) => {
      const url = new URL(api.operatorUrl ?? '')
      request({ host: url.hostname, port: url.port, path, headers }, response => {
        let text = ''
        response.setEncoding('utf8')
        response.on('data', chunk => {
          text += chunk
        })
        response.on('end', () => resolve({ status: response.statusCode ?? 0, headers: response.headers, text }))
      })
        .on('error', reject)
        .end()
    })

  test('an installation without it answers 404 and one line', async () => {
    const { status, text } = await get('/console')
    expect([status, JSON.parse(text).error, text.split('\n')]).toEqual([404, 'not-found', [text]])
    expect(text).toContain('docs/console.md')
  })

  test('the address alone leads to it', async () => {
    const { status, headers } = await get('/')
    expect([status, headers.location]).toEqual([302, '/console'])
  })

  test('serves the files of its build, and its page for every other path', async () => {
    mkdirSync(join(folder, 'assets'))
    writeFileSync(join(folder, 'index.html'), '<!doctype html><title>Console</title>')
    writeFileSync(join(folder, 'assets', 'app-1a2b.js'), 'console.log(1)')
    writeFileSync(join(folder, '.env'), 'SECRET=1')
    writeFileSync(join(folder, 'assets', 'app-1a2b.js.map'), '{}')
    symlinkSync('/etc/hostname', join(folder, 'assets', 'link.js'))
    for (const path of [
      '/console',
      '/console/',
      '/console/names/pool.test/acme',
      '/console/zones/pool.test',
      '/console/.env',
      '/console/index.html',
    ]) {
      const page = await get(path)
      expect([page.status, page.headers['content-type'], page.text], path).toEqual([
        200,
        'text/html; charset=utf-8',
        '<!doctype html><title>Console</title>',
      ])
      expect(page.headers['cache-control']).toBe('no-cache')
    }
    const script = await get('/console/assets/app-1a2b.js')
    expect([script.status, script.headers['content-type'], script.text]).toEqual([
      200,
      'text/javascript; charset=utf-8',
      'console.log(1)',
    ])
    expect(script.headers['cache-control']).toBe('public, max-age=31536000, immutable')
    const etag = script.headers.etag ?? ''
    expect((await get('/console/assets/app-1a2b.js', { 'If-None-Match': etag })).status).toBe(304)
    expect((await get('/console/assets/app-1a2b.js', { 'Accept-Encoding': 'gzip' })).headers['content-encoding']).toBe(
      'gzip',
    )
  })

  test('a page of another origin can link to it, and cannot embed it', async () => {
    const { status, headers } = await get('/console/names', {
      'Sec-Fetch-Site': 'cross-site',
      'Sec-Fetch-Mode': 'navigate',
    })
    expect([status, headers['x-frame-options'], headers['cross-origin-resource-policy']]).toEqual([
      200,
      'DENY',
      'same-origin',
    ])
  })

  test('every response has strict headers', async () => {
    for (const path of ['/console', '/console/assets/app-1a2b.js', '/console/assets/none.js']) {
      const { headers } = await get(path)
      const policy = String(headers['content-security-policy'])
      expect(policy).toMatch(/^default-src 'none'; script-src 'self';/)
      expect(policy).toContain("frame-ancestors 'none'")
      expect(policy).not.toMatch(/unsafe|https?:|\*/)
      expect(headers).toMatchObject({ 'x-content-type-options': 'nosniff', 'referrer-policy': 'no-referrer' })
    }
  })

  test.each([
    '/console/../outside.js',
    '/console/..%2foutside.js',
    '/console/%2e%2e/outside.js',
    '/console/assets/../../outside.js',
    '/console/assets/link.js',
    '/console/assets/app-1a2b.js.map',
    '/console/assets/none.js',
    '/console//etc/passwd.txt',
  ])('no other file is served: %s', async path => {
    const { status, text } = await get(path)
    expect([401, 404]).toContain(status)
    expect(text).not.toMatch(/outside|SECRET|root:/)
  })

  test('is read only, and needs no token', async () => {
    const response = await call('POST', '/console', {})
    expect([response.status, response.headers.get('allow')]).toEqual([405, 'GET, HEAD'])
  })
})
