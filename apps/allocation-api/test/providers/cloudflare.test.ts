import { describe, expect, test } from 'vitest'
import {
  batchesOf,
  type CloudflareRecord,
  contentOf,
  createCloudflareProvider,
  operationsOf,
  presentationOf,
  recordSetsOf,
  refusalOf,
  verdictOf,
} from '../../src/dns/cloudflare.ts'
import type { RecordChange, RecordSet } from '../../src/dns/record-set.ts'
import { describeConformance } from './conformance.ts'
import { startCloudflareSubject, startSubject } from './support/cloudflare.ts'

describeConformance('cloudflare', startSubject)

const signal = (): AbortSignal => AbortSignal.timeout(20_000)
const set = (name: string, type: string, ...values: string[]): RecordSet => ({ name, type, ttl: 300, values })
const upsert = (record: RecordSet): RecordChange => ({ kind: 'upsert', set: record })
const remove = ({ name, type }: RecordSet): RecordChange => ({ kind: 'delete', name, type })
const addresses = (zone: string, count: number): RecordChange[] =>
  Array.from({ length: count }, (_, i) => upsert(set(`n${i}.${zone}`, 'A', `192.0.2.${i % 250}`)))
const applied = (...names: string[]) => ({
  kind: 'applied',
  refused: names.map(name => ({ name, reason: expect.stringMatching(/\w{3}/) })),
})

describe('values', () => {
  test.each([
    [{ type: 'A', content: '192.0.2.1' }, '192.0.2.1'],
    [{ type: 'AAAA', content: '2001:DB8:0::1' }, '2001:db8::1'],
    [{ type: 'CNAME', content: 'Web.example' }, 'web.example.'],
    [{ type: 'CNAME', content: 'web.example.' }, 'web.example.'],
    [{ type: 'MX', content: 'mail.example', priority: 10 }, '10 mail.example.'],
    [{ type: 'MX', content: '.', priority: 0 }, '0 .'],
    [{ type: 'TXT', content: 'bare "text" \\ here' }, '"bare \\"text\\" \\\\ here"'],
    [{ type: 'TXT', content: '"one"  "two \\"2\\""' }, '"one" "two \\"2\\""'],
    [{ type: 'TXT', content: 'é' }, '"\\195\\169"'],
    [{ type: 'TXT', content: '"\\195\\169"' }, '"\\195\\169"'],
    [{ type: 'TXT', content: '' }, '""'],
    [{ type: 'TXT', content: 'x'.repeat(300) }, `"${'x'.repeat(255)}" "${'x'.repeat(45)}"`],
    [
      {
        type: 'SRV',
        content: '60 5060 sip.example',
        priority: 10,
        data: { weight: 60, port: 5060, target: 'sip.example' },
      },
      '10 60 5060 sip.example.',
    ],
    [
      { type: 'CAA', content: '0 issue "ca.example"', data: { flags: 0, tag: 'issue', value: 'ca.example' } },
      '0 issue "ca.example"',
    ],
    [{ type: 'TLSA', content: '3 1 1 abcd' }, '3 1 1 abcd'],
  ])('%j reads as %s', (record, value) => {
    expect(presentationOf(record)).toBe(value)
  })

  test.each([
    ['A', '192.0.2.1', { content: '192.0.2.1' }],
    ['A', '192.0.2', undefined],
    ['AAAA', '2001:db8::1', { content: '2001:db8::1' }],
    ['AAAA', 'fe80::1%eth0', undefined],
    ['CNAME', 'web.example.', { content: 'web.example' }],
    ['CNAME', 'two words', undefined],
    ['MX', '10 mail.example.', { content: 'mail.example', priority: 10 }],
    ['MX', '65536 mail.example.', undefined],
    ['TXT', '"one" "two"', { content: '"one" "two"' }],
    ['TXT', 'bare', undefined],
    ['SRV', '1 2 3 s.example.', { priority: 1, data: { priority: 1, weight: 2, port: 3, target: 's.example' } }],
    ['SRV', '1 2 s.example.', undefined],
    ['CAA', '0 issue "ca.example"', { data: { flags: 0, tag: 'issue', value: 'ca.example' } }],
    ['CAA', '0 issue', undefined],
    ['TLSA', '3 1 1 abcd', undefined],
  ])('%s %s is written as %j', (type, value, fields) => {
    expect(contentOf(type, value)).toEqual(fields)
  })

  test.each([
    [upsert(set('a.z.example', 'A', '192.0.2.1')), undefined],
    [upsert(set('a.other.example', 'A', '192.0.2.1')), /zone/],
    [upsert(set('az.example', 'A', '192.0.2.1')), /zone/],
    [remove(set('a.other.example', 'A')), /zone/],
    [upsert(set('a.z.example', 'A', 'x')), /no A record/],
    [upsert(set('a.z.example', 'A')), /no value/],
    [upsert(set('a.z.example', 'CNAME', 'a.', 'b.')), /one CNAME/],
    [upsert({ ...set('a.z.example', 'A', '192.0.2.1'), ttl: 1 }), /TTL/],
    [upsert({ ...set('a.z.example', 'A', '192.0.2.1'), ttl: 86_401 }), /TTL/],
    [remove(set('a.z.example', 'TLSA')), undefined],
  ])('%j is refused beforehand: %s', (change, reason) => {
    const found = refusalOf('z.example', change)
    if (reason) expect(found).toMatch(reason)
    else expect(found).toBeUndefined()
  })
})

