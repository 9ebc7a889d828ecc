import { expect, test } from 'vitest'
import type { RecordChange, RecordSet } from '../../src/dns/domain/rrset.ts'
import { createCloudflareProvider } from '../../src/dns/providers/cloudflare/index.ts'
import { atOrBelow, describeConformance } from './conformance.ts'
import { startCloudflareSubject, startSubject } from './support/cloudflare.ts'

describeConformance('cloudflare', startSubject)

const signal = (): AbortSignal => AbortSignal.timeout(120_000)
const set = (name: string, type: string, ...values: string[]): RecordSet => ({ name, type, ttl: 300, values })
const upsert = (record: RecordSet): RecordChange => ({ kind: 'upsert', set: record })
const remove = ({ name, type }: RecordSet): RecordChange => ({ kind: 'delete', name, type })
const addresses = (zone: string, count: number): RecordChange[] =>
  Array.from({ length: count }, (_, i) => upsert(set(`n${i}.${zone}`, 'A', `192.0.2.${i % 250}`)))
const applied = (...names: string[]) => ({
  kind: 'applied',
  rejected: names.map(name => ({ name, reason: expect.stringMatching(/\w{3}/) })),
})

test.each([
  ['in the first of several batches', 0],
  ['before the deletions of a name that do not fit into one batch', 250],
])('the first change of a write is %s', async (_, surplus) => {
  await using subject = await startCloudflareSubject()
  const { provider, double, zone } = subject
  for (let i = 0; i < surplus; i += 1) double.put(zone, { name: `many.${zone}`, type: 'TXT', content: `"${i}"` })
  await provider.read(zone, atOrBelow(zone), signal())
  double.schedule('batch', { kind: 'concurrent-write', before: () => {} })
  double.schedule('batch', { kind: 'status', status: 500 })
  const first = upsert(set(`first.${zone}`, 'TXT', '"1"'))
  const others = surplus > 0 ? [remove(set(`many.${zone}`, 'TXT'))] : addresses(zone, 300)
  expect(await provider.apply(zone, [first, ...others], signal())).toMatchObject({ kind: 'unavailable' })
  expect((await subject.records()).map(({ name }) => name)).toContain(`first.${zone}`)
})

test('all small pages are read', async () => {
  await using subject = await startCloudflareSubject({ maxPageSize: 7 })
  const { provider, double, zone } = subject
  for (let i = 0; i < 40; i += 1) await subject.put(set(`n${i}.${zone}`, 'A', '192.0.2.1'))
  const result = await provider.read(zone, atOrBelow(zone), signal())
  expect(result.kind === 'read' && result.records).toHaveLength(40)
  expect(double.count('list')).toBe(6)
})

test('a zone whose name the API has in Unicode is the zone of its A-labels, and so are its records', async () => {
  await using subject = await startCloudflareSubject()
  const { provider, double } = subject
  const zone = 'xn--bcher-kva.example'
  double.addZone(zone)
  const changes = [upsert(set(`acme.${zone}`, 'A', '192.0.2.1')), upsert(set(`*.acme.${zone}`, 'A', '192.0.2.1'))]
  expect(await provider.apply(zone, changes, signal())).toEqual(applied())
  const read = await provider.read(zone, { names: [`acme.${zone}`, `*.acme.${zone}`], branches: [] }, signal())
  expect(read.kind === 'read' && read.records.map(({ name }) => name)).toEqual([`*.acme.${zone}`, `acme.${zone}`])
  expect(await provider.checkZone(zone, signal())).toEqual({ kind: 'writable' })
  double.addZone('example')
  double.resetCalls()
  const around = createCloudflareProvider({ url: double.url, apiToken: double.token, zoneOf: () => 'example' })
  await around.read(zone, { names: [zone, `acme.${zone}`], branches: [] }, signal())
  // In which form it would have them is not documented.
  expect(double.calls.filter(({ query }) => Object.keys(query).some(key => key.startsWith('name.')))).toEqual([])
  double.setStatus(zone, 'moved')
  const other = createCloudflareProvider({ url: double.url, apiToken: double.token })
  const notServed = expect.stringContaining('does not serve the zone xn--bcher-kva.example: its status is "moved"')
  expect(await other.checkZone(zone, signal())).toMatchObject({ kind: 'unusable', reason: notServed })
  expect(await other.read(zone, atOrBelow(zone), signal())).toMatchObject({ scope: 'zone', reason: notServed })
})

