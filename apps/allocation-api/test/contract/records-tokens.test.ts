import { randomUUID } from 'node:crypto'
import { get } from 'node:http'
import { describe, expect, test } from 'vitest'
import { hashToken } from '../../src/lib/token.ts'
import { poolPath, startTestService, unknownToken } from '../support/service.ts'
import { createTenants, OPERATOR_TOKEN, recordsEnv, unknownRecordsToken } from '../support/tenant-records.ts'

const service = await startTestService({ ...recordsEnv, PDM_RECORDS_URL: 'https://records.pool.test' })
const { api, call, database } = service
const { reserveName, createTenant, mint, as, release, operatorCall, asOperator, resolve } = createTenants(service)
const remove = (subdomain: string, fields: object) => call('DELETE', `${poolPath}/tokens`, { subdomain, ...fields })
const list = async (subdomain: string) => (await call('GET', `${poolPath}/tokens?sub=${subdomain}`)).body.tokens

describe('a token', () => {
  test('201 has the token, and the account that clients of acme-dns read', async () => {
    const { reservationToken } = await reserveName('minted')
    const { status, body } = await mint('minted', { reservationToken, scope: 'acme', expiresInDays: 30 })
    expect([status, body]).toEqual([
      201,
      {
        id: expect.stringMatching(/^[0-9a-f-]{36}$/),
        token: expect.stringMatching(/^pdr_[\w-]{43}$/),
        scope: 'acme',
        owner: 'default',
        fqdn: 'minted.pool.test',
        createdAt: expect.any(String),
        expiresAt: expect.any(String),
        acmeDnsAccounts: {
          'minted.pool.test': {
            fulldomain: '_acme-challenge.minted.pool.test',
            subdomain: '_acme-challenge.minted.pool.test',
            username: body.id,
            password: body.token,
            server_url: 'https://records.pool.test/api/v1/records/acme-dns',
          },
        },
      },
    ])
    expect(Date.parse(body.expiresAt) - Date.parse(body.createdAt)).toBe(30 * 86_400_000)
    const { id, scope, owner, createdAt, expiresAt } = body
    expect(await list('minted')).toEqual([{ id, scope, owner, createdAt, expiresAt }])
    const { status: early, body: rejected } = await as(body.token)('POST', '/httpreq/present', {
      fqdn: '_acme-challenge.minted.pool.test.',
      value: 'a'.repeat(43),
    })
    expect([early, rejected.error]).toEqual([409, 'not-active'])
  })

  test.each<readonly [what: string, fields: object, status: number, error: string]>([
    ['no proof', { reservationToken: undefined }, 403, 'token-mismatch'],
    ['another token', { reservationToken: unknownToken }, 403, 'token-mismatch'],
    ['a token that is not text', { reservationToken: 5 }, 403, 'token-mismatch'],
    ['a free name', { subdomain: 'free' }, 404, 'not-found'],
    ['no scope', { scope: undefined }, 422, 'invalid-scope'],
    ['another scope', { scope: 'admin' }, 422, 'invalid-scope'],
    ['an owner in upper case', { owner: 'A' }, 422, 'invalid-owner'],
    ['an owner of 64 characters', { owner: 'a'.repeat(64) }, 422, 'invalid-owner'],
    ['an end in the past', { expiresInDays: 0 }, 422, 'invalid-format'],
    ['no name', { subdomain: undefined }, 422, 'invalid-format'],
  ])('%s is %# %i', async (_, fields, status, error) => {
    const reservation = await reserveName('rejected')
    const { reservationToken } = reservation
    const answer = await mint('rejected', { reservationToken, scope: 'acme', ...fields })
    expect([answer.status, answer.body.error]).toEqual([status, error])
    expect(await list('rejected')).toEqual([])
    await release('rejected', reservationToken)
  })

  test('the deployment that holds the name mints one with its token, another one does not', async () => {
    const { reservationToken } = await reserveName('deployed')
    const [id, lineageId, deploymentToken] = [randomUUID(), randomUUID(), randomUUID()]
    await database.sql`
      insert into lineages (id, sovereign_fqdn, pool_domain, subdomain, infrastructure_changed_at, created_at)
      values (${lineageId}, 'deployed.pool.test', 'pool.test', 'deployed', now(), now())`
    const keys = { orgEmail: '', objectStorageAccessKey: '', objectStorageSecretKey: '' }
    const request = { ...keys, name: { poolDomain: 'pool.test', subdomain: 'deployed' } }
    await database.sql`
      insert into deployments (id, lineage_id, status, request, sovereign_fqdn, reservation_token_hash, token_hash, error,
        started_at, finished_at)
      values (${id}, ${lineageId}, 'failed', ${database.sql.json(request)},
        'deployed.pool.test', ${hashToken(reservationToken)}, ${hashToken(deploymentToken)}, 'no', now(), now())`
    await database.sql`update pool_allocations set lineage_id = ${lineageId} where subdomain = 'deployed'`
    const statuses = [deploymentToken, unknownToken].map(async token => {
      return (await mint('deployed', { scope: 'acme' }, { 'X-Deployment-Token': token })).status
    })
    expect(await Promise.all(statuses)).toEqual([201, 403])
  })

  test('an Idempotency-Key replays it, and another request under the key is 422', async () => {
    const { reservationToken } = await reserveName('keyed')
    const send = (scope: string) =>
      mint('keyed', { reservationToken, scope }, { 'Idempotency-Key': 'a-key-of-a-records-token' })
    const [first, second] = [await send('acme'), await send('acme')]
    expect([first.status, second.status, second.body]).toEqual([201, 201, first.body])
    expect((await send('records')).body.error).toBe('idempotency-key-reused')
    expect(await list('keyed')).toHaveLength(1)
  })

  test('an operator mints, lists and deletes without the token of the name; the eleventh is 409', async () => {
    await reserveName('many')
    const mintOne = () => asOperator('POST', `${poolPath}/tokens`, { subdomain: 'many', scope: 'acme' })
    for (let n = 0; n < 10; n += 1) expect((await mintOne()).status).toBe(201)
    expect((await mintOne()).body.error).toBe('too-many-tokens')
    const [{ id }] = await list('many')
    expect((await remove('many', { id })).body.error).toBe('token-mismatch')
    expect((await asOperator('DELETE', `${poolPath}/tokens`, { subdomain: 'many', id })).status).toBe(204)
    expect((await asOperator('DELETE', `${poolPath}/tokens`, { subdomain: 'many', id })).status).toBe(404)
    expect((await mintOne()).status).toBe(201)
  })

  test.each(['nonsense', unknownToken])('the id %s is 404', async id => {
    const { reservationToken } = await reserveName('ids')
    expect((await remove('ids', { reservationToken, id })).status).toBe(404)
    await release('ids', reservationToken)
  })
})