const record = (id: string, value: string, more: Partial<CloudflareRecord> = {}): CloudflareRecord => ({
  ...{ id, name: 'a.z', type: 'A', ttl: 300, isProxied: false, value },
  ...more,
})

test('records of one name and type are one set; a TTL left to Cloudflare shows as 1', () => {
  const records = [record('1', 'b'), record('2', 'a', { ttl: 1 }), record('3', 'a'), record('4', 'x', { type: 'TXT' })]
  expect(recordSetsOf(records)).toEqual([
    { name: 'a.z', type: 'A', ttl: 1, values: ['a', 'b'] },
    { name: 'a.z', type: 'TXT', ttl: 300, values: ['x'] },
  ])
})

const fields = (content: string) => ({ name: 'a.z', type: 'A', ttl: 300, proxied: false, content })

test.each([
  ['nothing there', [], ['192.0.2.1'], { posts: [fields('192.0.2.1')] }],
  ['it is there', [record('1', '192.0.2.1')], ['192.0.2.1'], {}],
  ['another address', [record('1', '192.0.2.9')], ['192.0.2.1'], { patches: [{ id: '1', ...fields('192.0.2.1') }] }],
  [
    'another TTL',
    [record('1', '192.0.2.1', { ttl: 60 })],
    ['192.0.2.1'],
    { patches: [{ id: '1', ...fields('192.0.2.1') }] },
  ],
  [
    'proxied',
    [record('1', '192.0.2.1', { isProxied: true })],
    ['192.0.2.1'],
    { patches: [{ id: '1', ...fields('192.0.2.1') }] },
  ],
  ['one more', [record('1', '192.0.2.1')], ['192.0.2.1', '192.0.2.2'], { posts: [fields('192.0.2.2')] }],
  [
    'one of two stays, and one changes',
    [record('1', '192.0.2.9'), record('2', '192.0.2.2')],
    ['192.0.2.1', '192.0.2.2'],
    { patches: [{ id: '1', ...fields('192.0.2.1') }] },
  ],
  [
    'too many',
    [record('1', '192.0.2.9'), record('2', '192.0.2.1'), record('3', '192.0.2.1')],
    ['192.0.2.1'],
    { deletes: [{ id: '1' }, { id: '3' }] },
  ],
  [
    'of other names and types nothing',
    [record('1', '192.0.2.9', { name: 'b.z' }), record('2', '"t"', { type: 'TXT' })],
    ['192.0.2.1'],
    { posts: [fields('192.0.2.1')] },
  ],
])('operations: %s', (_, present, values, expected) => {
  const found = operationsOf(present, upsert(set('a.z', 'A', ...values)))
  expect(found).toEqual({ deletes: [], patches: [], posts: [], ...expected })
})

test('operations of a delete: every record of the set', () => {
  const present = [record('1', 'a'), record('2', 'b'), record('3', 't', { type: 'TXT' })]
  expect(operationsOf(present, remove(set('a.z', 'A')))).toMatchObject({ deletes: [{ id: '1' }, { id: '2' }] })
})