test('a zone of many pages that another client changes all the time: its names are read one by one', async () => {
  await using subject = await startCloudflareSubject({ maxPageSize: 5 })
  const { provider, double, zone } = subject
  const names = Array.from({ length: 10 }, (_, i) => `n${i}.${zone}`)
  for (const name of names) await subject.put(set(name, 'A', '192.0.2.1'))
  for (let i = 0; i < 6; i += 1)
    double.schedule('list', {
      kind: 'concurrent-write',
      before: () => double.put(zone, { name: `a${i}.${zone}`, type: 'A', content: '198.51.100.1' }),
    })
  const read = await provider.read(zone, { names, branches: [] }, signal())
  expect(read.kind === 'read' && read.records.map(({ name }) => name).sort()).toEqual(names)
})

test.each([
  ['a record of the first page is deleted', [], ['n0'], 9],
  ['a record is added at the end', ['z'], [], 11],
  ['one is added at the start and one deleted at the end', ['a'], ['n9'], 10],
])('a list with inconsistent pages is read again: %s', async (_, added, deleted, count) => {
  await using subject = await startCloudflareSubject({ maxPageSize: 5 })
  const { provider, double, zone } = subject
  for (let i = 0; i < 10; i += 1) await subject.put(set(`n${i}.${zone}`, 'A', '192.0.2.1'))
  double.schedule('list', { kind: 'concurrent-write', before: () => {} })
  double.schedule('list', {
    kind: 'concurrent-write',
    before: () => {
      for (const name of added) double.put(zone, { name: `${name}.${zone}`, type: 'A', content: '192.0.2.1' })
      double.remove(zone, ({ name }) => deleted.some(gone => name === `${gone}.${zone}`))
    },
  })
  const result = await provider.read(zone, atOrBelow(zone), signal())
  const names = result.kind === 'read' ? result.records.map(({ name }) => name).sort() : []
  expect(names).toEqual((await subject.records()).map(({ name }) => name))
  expect(names).toHaveLength(count)
})

test('a record that cannot be parsed is not left out: the zone is unavailable', async () => {
  await using subject = await startCloudflareSubject()
  const { provider, double, zone } = subject
  await subject.put(set(`a.${zone}`, 'A', '192.0.2.1'))
  double.put(zone, { name: '', type: 'A' })
  expect(await provider.read(zone, atOrBelow(zone), signal())).toMatchObject({ kind: 'unavailable' })
})

test('a whole zone is a part per page, and each page is progress', async () => {
  await using subject = await startCloudflareSubject({ maxPageSize: 5 })
  const { provider, zone } = subject
  for (let i = 0; i < 23; i += 1) await subject.put(set(`n${i}.${zone}`, 'A', '192.0.2.1'))
  const sizes: number[] = []
  for await (const part of provider.readZone(zone, signal())) {
    if (part.kind !== 'part') throw new Error(JSON.stringify(part))
    sizes.push(part.records.length)
  }
  expect(sizes).toEqual([5, 5, 5, 5, 3])
  let progress = 0
  await provider.read(zone, atOrBelow(zone), signal(), () => {
    progress += 1
  })
  expect(progress).toBe(5)
})

test('owners are listed separately while that needs fewer calls than the zone did', async () => {
  await using subject = await startCloudflareSubject({ maxPageSize: 5 })
  const { provider, double, zone } = subject
  for (let i = 0; i < 50; i += 1) await subject.put(set(`n${i}.${zone}`, 'A', '192.0.2.1'))
  await provider.read(zone, atOrBelow(zone), signal())
  expect(double.count('list')).toBe(10)
  double.resetCalls()
  await provider.read(zone, atOrBelow(...Array.from({ length: 8 }, (_, i) => `n${i}.${zone}`)), signal())
  expect(double.count('list')).toBe(8)
})

test('the active zone of the exact name is selected', async () => {
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
  expect(await provider.read(zone, atOrBelow(zone), signal())).toMatchObject({
    reason: expect.stringContaining(`no zone ${zone}`),
  })
})

