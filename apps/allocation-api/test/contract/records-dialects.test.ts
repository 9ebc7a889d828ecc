import { createHash } from 'node:crypto'
import { EXTERNAL_DNS_MEDIA_TYPE } from '@pool/contract'
import { until } from '@pool/test-kit/poll.ts'
import { describe, expect, test } from 'vitest'
import { startTestService } from '../support/service.ts'
import { challenge, createTenants, recordsEnv } from '../support/tenant-records.ts'

const service = await startTestService(recordsEnv)
const { createTenant, as, resolve } = createTenants(service)
const shared = createTenant('shared')

describe('records in our own form', () => {
  test('PUT returns the normal form once it is served, GET lists it, DELETE removes it', async () => {
    const { send } = await createTenant('own')
    const put = await send('PUT', '/Shop.OWN.pool.test./a', { values: ['192.0.2.2', '192.0.2.1'], ttl: 1 })
    const record = {
      name: 'shop.own.pool.test',
      type: 'A',
      ttl: 60,
      values: ['192.0.2.1', '192.0.2.2'],
      owner: 'default',
      status: 'published',
    }
    expect([put.status, put.body]).toEqual([200, record])
    expect(await resolve('shop.own.pool.test', 'A')).toEqual(['192.0.2.1', '192.0.2.2'])
    const text = await send('PUT', '/own.pool.test/TXT', { values: ['a "b"'] })
    expect(text.body).toMatchObject({ values: ['a "b"'] })
    expect((await send('GET', '')).body).toEqual({ fqdn: 'own.pool.test', records: [text.body, record] })
    for (let n = 0; n < 2; n += 1) expect((await send('DELETE', '/shop.own.pool.test/A')).status).toBe(204)
    await expect.poll(async () => (await send('GET', '')).body.records).toEqual([text.body])
  })

  test('a set of another owner is listed, and 409 for a change', async () => {
    const { send, mintAs } = await createTenant('owned')
    await send('PUT', '/shop.owned.pool.test/A', { values: ['192.0.2.1'] })
    const other = as(await mintAs({ owner: 'other' }))
    expect((await other('GET', '')).body.records).toMatchObject([{ owner: 'default' }])
    const put = await other('PUT', '/shop.owned.pool.test/A', { values: ['192.0.2.9'] })
    expect([put.status, put.body.error]).toEqual([409, 'record-conflict'])
    await other('DELETE', '/shop.owned.pool.test/A')
    expect((await other('GET', '')).body.records).toMatchObject([{ values: ['192.0.2.1'] }])
  })

  test.each<readonly [body: unknown, error: string, status: number]>([
    ['{', 'invalid-json', 400],
    [{}, 'invalid-record', 422],
    [[], 'invalid-format', 422],
    [{ values: 'x' }, 'invalid-record', 422],
    [{ values: ['192.0.2.1'], ttl: '60' }, 'invalid-record', 422],
    [{ values: ['192.0.2.256'] }, 'invalid-record', 422],
    [{ values: ['169.254.1.1'] }, 'invalid-record', 422],
  ])('%j is %s', async (body, error, status) => {
    const { send } = await shared
    const answer = await send('PUT', '/x.shared.pool.test/A', body)
    expect([answer.body.error, answer.status]).toEqual([error, status])
  })
})

describe('httpreq', () => {
  const fqdn = '_acme-challenge.shared.pool.test.'

  test('the values of the name and of its wildcard are served together; cleanup removes each, twice', async () => {
    const { send } = await shared
    const values = [challenge('a'), challenge('b')]
    for (const value of values) {
      const answer = await send('POST', '/httpreq/present', { fqdn, value })
      expect([answer.status, answer.text]).toEqual([200, '{}'])
    }
    expect(await resolve(fqdn, 'TXT')).toEqual(values)
    for (const value of [...values, ...values])
      expect((await send('POST', '/httpreq/cleanup', { fqdn, value })).status).toBe(200)
    await expect.poll(() => resolve(fqdn, 'TXT')).toEqual([])
  })

  test('in mode RAW, the value is the digest of keyAuth', async () => {
    const { send } = await shared
    const body = { domain: 'shared.pool.test', token: 'abc', keyAuth: 'abc.def' }
    expect((await send('POST', '/httpreq/present', body)).status).toBe(200)
    expect(await resolve(fqdn, 'TXT')).toEqual([createHash('sha256').update('abc.def').digest('base64url')])
    expect((await send('POST', '/httpreq/cleanup', body)).status).toBe(200)
    await expect.poll(() => resolve(fqdn, 'TXT')).toEqual([])
  })

  test.each(['application/x-www-form-urlencoded', 'text/plain', 'image/png'])(
    'the body is JSON, whatever its type: %s',
    async type => {
      const { send } = await shared
      const body = `${JSON.stringify({ fqdn, value: challenge('c') })}\n`
      for (const path of ['/httpreq/present', '/httpreq/cleanup'])
        expect((await send('POST', path, body, { 'Content-Type': type })).status).toBe(200)
    },
  )

  test('a name keeps the newest ten values', async () => {
    const { send } = await shared
    const letters = [...'abcdefghijk']
    for (const letter of letters) await send('POST', '/httpreq/present', { fqdn, value: challenge(letter) })
    expect(await resolve(fqdn, 'TXT')).toEqual(letters.slice(1).map(challenge))
    for (const letter of letters) await send('POST', '/httpreq/cleanup', { fqdn, value: challenge(letter) })
  })
})