test('batches keep to the limit and tear no group', () => {
  const group = (size: number) => ({
    size,
    operations: { deletes: Array.from({ length: size }, () => ({})), patches: [], posts: [] },
  })
  const sizes = batchesOf([2, 2, 3, 1, 1, 4].map(group), 4).map(batch => batch.map(({ size }) => size))
  expect(sizes).toEqual([[2, 2], [3, 1], [1], [4]])
})

const failure = (code: number, more: object = {}) => ({
  success: false,
  errors: [{ code, message: 'Said so', ...more }],
})

test.each([
  [200, { success: true, result: [] }, { kind: 'done' }],
  [200, undefined, { kind: 'unavailable' }],
  [302, undefined, { kind: 'unavailable' }],
  [500, '<html>', { kind: 'unavailable', reason: expect.stringContaining('500') }],
  [503, failure(10_001), { kind: 'unavailable', reason: expect.stringContaining('Said so') }],
  [429, undefined, { kind: 'unavailable', reason: expect.stringContaining('rate') }],
  [400, failure(971), { kind: 'unavailable', reason: expect.stringContaining('rate') }],
  [403, failure(9109), { kind: 'doubt', unavailable: { reason: expect.stringContaining('API token') } }],
  [400, failure(10_000), { kind: 'doubt', unavailable: { reason: expect.stringContaining('API token') } }],
  [400, failure(6003, { error_chain: [{ code: 6111, message: 'x' }] }), { kind: 'doubt' }],
  [404, failure(7003), { kind: 'doubt' }],
  [404, failure(81_044), { kind: 'declined', code: 81_044 }],
  [400, failure(81_053), { kind: 'declined', code: 81_053, reason: 'Said so (81053)' }],
  [400, failure(1004, { error_chain: [{ code: 9005, message: 'Bad' }] }), { kind: 'declined', code: 9005 }],
  [400, failure(9005, { source: { pointer: '/posts/3/content' } }), { kind: 'declined', culprit: ['posts', 3] }],
])('HTTP status %i with %j', (status, body, expected) => {
  expect(verdictOf({ status, body })).toMatchObject(expected)
})

test('small pages are followed to the end', async () => {
  await using subject = await startCloudflareSubject({ largestPage: 7 })
  const { provider, double, zone } = subject
  for (let i = 0; i < 40; i += 1) await subject.put(set(`n${i}.${zone}`, 'A', '192.0.2.1'))
  const result = await provider.read(zone, 'all', signal())
  expect(result.kind === 'read' && result.records).toHaveLength(40)
  expect(double.count('list')).toBe(6)
})

test.each([
  ['one of the first page goes', [], ['n0'], 9],
  ['one more comes at the end', ['z'], [], 11],
  ['one comes at the start and one at the end goes', ['a'], ['n9'], 10],
])('a list whose pages do not fit together is read again: %s', async (_, come, go, count) => {
  await using subject = await startCloudflareSubject({ largestPage: 5 })
  const { provider, double, zone } = subject
  for (let i = 0; i < 10; i += 1) await subject.put(set(`n${i}.${zone}`, 'A', '192.0.2.1'))
  double.schedule('list', { kind: 'meanwhile', before: () => {} })
  double.schedule('list', {
    kind: 'meanwhile',
    before: () => {
      for (const name of come) double.put(zone, { name: `${name}.${zone}`, type: 'A', content: '192.0.2.1' })
      double.remove(zone, ({ name }) => go.some(gone => name === `${gone}.${zone}`))
    },
  })
  const result = await provider.read(zone, 'all', signal())
  const names = result.kind === 'read' ? result.records.map(({ name }) => name).sort() : []
  expect(names).toEqual((await subject.records()).map(({ name }) => name))
  expect(names).toHaveLength(count)
})

test('a record that is not understood is no record left out', async () => {
  await using subject = await startCloudflareSubject()
  const { provider, double, zone } = subject
  await subject.put(set(`a.${zone}`, 'A', '192.0.2.1'))
  double.put(zone, { name: '', type: 'A' })
  expect(await provider.read(zone, 'all', signal())).toMatchObject({ kind: 'unavailable' })
})

