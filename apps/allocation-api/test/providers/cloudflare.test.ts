import { expect, test } from 'vitest'
import type { RecordChange, RecordSet } from '../../src/dns/domain/rrset.ts'
import { createCloudflareProvider } from '../../src/dns/providers/cloudflare/index.ts'
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
  rejected: names.map(name => ({ name, reason: expect.stringMatching(/\w{3}/) })),
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

test("an address beside somebody's CNAME is rejected without a batch to try it", async () => {
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
  expect(double.count('batch')).toBeLessThanOrEqual(hasPointers ? 4 : 17)
})

test('whoever an answer points to is tried alone before it is rejected', async () => {
  await using subject = await startCloudflareSubject()
  const { provider, double, zone } = subject
  const error = { code: 9000, message: 'DNS name is invalid.', source: { pointer: '/posts/0/name' } }
  double.schedule('batch', { kind: 'status', status: 400, body: { success: false, errors: [error] } })
  expect(await provider.apply(zone, addresses(zone, 5), signal())).toEqual(applied())
  expect(await subject.records()).toHaveLength(5)
})

test('a name that Cloudflare takes for none is rejected alone', async () => {
  await using subject = await startCloudflareSubject()
  const { provider, zone } = subject
  const long = `${'x'.repeat(64)}.${zone}`
  const changes = [...addresses(zone, 5), upsert(set(long, 'A', '192.0.2.1'))]
  expect(await provider.apply(zone, changes, signal())).toEqual(applied(long))
})

test('when all is rejected, the search ends: some are rejected, nothing is said against the others', async () => {
  await using subject = await startCloudflareSubject()
  const { provider, double, zone } = subject
  const long = Array.from({ length: 190 }, (_, i) => upsert(set(`${'x'.repeat(64)}.n${i}.${zone}`, 'A', '192.0.2.1')))
  const result = await provider.apply(zone, [...long, ...addresses(zone, 10)], signal())
  if (result.kind !== 'applied') throw new Error(result.reason)
  const names = result.rejected.map(({ name }) => name)
  expect(names.length).toBeGreaterThan(5)
  expect(names.every(name => name.startsWith('xxx'))).toBe(true)
  expect([...names, ...(result.skipped ?? [])].sort()).toEqual(
    [...long, ...addresses(zone, 10)].map(change => (change.kind === 'upsert' ? change.set.name : '')).sort(),
  )
  expect(double.count('batch')).toBe(24)
  expect(await subject.records()).toEqual([])
})