describe('acme-dns', () => {
  test.each([
    '_acme-challenge.shared.pool.test',
    'shared.pool.test',
    'Shared.Pool.Test.',
    '_a1._acme-challenge.shared.pool.test',
  ])('update sets the value, and repeats it in quotes: %s', async subdomain => {
    const { token, send } = await shared
    const txt = challenge('d')
    const keys = { 'X-Api-User': 'anyone', 'X-Api-Key': token }
    const answer = await service.call('POST', '/api/v1/records/acme-dns/update', { subdomain, txt }, keys)
    expect([answer.status, answer.text]).toEqual([200, `{"txt":"${txt}"}`])
    const fqdn = subdomain.startsWith('_a1.') ? subdomain : '_acme-challenge.shared.pool.test'
    expect(await resolve(fqdn, 'TXT')).toEqual([txt])
    await send('POST', '/httpreq/cleanup', { fqdn, value: txt })
  })

  test('a value of 42 characters is 422', async () => {
    const { send } = await shared
    const answer = await send('POST', '/acme-dns/update', { subdomain: 'shared.pool.test', txt: 'a'.repeat(42) })
    expect([answer.status, answer.body.error]).toEqual([422, 'invalid-record'])
  })

  test('register is 403 with what to do, and health is 200, without a token', async () => {
    const register = await service.call('POST', '/api/v1/records/acme-dns/register', '')
    expect([register.status, register.body]).toEqual([
      403,
      { error: 'no-registration', detail: expect.stringContaining('mints a token') },
    ])
    expect((await service.call('GET', '/api/v1/records/acme-dns/health')).status).toBe(200)
  })
})