test('the later of two changes to a record set wins', async () => {
  await using subject = await startCloudflareSubject()
  const { provider, zone } = subject
  const [first, second] = ['192.0.2.1', '192.0.2.2'].map(address => set(`acme.${zone}`, 'A', address))
  if (!first || !second) throw new Error('expected two record sets')
  expect(await provider.apply(zone, [upsert(first), remove(first), upsert(second)], signal())).toEqual(applied())
  expect(await subject.records()).toEqual([second])
})

test('an address beside a foreign CNAME is rejected without a batch', async () => {
  await using subject = await startCloudflareSubject()
  const { provider, double, zone } = subject
  await subject.put(set(`n0.${zone}`, 'CNAME', 'web.example.'))
  expect(await provider.apply(zone, addresses(zone, 1), signal())).toEqual(applied(`n0.${zone}`))
  expect(double.count('batch')).toBe(0)
})

test.each([
  ['few owners are listed separately', 2, [{ 'name.endswith': 'n0.' }, { 'name.endswith': 'n1.' }]],
  ['many owners are one list of the zone', 30, [{}]],
])('%s', async (_, count, queries) => {
  await using subject = await startCloudflareSubject()
  const { provider, double, zone } = subject
  const owners = Array.from({ length: count }, (_, i) => `n${i}.${zone}`)
  for (const owner of owners) await subject.put(set(`*.${owner}`, 'A', '192.0.2.1'))
  const result = await provider.read(zone, atOrBelow(...owners), signal())
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
  double.resetCalls()
  expect(await provider.apply(zone, addresses(zone, 600), signal())).toEqual(applied())
  expect(double.count('batch')).toBe(0)
  expect(double.count('zones')).toBe(0)
})