test('owners are asked for alone while that is fewer calls than the zone took', async () => {
  await using subject = await startCloudflareSubject({ largestPage: 5 })
  const { provider, double, zone } = subject
  for (let i = 0; i < 50; i += 1) await subject.put(set(`n${i}.${zone}`, 'A', '192.0.2.1'))
  await provider.read(zone, 'all', signal())
  expect(double.count('list')).toBe(10)
  double.forgetCalls()
  await provider.read(
    zone,
    Array.from({ length: 8 }, (_, i) => `n${i}.${zone}`),
    signal(),
  )
  expect(double.count('list')).toBe(8)
})

test('of zones of that name the active one is meant, and no other name', async () => {
  await using subject = await startCloudflareSubject()
  const { provider, double, zone } = subject
  const id = double.addZone(zone)
  const result = [
    { id: 'x', name: `other-${zone}`, status: 'active' },
    { id: 'y', name: zone, status: 'pending' },
    { id, name: zone, status: 'active' },
  ]
  double.schedule('zones', { kind: 'status', status: 200, body: { success: true, result } })
  expect(await provider.apply(zone, addresses(zone, 1), signal())).toEqual(applied())
  double.addZone(zone)
  double.schedule('zones', { kind: 'status', status: 200, body: { success: true, result: result.slice(0, 1) } })
  expect(await provider.read(zone, 'all', signal())).toMatchObject({
    reason: expect.stringContaining(`no zone ${zone}`),
  })
})

test('of two changes of one record set the later counts', async () => {
  await using subject = await startCloudflareSubject()
  const { provider, zone } = subject
  const [first, second] = ['192.0.2.1', '192.0.2.2'].map(address => set(`acme.${zone}`, 'A', address))
  if (!first || !second) throw new Error('there are two')
  expect(await provider.apply(zone, [upsert(first), remove(first), upsert(second)], signal())).toEqual(applied())
  expect(await subject.records()).toEqual([second])
})

test("an address beside somebody's CNAME is refused without a batch to try it", async () => {
  await using subject = await startCloudflareSubject()
  const { provider, double, zone } = subject
  await subject.put(set(`n0.${zone}`, 'CNAME', 'web.example.'))
  expect(await provider.apply(zone, addresses(zone, 1), signal())).toEqual(applied(`n0.${zone}`))
  expect(double.count('batch')).toBe(0)
})

test.each([
  ['few owners are asked for alone', 2, [{ 'name.endswith': 'n0.' }, { 'name.endswith': 'n1.' }]],
  ['many owners are one list of the zone', 30, [{}]],
])('%s', async (_, count, queries) => {
  await using subject = await startCloudflareSubject()
  const { provider, double, zone } = subject
  const owners = Array.from({ length: count }, (_, i) => `n${i}.${zone}`)
  for (const owner of owners) await subject.put(set(`*.${owner}`, 'A', '192.0.2.1'))
  const result = await provider.read(zone, owners, signal())
  expect(result.kind === 'read' && result.records).toHaveLength(count)
  const filters = double.calls.filter(({ kind }) => kind === 'list').map(({ query }) => query['name.endswith'])
  expect(filters).toEqual(
    queries.map(query => ('name.endswith' in query ? `${query['name.endswith']}${zone}` : undefined)),
  )
})

test.each([
  ['free', 3],
  ['pro', 1],
] as const)('600 changes on the plan %s are %i batches', async (plan, batches) => {
  await using subject = await startCloudflareSubject({ plan })
  const { provider, double, zone } = subject
  expect(await provider.apply(zone, addresses(zone, 600), signal())).toEqual(applied())
  expect(double.count('batch')).toBe(batches)
  expect(double.records(zone)).toHaveLength(600)
  double.forgetCalls()
  expect(await provider.apply(zone, addresses(zone, 600), signal())).toEqual(applied())
  expect(double.count('batch')).toBe(0)
  expect(double.count('zones')).toBe(0)
})