describe('external-dns', () => {
  const type = { Accept: EXTERNAL_DNS_MEDIA_TYPE, 'Content-Type': EXTERNAL_DNS_MEDIA_TYPE }
  type Endpoint = { dnsName: string; recordType: string; targets: string[] } & Record<string, unknown>

  /** One cycle: what the client wants, what it has, and the changes between them, as its plan computes them. */
  const cycle = async (send: ReturnType<typeof as>, wanted: readonly Endpoint[]) => {
    const current: Endpoint[] = (await send('GET', '/external-dns/records', undefined, type)).body
    const adjusted = await send('POST', '/external-dns/adjustendpoints', wanted, type)
    expect(adjusted.status).toBe(200)
    const desired: Endpoint[] = adjusted.body
    const keyOf = ({ dnsName, recordType, setIdentifier = '' }: Endpoint) =>
      [dnsName, recordType, setIdentifier].join(' ')
    const sameAs = (one: Endpoint) => (other: Endpoint) => keyOf(one) === keyOf(other)
    const isEqual = (one: Endpoint, other: Endpoint) =>
      one.targets.join() === other.targets.join() &&
      (one.recordTTL === undefined || one.recordTTL === other.recordTTL) &&
      JSON.stringify(one.providerSpecific ?? []) === JSON.stringify(other.providerSpecific ?? [])
    const changed = desired.filter(one => {
      const former = current.find(sameAs(one))
      return former && !isEqual(one, former)
    })
    const changes = {
      create: desired.filter(one => !current.some(sameAs(one))),
      updateOld: current.filter(one => changed.some(sameAs(one))),
      updateNew: changed,
      delete: current.filter(one => !desired.some(sameAs(one))),
    }
    return { changes, adjusted, count: changes.create.length + changed.length + changes.delete.length }
  }
  const apply = (send: ReturnType<typeof as>, changes: object) => send('POST', '/external-dns/records', changes, type)

  test('the negotiation has exactly the media type, and the name as the filter', async () => {
    const { send } = await shared
    const answer = await send('GET', '/external-dns', undefined, { Accept: EXTERNAL_DNS_MEDIA_TYPE })
    expect(answer.headers.get('content-type')).toBe('application/external.dns.webhook+json;version=1')
    expect([answer.status, answer.text]).toEqual([200, '{"include":["shared.pool.test"]}'])
  })

  test('what it wants is there after one cycle, and the next cycle changes nothing, in any spelling', async () => {
    const { send } = await createTenant('edns')
    const wanted: Endpoint[] = [
      {
        dnsName: 'Shop.EDNS.pool.test.',
        recordType: 'A',
        targets: ['192.0.2.2', '192.0.2.1'],
        recordTTL: 5,
        setIdentifier: 'blue',
      },
      { dnsName: 'shop.edns.pool.test', recordType: 'AAAA', targets: ['2001:DB8:0:0::1'] },
      {
        dnsName: '*.apps.edns.pool.test',
        recordType: 'A',
        targets: ['192.0.2.3'],
        providerSpecific: [{ name: 'alias', value: 'false' }],
      },
      { dnsName: 'www.edns.pool.test', recordType: 'CNAME', targets: ['Shop.edns.pool.test.'] },
      { dnsName: 'edns.pool.test', recordType: 'MX', targets: ['10 Mail.Edns.example.'] },
      { dnsName: 'edns.pool.test', recordType: 'TXT', targets: ['"v=spf1 -all"'] },
      { dnsName: '_sip._tcp.edns.pool.test', recordType: 'SRV', targets: ['10 5 5060 sip.edns.pool.test.'] },
    ]
    const first = await cycle(send, wanted)
    expect(first.changes.create).toHaveLength(wanted.length)
    const applied = await apply(send, first.changes)
    expect([applied.status, applied.text]).toEqual([204, ''])
    expect((await cycle(send, wanted)).count).toBe(0)
    const changedType = wanted.map(one =>
      one.recordType === 'CNAME' ? { ...one, recordType: 'A', targets: ['192.0.2.4'] } : one,
    )
    const second = await cycle(send, changedType)
    expect([second.changes.create.length, second.changes.delete.length]).toEqual([1, 1])
    expect((await apply(send, second.changes)).status).toBe(204)
    expect((await cycle(send, changedType)).count).toBe(0)
    const last = await cycle(send, [])
    expect((await apply(send, last.changes)).status).toBe(204)
    expect((await send('GET', '/external-dns/records', undefined, type)).text).toBe('[]')
  })

  test('empty lists of Go are null', async () => {
    const { send } = await shared
    const adjusted = await send('POST', '/external-dns/adjustendpoints', 'null\n', type)
    expect([adjusted.status, adjusted.text]).toEqual([200, '[]'])
    expect((await apply(send, { create: null, updateOld: null, updateNew: null, delete: null })).status).toBe(204)
  })

  test('the records of its registry are kept for it, wherever they are, and not published', async () => {
    const { send } = await createTenant('txtreg')
    const targets = ['"heritage=external-dns,external-dns/owner=c1"']
    const labels = { ownedRecord: 'txtreg.pool.test' }
    const names = ['a-shop.txtreg.pool.test', 'a-txtreg.pool.test']
    const create = names.map(dnsName => ({ dnsName, recordType: 'TXT', targets, labels }))
    expect((await apply(send, { create })).status).toBe(204)
    const kept = (await send('GET', '/external-dns/records', undefined, type)).body
    expect(kept.map(({ dnsName }: Endpoint) => dnsName).sort()).toEqual(names)
    for (const { targets: values } of kept) expect(values).toEqual(['heritage=external-dns,external-dns/owner=c1'])
    expect((await send('GET', '')).body.records).toEqual([])
    for (const name of names) expect(await resolve(name, 'TXT')).toEqual([])
    expect((await apply(send, { delete: create })).status).toBe(204)
    expect((await send('GET', '/external-dns/records', undefined, type)).body).toEqual([])
  })

  test('it gets the records of its owner only, and no challenge, so that it deletes no others', async () => {
    const { send, mintAs } = await createTenant('owners')
    const other = as(await mintAs({ owner: 'other' }))
    await send('PUT', '/mine.owners.pool.test/A', { values: ['192.0.2.1'] })
    await other('PUT', '/theirs.owners.pool.test/A', { values: ['192.0.2.1'] })
    await send('POST', '/httpreq/present', { fqdn: '_acme-challenge.owners.pool.test.', value: challenge('a') })
    const names = async (client: ReturnType<typeof as>) =>
      (await client('GET', '/external-dns/records')).body.map(({ dnsName }: Endpoint) => dnsName)
    expect([await names(send), await names(other)]).toEqual([['mine.owners.pool.test'], ['theirs.owners.pool.test']])
  })

  test('what would be rejected is left out of the plan, with the reason for the sidecar, and labels are kept', async () => {
    const { send } = await createTenant('rejects')
    const labels = { resource: 'ingress/default/shop' }
    const good = { dnsName: 'shop.rejects.pool.test', recordType: 'A', targets: ['192.0.2.1'], labels }
    const bad = [
      ...['A', 'AAAA', 'CNAME', 'NS'].map(recordType => ({
        ...good,
        dnsName: 'console.rejects.pool.test',
        recordType,
      })),
      { ...good, dnsName: 'shop.other.pool.test' },
      { ...good, dnsName: 'bü\u202ecken.rejects.pool.test' },
      { ...good, dnsName: 'caa.rejects.pool.test', recordType: 'CAA', targets: ['0 issue "x"'] },
    ]
    const { adjusted } = await cycle(send, [good, ...bad])
    expect(adjusted.body).toEqual([good])
    const reasons = adjusted.headers.get('records-rejected') ?? ''
    expect(reasons).toMatch(/^[ -~]+$/)
    expect(JSON.parse(reasons).map(({ dnsName }: Endpoint) => dnsName)).toEqual(bad.map(({ dnsName }) => dnsName))
    expect(JSON.parse(reasons)[0]).toEqual({
      dnsName: 'console.rejects.pool.test',
      error: 'template-record',
      detail: expect.any(String),
    })
    const applied = await apply(send, { create: [good, bad[0]] })
    expect([applied.status, applied.body.error]).toEqual([503, 'template-record'])
    expect((await send('GET', '')).body.records).toMatchObject([{ name: 'shop.rejects.pool.test' }])
  })

  test.each<readonly [what: string, path: string, body: unknown, status: number, error: string]>([
    [
      'a name outside',
      '/records',
      { create: [{ dnsName: 'x.pool.test', recordType: 'A', targets: ['192.0.2.1'] }] },
      403,
      'outside-scope',
    ],
    [
      'an invalid value',
      '/records',
      { create: [{ dnsName: 'x.shared.pool.test', recordType: 'A', targets: ['x'] }] },
      503,
      'invalid-record',
    ],
    ['a list that is none', '/records', { create: {} }, 503, 'invalid-record'],
    ['an endpoint without a name', '/adjustendpoints', [{}], 503, 'invalid-record'],
    ['a parameter', '/records?x=1', {}, 503, 'unknown-parameter'],
    ['a body that is not JSON', '/records', '{', 400, 'invalid-json'],
  ])(
    '%s: a status that external-dns survives, if another attempt can succeed',
    async (_, path, body, status, error) => {
      const { send } = await shared
      const answer = await send('POST', `/external-dns${path}`, body, type)
      expect([answer.status, answer.body.error]).toEqual([status, error])
    },
  )
})