test('a change keeps the comment, the tags and the id', async () => {
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

test('a proxied record is repaired', async () => {
  await using subject = await startCloudflareSubject()
  const { provider, double, zone } = subject
  const wanted = set(`acme.${zone}`, 'A', '192.0.2.1')
  double.put(zone, { name: wanted.name, type: 'A', content: '192.0.2.1', ttl: 1, proxied: true })
  expect(await provider.read(zone, atOrBelow(wanted.name), signal())).toEqual({
    kind: 'read',
    records: [{ ...wanted, ttl: 1 }],
  })
  await provider.apply(zone, [upsert(wanted)], signal())
  expect(double.records(zone)).toMatchObject([{ ttl: 300, proxied: false }])
})

test('an address replaces a CNAME in one batch', async () => {
  await using subject = await startCloudflareSubject()
  const { provider, double, zone } = subject
  const old = set(`acme.${zone}`, 'CNAME', 'web.example.')
  await subject.put(old)
  const changes = [remove(old), upsert(set(`acme.${zone}`, 'A', '192.0.2.1'))]
  expect(await provider.apply(zone, changes, signal())).toEqual(applied())
  expect(double.calls.at(-1)?.operations).toEqual({ deletes: 1, posts: 1 })
})

test.each([
  ['by bisection', false],
  ['by the pointer of the error', true],
])('a change that only Cloudflare rejects is found %s', async (_, hasPointers) => {
  await using subject = await startCloudflareSubject({ hasPointers })
  const { provider, double, zone } = subject
  // The provider lists the zone before another client adds the CNAME.
  double.schedule('batch', {
    kind: 'concurrent-write',
    before: () => double.put(zone, { name: `n77.${zone}`, type: 'CNAME', content: 'web.example' }),
  })
  expect(await provider.apply(zone, addresses(zone, 150), signal())).toEqual(applied(`n77.${zone}`))
  expect(double.records(zone)).toHaveLength(150)
  expect(double.count('batch')).toBeLessThanOrEqual(hasPointers ? 4 : 17)
})

test('a change that the response names is tried alone before it is rejected', async () => {
  await using subject = await startCloudflareSubject()
  const { provider, double, zone } = subject
  const error = { code: 9000, message: 'DNS name is invalid.', source: { pointer: '/posts/0/name' } }
  double.schedule('batch', { kind: 'status', status: 400, body: { success: false, errors: [error] } })
  expect(await provider.apply(zone, addresses(zone, 5), signal())).toEqual(applied())
  expect(await subject.records()).toHaveLength(5)
})

test('only a name that Cloudflare considers invalid is rejected', async () => {
  await using subject = await startCloudflareSubject()
  const { provider, zone } = subject
  const long = `${'x'.repeat(64)}.${zone}`
  const changes = [...addresses(zone, 5), upsert(set(long, 'A', '192.0.2.1'))]
  expect(await provider.apply(zone, changes, signal())).toEqual(applied(long))
})

test('if all are rejected, the search stops: some are rejected, the others are skipped', async () => {
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

test('more records of one name than a batch allows: rejected, and the rest applied', async () => {
  await using subject = await startCloudflareSubject()
  const { provider, zone } = subject
  const many = Array.from({ length: 201 }, (_, i) => `192.0.2.${i}`)
  const changes = [upsert(set(`many.${zone}`, 'A', ...many)), ...addresses(zone, 3)]
  const rejected = [{ name: `many.${zone}`, reason: expect.stringContaining('more than 200 records') }]
  expect(await provider.apply(zone, changes, signal())).toEqual({ kind: 'applied', rejected })
  expect(await subject.records()).toHaveLength(3)
})

test('more records of one name than a batch allows are deleted in several batches, before its new records', async () => {
  await using subject = await startCloudflareSubject()
  const { provider, double, zone } = subject
  const many = Array.from({ length: 450 }, (_, i) => `"${i}"`)
  await subject.put(set(`many.${zone}`, 'TXT', ...many))
  await provider.read(zone, atOrBelow(`many.${zone}`), signal())
  const before = double.calls.length
  const changes = [remove(set(`many.${zone}`, 'TXT')), upsert(set(`many.${zone}`, 'A', '192.0.2.1'))]
  expect(await provider.apply(zone, changes, signal())).toEqual({ kind: 'applied', rejected: [] })
  expect(await subject.records()).toEqual([set(`many.${zone}`, 'A', '192.0.2.1')])
  const deletions = double.calls.slice(before).map(({ operations }) => operations.deletes ?? 0)
  expect(deletions.reduce((sum, count) => sum + count)).toBe(450)
  expect(Math.max(...deletions)).toBe(200)
})

test.each([
  ['a deleted record', [set('acme', 'A', '192.0.2.9')], []],
  ['an added record', [], [set('acme', 'A', '192.0.2.1')]],
])('an outdated list (%s) is read again', async (_, before, meanwhile) => {
  await using subject = await startCloudflareSubject()
  const { provider, double, zone } = subject
  const here = (record: RecordSet): RecordSet => ({ ...record, name: `${record.name}.${zone}` })
  for (const record of before) await subject.put(here(record))
  double.schedule('batch', {
    kind: 'concurrent-write',
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
  ['more names than are listed separately were read', [Array.from({ length: 20 }, (_, i) => `n${i}`)], 'n0', 1],
  ['another name was read', [['n1']], 'n0', 2],
  ['the last read was of another name', [['n0'], ['n1']], 'n0', 3],
  ['nothing was read', [], 'n0', 1],
])('an apply lists the names only if the previous read did not return them: %s', async (_, reads, name, lists) => {
  await using subject = await startCloudflareSubject()
  const { provider, double, zone } = subject
  await subject.put(set(`n0.${zone}`, 'A', '192.0.2.9'))
  const full = (one: string) => `${one}.${zone}`
  for (const owners of reads) {
    const wanted = owners === 'all' ? [zone] : owners.map(full)
    await provider.read(zone, atOrBelow(...wanted), signal())
  }
  const wanted = set(full(name), 'A', '192.0.2.1')
  expect(await provider.apply(zone, [upsert(wanted)], signal())).toEqual(applied())
  expect(double.count('list')).toBe(lists)
  expect(double.count('batch')).toBe(1)
  expect(await subject.records()).toEqual([wanted])
  // A read is valid for one apply.
  await provider.apply(zone, [upsert(set(full(name), 'A', '192.0.2.2'))], signal())
  expect(double.count('list')).toBe(lists + 1)
})

test('a failed read invalidates the read before it', async () => {
  await using subject = await startCloudflareSubject()
  const { provider, double, zone } = subject
  await provider.read(zone, atOrBelow(zone), signal())
  double.schedule('list', { kind: 'status', status: 500, body: {} })
  expect((await provider.read(zone, atOrBelow(zone), signal())).kind).toBe('unavailable')
  await provider.apply(zone, addresses(zone, 1), signal())
  expect(double.count('list')).toBe(3)
})

test('a record deleted after the read is created again', async () => {
  await using subject = await startCloudflareSubject()
  const { provider, double, zone } = subject
  await subject.put(set(`n0.${zone}`, 'A', '192.0.2.9'))
  await provider.read(zone, atOrBelow(`n0.${zone}`), signal())
  double.remove(zone, () => true)
  const wanted = set(`n0.${zone}`, 'A', '192.0.2.1')
  expect(await provider.apply(zone, [upsert(wanted)], signal())).toEqual(applied())
  expect(await subject.records()).toEqual([wanted])
})

test('after a repeated list, impossible changes are rejected, and the rest applied', async () => {
  await using subject = await startCloudflareSubject()
  const { provider, double, zone } = subject
  await subject.put(set(`n0.${zone}`, 'A', '192.0.2.9'))
  double.schedule('batch', {
    kind: 'concurrent-write',
    before: () => {
      double.remove(zone, () => true)
      double.put(zone, { name: `n0.${zone}`, type: 'CNAME', content: 'web.example' })
    },
  })
  const rejected = [{ name: `n0.${zone}`, reason: expect.stringContaining('CNAME') }]
  expect(await provider.apply(zone, addresses(zone, 3), signal())).toEqual({ kind: 'applied', rejected })
  expect((await subject.records()).map(({ type }) => type)).toEqual(['CNAME', 'A', 'A'])
})

test('a record that exists but is in no list is rejected: the list is repeated once', async () => {
  await using subject = await startCloudflareSubject()
  const { provider, double, zone } = subject
  const body = { success: false, errors: [{ code: 81_058, message: 'An identical record already exists.' }] }
  for (let i = 0; i < 2; i += 1) double.schedule('batch', { kind: 'status', status: 400, body })
  const rejected = [{ name: `n0.${zone}`, reason: expect.stringContaining('identical') }]
  expect(await provider.apply(zone, addresses(zone, 1), signal())).toEqual({ kind: 'applied', rejected })
  expect(double.count('list')).toBe(2)
  expect(double.count('batch')).toBe(2)
})

test('the response to the batch reveals a stale list', async () => {
  await using subject = await startCloudflareSubject()
  const { provider, double, zone } = subject
  const changes = addresses(zone, 3)
  await provider.apply(zone, changes, signal())
  for (let i = 0; i < 3; i += 1) double.schedule('list', { kind: 'stale' })
  expect(await provider.apply(zone, changes, signal())).toEqual(applied())
  expect(await subject.records()).toHaveLength(3)
})

test('a zone that was created again under its name is looked up again', async () => {
  await using subject = await startCloudflareSubject()
  const { provider, double, zone } = subject
  await provider.read(zone, atOrBelow(zone), signal())
  double.addZone(zone)
  expect(await provider.apply(zone, addresses(zone, 1), signal())).toEqual(applied())
  expect(double.records(zone)).toHaveLength(1)
  expect(double.count('zones')).toBe(2)
  double.deleteZone(zone)
  expect(await provider.read(zone, atOrBelow(zone), signal())).toMatchObject({ reason: expect.stringContaining(zone) })
  double.resetCalls()
  await provider.read(zone, atOrBelow(zone), signal())
  expect(double.calls.map(({ kind }) => kind)).toEqual(['zones'])
})

test('a rate limit has its Retry-After', async () => {
  await using subject = await startCloudflareSubject()
  const { provider, double, zone } = subject
  double.limitRate(30)
  const limited = { kind: 'unavailable', retryAfterMs: 30_000 }
  expect(await provider.read(zone, atOrBelow(zone), signal())).toMatchObject(limited)
  expect(await provider.apply(zone, addresses(zone, 1), signal())).toMatchObject(limited)
  double.limitRate(undefined)
  expect(await provider.apply(zone, addresses(zone, 1), signal())).toEqual(applied())
})

test.each(['zones', 'list', 'batch'] as const)(
  'a 503 to %s has its Retry-After, and then calls succeed',
  async kind => {
    await using subject = await startCloudflareSubject()
    const { provider, double, zone } = subject
    double.schedule(kind, { kind: 'status', status: 503, retryAfter: '5' })
    const result = await provider.apply(zone, addresses(zone, 1), signal())
    expect(result).toEqual({ kind: 'unavailable', reason: expect.stringContaining('503'), retryAfterMs: 5_000 })
    expect(await subject.records()).toEqual([])
    expect(await provider.apply(zone, addresses(zone, 1), signal())).toEqual(applied())
  },
)

test.each([
  ['hang-before', 0],
  ['hang-after', 3],
  ['break-after', 3],
] as const)('a batch with the fault %s: unavailable, and a retry completes it', async (kind, stand) => {
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
] as const)('a token that the response to %s quotes (%i, %i) is redacted', async (kind, status, code) => {
  await using subject = await startCloudflareSubject()
  const { provider, double, zone } = subject
  const body = { success: false, errors: [{ code, message: 'No,' }] }
  for (let i = 0; i < 2; i += 1) double.schedule(kind, { kind: 'status', status, body })
  const text = JSON.stringify(await provider.apply(zone, addresses(zone, 1), signal()))
  expect(text).toContain('No, [Bearer <redacted>]')
  expect(text).not.toContain(double.token)
})

test('a failure of one zone has the scope zone; a failure of the provider has none', async () => {
  await using subject = await startCloudflareSubject()
  const { provider, withWrongKey, double, zone } = subject
  double.addZone(`copy-of-${zone}`, 'free', 'secondary')
  const read = async (name = zone, by = provider) => by.read(name, atOrBelow(name), signal())
  const zoneUnavailable = { kind: 'unavailable', scope: 'zone' }
  expect(await read(`no-${zone}`)).toMatchObject(zoneUnavailable)
  expect(await read(`copy-of-${zone}`)).toMatchObject({
    ...zoneUnavailable,
    reason: expect.stringContaining('secondary'),
  })
  const forbidden = { kind: 'status', status: 403, body: { errors: [{ code: 10_000, message: 'No' }] } } as const
  double.schedule('list', forbidden)
  expect(await read()).toMatchObject({ ...zoneUnavailable, reason: expect.stringContaining(zone) })

  const providerUnavailable: unknown[] = []
  providerUnavailable.push(await read(zone, withWrongKey))
  double.schedule('zones', { kind: 'status', status: 503 })
  providerUnavailable.push(await read())
  double.limitRate(3)
  providerUnavailable.push(await read())
  await double.stop()
  providerUnavailable.push(await read())
  for (const result of providerUnavailable) {
    expect(result).toMatchObject({ kind: 'unavailable' })
    expect(result).not.toHaveProperty('scope')
  }
})

test('a reason contains neither the token nor the address of the API', async () => {
  await using subject = await startCloudflareSubject()
  const nowhere = createCloudflareProvider({ url: 'http://127.0.0.1:1/client/v4/', apiToken: 'not a header\n' })
  const result = await nowhere.read(subject.zone, atOrBelow(subject.zone), signal())
  expect(result).toMatchObject({ kind: 'unavailable' })
  expect(JSON.stringify(result)).not.toMatch(/not a header|127\.0\.0\.1/)
})

test('a filter of zones that Cloudflare rejects shows no zone; a limit of the rate is one', async () => {
  await using subject = await startCloudflareSubject()
  const { provider, double, zone } = subject
  const child = `acme.${zone}`
  double.addZone(child)
  const find = async () => provider.findZones?.(zone, [], signal())
  expect(await find()).toMatchObject({ zones: expect.arrayContaining([child]) })
  double.schedule('zones', {
    kind: 'status',
    status: 400,
    body: { success: false, errors: [{ code: 1_012, message: 'x' }] },
  })
  expect(await find()).toEqual({ kind: 'found', zones: [], isAll: true })
  double.limitRate(30)
  expect(await find()).toMatchObject({ kind: 'unavailable', retryAfterMs: 30_000 })
})