describe('the end of a token', () => {
  const put = (send: ReturnType<typeof as>, name: string) =>
    send('PUT', `/a.${name}.pool.test/A`, { values: ['192.0.2.1'] })

  test('deleted: 401, and its records stay; with records they are removed', async () => {
    const { reservationToken, send, mintAs } = await createTenant('ended')
    expect((await put(send, 'ended')).status).toBe(200)
    const [{ id }] = await list('ended')
    expect((await remove('ended', { reservationToken, id })).status).toBe(204)
    expect((await send('GET', '')).status).toBe(401)
    const other = as(await mintAs({ owner: 'other' }))
    expect((await other('GET', '')).body.records).toHaveLength(1)
    const token = await mintAs({})
    const last = (await list('ended')).at(-1)
    expect((await remove('ended', { reservationToken, id: last.id, records: true })).status).toBe(204)
    expect((await as(token)('GET', '')).status).toBe(401)
    expect((await other('GET', '')).body.records).toEqual([])
  })

  test('released and given again: 401, no record is left, and the new holder has none', async () => {
    const { reservationToken, send } = await createTenant('released')
    expect((await put(send, 'released')).status).toBe(200)
    expect(await resolve('a.released.pool.test', 'A')).toEqual(['192.0.2.1'])
    await release('released', reservationToken)
    expect((await send('GET', '')).status).toBe(401)
    expect(await resolve('a.released.pool.test', 'A')).toEqual([])
    const next = await createTenant('released')
    expect((await send('GET', '')).status).toBe(401)
    expect((await put(send, 'released')).status).toBe(401)
    expect((await next.send('GET', '')).body.records).toEqual([])
    expect(await list('released')).toHaveLength(1)
  })

  test('expired: 401', async () => {
    const { send } = await createTenant('expiring', { expiresInDays: 1 })
    expect((await send('GET', '')).status).toBe(200)
    await database.advance(86_400_000)
    expect((await send('GET', '')).status).toBe(401)
  })
})