test('more records of one name than a batch can carry: rejected, and the rest done', async () => {
  await using subject = await startCloudflareSubject()
  const { provider, zone } = subject
  const many = Array.from({ length: 201 }, (_, i) => `192.0.2.${i}`)
  const changes = [upsert(set(`many.${zone}`, 'A', ...many)), ...addresses(zone, 3)]
  const rejected = [{ name: `many.${zone}`, reason: expect.stringContaining('more than 200 records') }]
  expect(await provider.apply(zone, changes, signal())).toEqual({ kind: 'applied', rejected })
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

test.each<[what: string, reads: (readonly string[] | 'all')[], name: string, lists: number]>([
  ['the name was read', [['n0']], 'n0', 1],
  ['the zone was read', ['all'], 'n0', 1],
  ['more names than are worth a list each were read', [Array.from({ length: 20 }, (_, i) => `n${i}`)], 'n0', 1],
  ['another name was read', [['n1']], 'n0', 2],
  ['the last read was of another name', [['n0'], ['n1']], 'n0', 3],
  ['nothing was read', [], 'n0', 1],
])(
  'an apply needs no list of its own when the read before it has shown the names: %s',
  async (_, reads, name, lists) => {
    await using subject = await startCloudflareSubject()
    const { provider, double, zone } = subject
    await subject.put(set(`n0.${zone}`, 'A', '192.0.2.9'))
    const full = (one: string) => `${one}.${zone}`
    for (const owners of reads) await provider.read(zone, owners === 'all' ? owners : owners.map(full), signal())
    const wanted = set(full(name), 'A', '192.0.2.1')
    expect(await provider.apply(zone, [upsert(wanted)], signal())).toEqual(applied())
    expect(double.count('list')).toBe(lists)
    expect(double.count('batch')).toBe(1)
    expect(await subject.records()).toEqual([wanted])
    // What was read is good for one apply.
    await provider.apply(zone, [upsert(set(full(name), 'A', '192.0.2.2'))], signal())
    expect(double.count('list')).toBe(lists + 1)
  },
)

test('what a read showed before one that failed is not used', async () => {
  await using subject = await startCloudflareSubject()
  const { provider, double, zone } = subject
  await provider.read(zone, 'all', signal())
  double.schedule('list', { kind: 'status', status: 500, body: {} })
  expect((await provider.read(zone, 'all', signal())).kind).toBe('unavailable')
  await provider.apply(zone, addresses(zone, 1), signal())
  expect(double.count('list')).toBe(3)
})

test('a record that went after the read is written anew', async () => {
  await using subject = await startCloudflareSubject()
  const { provider, double, zone } = subject
  await subject.put(set(`n0.${zone}`, 'A', '192.0.2.9'))
  await provider.read(zone, [`n0.${zone}`], signal())
  double.remove(zone, () => true)
  const wanted = set(`n0.${zone}`, 'A', '192.0.2.1')
  expect(await provider.apply(zone, [upsert(wanted)], signal())).toEqual(applied())
  expect(await subject.records()).toEqual([wanted])
})

test('of a list made anew too, what cannot be is rejected, and the rest done', async () => {
  await using subject = await startCloudflareSubject()
  const { provider, double, zone } = subject
  await subject.put(set(`n0.${zone}`, 'A', '192.0.2.9'))
  double.schedule('batch', {
    kind: 'meanwhile',
    before: () => {
      double.remove(zone, () => true)
      double.put(zone, { name: `n0.${zone}`, type: 'CNAME', content: 'web.example' })
    },
  })
  const rejected = [{ name: `n0.${zone}`, reason: expect.stringContaining('CNAME') }]
  expect(await provider.apply(zone, addresses(zone, 3), signal())).toEqual({ kind: 'applied', rejected })
  expect((await subject.records()).map(({ type }) => type)).toEqual(['CNAME', 'A', 'A'])
})

test('a record that is there and in no list is rejected: the list is made anew once', async () => {
  await using subject = await startCloudflareSubject()
  const { provider, double, zone } = subject
  const body = { success: false, errors: [{ code: 81_058, message: 'An identical record already exists.' }] }
  for (let i = 0; i < 2; i += 1) double.schedule('batch', { kind: 'status', status: 400, body })
  const rejected = [{ name: `n0.${zone}`, reason: expect.stringContaining('identical') }]
  expect(await provider.apply(zone, addresses(zone, 1), signal())).toEqual({ kind: 'applied', rejected })
  expect(double.count('list')).toBe(2)
  expect(double.count('batch')).toBe(2)
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
  double.forgetCalls()
  await provider.read(zone, 'all', signal())
  expect(double.calls.map(({ kind }) => kind)).toEqual(['zones'])
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

test.each([
  ['zones', 403, 9109],
  ['list', 403, 10_000],
  ['list', 400, 9207],
  ['list', 404, 7003],
  ['batch', 400, 9000],
  ['batch', 500, 1000],
] as const)('a token that the answer to %s quotes (%i, %i) is told nowhere', async (kind, status, code) => {
  await using subject = await startCloudflareSubject()
  const { provider, double, zone } = subject
  const body = { success: false, errors: [{ code, message: 'No,' }] }
  for (let i = 0; i < 2; i += 1) double.schedule(kind, { kind: 'status', status, body })
  const told = JSON.stringify(await provider.apply(zone, addresses(zone, 1), signal()))
  expect(told).toContain('No, [Bearer <redacted>]')
  expect(told).not.toContain(double.token)
})

test('what is lacking for one zone is told as such; what would be the same for any is not', async () => {
  await using subject = await startCloudflareSubject()
  const { provider, withWrongKey, double, zone } = subject
  double.addZone(`copy-of-${zone}`, 'free', 'secondary')
  const read = async (name = zone, by = provider) => by.read(name, 'all', signal())
  const ofZone = { kind: 'unavailable', scope: 'zone' }
  expect(await read(`no-${zone}`)).toMatchObject(ofZone)
  expect(await read(`copy-of-${zone}`)).toMatchObject({ ...ofZone, reason: expect.stringContaining('secondary') })
  const forbidden = { kind: 'status', status: 403, body: { errors: [{ code: 10_000, message: 'No' }] } } as const
  double.schedule('list', forbidden)
  expect(await read()).toMatchObject({ ...ofZone, reason: expect.stringContaining(zone) })

  const ofAll: unknown[] = []
  ofAll.push(await read(zone, withWrongKey))
  double.schedule('zones', { kind: 'status', status: 503 })
  ofAll.push(await read())
  double.limitRate(3)
  ofAll.push(await read())
  await double.goAway()
  ofAll.push(await read())
  for (const result of ofAll) {
    expect(result).toMatchObject({ kind: 'unavailable' })
    expect(result).not.toHaveProperty('scope')
  }
})

test('neither the token nor the address of the API is in a reason', async () => {
  await using subject = await startCloudflareSubject()
  const nowhere = createCloudflareProvider({ url: 'http://127.0.0.1:1/client/v4/', apiToken: 'not a header\n' })
  const result = await nowhere.read(subject.zone, 'all', signal())
  expect(result).toMatchObject({ kind: 'unavailable' })
  expect(JSON.stringify(result)).not.toMatch(/not a header|127\.0\.0\.1/)
})