test('a comment and tags outlive a change, and the id stays', async () => {
  await using subject = await startCloudflareSubject()
  const { provider, double, zone } = subject
  await subject.put(set(`acme.${zone}`, 'A', '192.0.2.9'))
  await subject.put(set(`acme.${zone}`, 'CAA', '0 issue "ca.example"'))
  const before = double.records(zone)
  await provider.apply(zone, [upsert(set(`acme.${zone}`, 'A', '192.0.2.1'))], signal())
  expect(double.calls.at(-1)?.operations).toEqual({ patches: 1 })
  expect(double.records(zone)).toEqual(
    before.map(record => (record.type === 'A' ? { ...record, content: '192.0.2.1' } : record)),
  )
})

test('what was proxied is put right', async () => {
  await using subject = await startCloudflareSubject()
  const { provider, double, zone } = subject
  const wanted = set(`acme.${zone}`, 'A', '192.0.2.1')
  double.put(zone, { name: wanted.name, type: 'A', content: '192.0.2.1', ttl: 1, proxied: true })
  expect(await provider.read(zone, [wanted.name], signal())).toEqual({ kind: 'read', records: [{ ...wanted, ttl: 1 }] })
  await provider.apply(zone, [upsert(wanted)], signal())
  expect(double.records(zone)).toMatchObject([{ ttl: 300, proxied: false }])
})

test('a CNAME gives way to an address in one batch', async () => {
  await using subject = await startCloudflareSubject()
  const { provider, double, zone } = subject
  const old = set(`acme.${zone}`, 'CNAME', 'web.example.')
  await subject.put(old)
  const changes = [remove(old), upsert(set(`acme.${zone}`, 'A', '192.0.2.1'))]
  expect(await provider.apply(zone, changes, signal())).toEqual(applied())
  expect(double.calls.at(-1)?.operations).toEqual({ deletes: 1, posts: 1 })
})

test.each([
  ['by halves', false],
  ['by the pointer of the error', true],
])('a change that only Cloudflare sees to be faulty is found %s', async (_, hasPointers) => {
  await using subject = await startCloudflareSubject({ hasPointers })
  const { provider, double, zone } = subject
  // The provider lists the zone before somebody puts the CNAME.
  double.schedule('batch', {
    kind: 'meanwhile',
    before: () => double.put(zone, { name: `n77.${zone}`, type: 'CNAME', content: 'web.example' }),
  })
  expect(await provider.apply(zone, addresses(zone, 150), signal())).toEqual(applied(`n77.${zone}`))
  expect(double.records(zone)).toHaveLength(150)
  expect(double.count('batch')).toBeLessThanOrEqual(hasPointers ? 3 : 16)
})

test('a name that Cloudflare takes for none is refused alone', async () => {
  await using subject = await startCloudflareSubject()
  const { provider, zone } = subject
  const long = `${'x'.repeat(64)}.${zone}`
  const changes = [...addresses(zone, 5), upsert(set(long, 'A', '192.0.2.1'))]
  expect(await provider.apply(zone, changes, signal())).toEqual(applied(long))
})

test('when all is refused, the search for culprits ends, and every name is told of', async () => {
  await using subject = await startCloudflareSubject()
  const { provider, double, zone } = subject
  const changes = Array.from({ length: 200 }, (_, i) =>
    upsert(set(`${'x'.repeat(64)}.n${i}.${zone}`, 'A', '192.0.2.1')),
  )
  const result = await provider.apply(zone, changes, signal())
  expect(result.kind === 'applied' && result.refused).toHaveLength(200)
  expect(double.count('batch')).toBe(64)
})

test('more records of one name than a batch can carry: refused, and the rest done', async () => {
  await using subject = await startCloudflareSubject()
  const { provider, zone } = subject
  const many = Array.from({ length: 201 }, (_, i) => `192.0.2.${i}`)
  const changes = [upsert(set(`many.${zone}`, 'A', ...many)), ...addresses(zone, 3)]
  const refused = [{ name: `many.${zone}`, reason: expect.stringContaining('more than 200 records') }]
  expect(await provider.apply(zone, changes, signal())).toEqual({ kind: 'applied', refused })
  expect(await subject.records()).toHaveLength(3)
})