describe('credentials of the prefix, on both listeners', async () => {
  const { token } = await createTenant('credentials')
  const basic = (user: string, password: string) => `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`
  const listeners = { 'in-cluster': call, operator: operatorCall }
  const accepted: Readonly<Record<string, Record<string, string>>> = {
    Bearer: { Authorization: `Bearer ${token}` },
    bearer: { Authorization: `bearer ${token}` },
    'the password of a user': { Authorization: basic('acme', token) },
    'the password without a user': { Authorization: basic('', token) },
    'X-Api-Key': { 'X-Api-User': 'acme', 'X-Api-Key': token },
  }
  const rejected: Readonly<Record<string, Record<string, string>>> = {
    none: {},
    'an unknown token': { Authorization: `Bearer ${unknownRecordsToken}` },
    'a token in another case': { Authorization: `Bearer ${token.toUpperCase()}` },
    'a token without its end': { Authorization: `Bearer ${token.slice(0, -1)}` },
    'the user of Basic': { Authorization: basic(token, '') },
    'the token of an operator': { Authorization: `Bearer ${OPERATOR_TOKEN}` },
    'a reservation token': { Authorization: `Bearer ${unknownToken}` },
    'a session': { Cookie: 'operator_session=x' },
  }

  describe.each(Object.entries(listeners))('%s', (listener, send) => {
    test.each(Object.entries(accepted))('%s is accepted', async (_, headers) => {
      expect((await send('GET', '/api/v1/records', undefined, headers)).status).toBe(200)
    })

    test.each(Object.entries(rejected))('%s is 401, with the same body', async (_, headers) => {
      for (const path of ['', '/external-dns', '/external-dns/records']) {
        const answer = await send('GET', `/api/v1/records${path}`, undefined, headers)
        expect([answer.status, answer.headers.get('www-authenticate')]).toEqual([401, 'Bearer'])
        expect(answer.body).toEqual({ error: 'unauthorized', detail: expect.stringMatching(/^Send a records token/) })
      }
    })

    test('a records token opens nothing else', async () => {
      const headers = { Authorization: `Bearer ${token}` }
      const { status } = await send('GET', '/api/v1/names', undefined, headers)
      expect(status).toBe(listener === 'operator' ? 401 : 404)
    })
  })
})

test.each([
  ['/api/v1/records/../reserved', 404],
  ['/api/v1/records/x/%2E./../reserved', 404],
  ['/api/v1/%72ecords/../reserved', 404],
  ['http://x/api/v1/records/../reserved', 404],
  ['/api/v1/records/./../records/acme-dns/health', 200],
  ['/api/v1/x/../reserved', 200],
])('a gateway that compares prefixes exposes no other route: %s', async (path, status) => {
  const { promise, resolve, reject } = Promise.withResolvers<number | undefined>()
  get({ port: api.port, path }, response => resolve(response.resume().statusCode)).on('error', reject)
  expect(await promise).toBe(status)
})

test('no token is in a log line, a metric or a row', async () => {
  const { token, send } = await createTenant('secret')
  expect((await send('GET', '')).status).toBe(200)
  await send('PUT', `/${token}.secret.pool.test/TXT`, { values: [token] })
  expect(api.lines.filter(line => line.includes('pdr_'))).toEqual([])
  expect((await call('GET', '/metrics')).text).not.toContain('pdr_')
})