describe('limits', () => {
  const body = (bytes: number) => JSON.stringify({ fqdn: 'x', value: 'y' }).padEnd(bytes)

  test.each([
    ['a body of 1 MiB', 1_048_576, 403],
    ['a larger one', 1_048_577, 413],
  ])('%s', async (_, bytes, status) => {
    const { send } = await shared
    const answer = await send('POST', '/httpreq/present', body(bytes))
    expect(answer.status).toBe(status)
    if (status === 413) expect(answer.body.detail).toContain('1 MiB')
  })

  test('above 60 writing requests a minute, a name is 429, and 503 for external-dns; other names are not', async () => {
    const { send, mintAs } = await createTenant('busy')
    const other = as(await mintAs({ owner: 'other' }))
    expect((await send('DELETE', '/a.busy.pool.test/A')).status).toBe(204)
    /** Each second allows one more, so the last of a few at once is limited, however slow the machine is. */
    const untilLimited = (status: number, write: () => ReturnType<typeof send>) =>
      until(`a write is ${status}`, async () => {
        const answers = await Promise.all(Array.from({ length: 10 }, write))
        expect(answers.map(answer => answer.status).filter(one => one !== 204 && one !== status)).toEqual([])
        return answers.find(answer => answer.status === status)
      })
    const limited = await untilLimited(429, () => other('DELETE', '/a.busy.pool.test/A'))
    expect(limited.body.error).toBe('rate-limited')
    expect(Number(limited.headers.get('retry-after'))).toBeGreaterThan(0)
    await untilLimited(503, () => send('POST', '/external-dns/records', {}))
    expect((await send('GET', '')).status).toBe(200)
    const { send: quiet } = await createTenant('quiet')
    expect((await quiet('DELETE', '/a.quiet.pool.test/A')).status).toBe(204)
  })
})