test.each([
  ['a record that is gone', [set('acme', 'A', '192.0.2.9')], []],
  ['a record that is there', [], [set('acme', 'A', '192.0.2.1')]],
])('a list that is not of this moment (%s) is made anew', async (_, before, meanwhile) => {
  await using subject = await startCloudflareSubject()
  const { provider, double, zone } = subject
  const here = (record: RecordSet): RecordSet => ({ ...record, name: `${record.name}.${zone}` })
  for (const record of before) await subject.put(here(record))
  double.schedule('batch', {
    kind: 'meanwhile',
    before: () => {
      double.remove(zone, () => true)
      for (const { name, type, ttl, values } of meanwhile.map(here))
        double.put(zone, { name, type, ttl, content: values[0] ?? '' })
    },
  })
  const changes = [upsert(set(`acme.${zone}`, 'A', '192.0.2.1')), ...addresses(zone, 2)]
  expect(await provider.apply(zone, changes, signal())).toEqual(applied())
  expect(await subject.records()).toHaveLength(3)
})

test('a stale list is seen by what Cloudflare says of the batch', async () => {
  await using subject = await startCloudflareSubject()
  const { provider, double, zone } = subject
  const changes = addresses(zone, 3)
  await provider.apply(zone, changes, signal())
  for (let i = 0; i < 3; i += 1) double.schedule('list', { kind: 'stale' })
  expect(await provider.apply(zone, changes, signal())).toEqual(applied())
  expect(await subject.records()).toHaveLength(3)
})

test('a zone made anew under its name is looked up again', async () => {
  await using subject = await startCloudflareSubject()
  const { provider, double, zone } = subject
  await provider.read(zone, 'all', signal())
  double.addZone(zone)
  expect(await provider.apply(zone, addresses(zone, 1), signal())).toEqual(applied())
  expect(double.records(zone)).toHaveLength(1)
  expect(double.count('zones')).toBe(2)
  double.dropZone(zone)
  expect(await provider.read(zone, 'all', signal())).toMatchObject({ reason: expect.stringContaining(zone) })
})

test('a rate limit says how long', async () => {
  await using subject = await startCloudflareSubject()
  const { provider, double, zone } = subject
  double.limitRate(30)
  const limited = { kind: 'unavailable', retryAfterMs: 30_000 }
  expect(await provider.read(zone, 'all', signal())).toMatchObject(limited)
  expect(await provider.apply(zone, addresses(zone, 1), signal())).toMatchObject(limited)
  double.limitRate(undefined)
  expect(await provider.apply(zone, addresses(zone, 1), signal())).toEqual(applied())
})

test.each(['zones', 'list', 'batch'] as const)('a 503 to %s says how long, and then all goes on', async kind => {
  await using subject = await startCloudflareSubject()
  const { provider, double, zone } = subject
  double.schedule(kind, { kind: 'status', status: 503, retryAfter: '5' })
  const result = await provider.apply(zone, addresses(zone, 1), signal())
  expect(result).toEqual({ kind: 'unavailable', reason: expect.stringContaining('503'), retryAfterMs: 5_000 })
  expect(await subject.records()).toEqual([])
  expect(await provider.apply(zone, addresses(zone, 1), signal())).toEqual(applied())
})

test.each([
  ['hang-before', 0],
  ['hang-after', 3],
  ['break-after', 3],
] as const)('a batch with the fault %s: unavailable, and said again it is right', async (kind, stand) => {
  await using subject = await startCloudflareSubject()
  const { provider, double, zone } = subject
  double.schedule('batch', { kind })
  const abort = new AbortController()
  const result = provider.apply(zone, addresses(zone, 3), abort.signal)
  await expect.poll(() => double.count('batch')).toBe(1)
  if (kind !== 'break-after') abort.abort()
  expect(await result).toMatchObject({ kind: 'unavailable' })
  expect(await subject.records()).toHaveLength(stand)
  expect(await provider.apply(zone, addresses(zone, 3), signal())).toEqual(applied())
  expect(await subject.records()).toHaveLength(3)
})

test('neither the token nor the address of the API is in a reason', async () => {
  await using subject = await startCloudflareSubject()
  const nowhere = createCloudflareProvider({ url: 'http://127.0.0.1:1/client/v4/', apiToken: 'not a header\n' })
  const result = await nowhere.read(subject.zone, 'all', signal())
  expect(result).toMatchObject({ kind: 'unavailable' })
  expect(JSON.stringify(result)).not.toMatch(/not a header|127\.0\.0\.1/)
})
