import { describe, expect, test } from 'vitest'
import type { RecordChange } from '../../domain/rrset.ts'
import type { DomainSettings, WriteResult } from './api.ts'
import type { DynadotRecord } from './record.ts'
import { applyChanges, writeChanges } from './write.ts'

const ZONE = 'pool.example'

describe('the changes of a whole record set', () => {
  const sub = (host: string, type = 'A', value = '192.0.2.1'): DynadotRecord => ({
    place: 'sub',
    host,
    type,
    value,
    extra: '',
  })
  const main = (type = 'A', value = '192.0.2.1'): DynadotRecord => ({ ...sub('', type, value), place: 'main' })
  const toFqdn = (host: string) => (host === '' ? ZONE : `${host}.${ZONE}`)
  const up = (host: string, ...values: string[]): RecordChange => ({
    kind: 'upsert',
    set: { name: toFqdn(host), type: 'A', ttl: 300, values: values.length > 0 ? values : ['192.0.2.1'] },
  })
  const del = (host: string, type = 'A'): RecordChange => ({ kind: 'delete', name: toFqdn(host), type })
  const many = (count: number) => Array.from({ length: count }, (_, i) => sub(`n${i}`))

  interface Case {
    readonly before: readonly DynadotRecord[]
    readonly changes: readonly RecordChange[]
    /** `host TYPE value` of each record afterwards; a number: only the count. */
    readonly after: readonly string[] | number
    readonly rejected?: Readonly<Record<string, RegExp>>
    readonly unchanged?: boolean
  }

  test.each<[string, Case]>([
    ['creates', { before: [sub('b')], changes: [up('a')], after: ['b A 192.0.2.1', 'a a 192.0.2.1'] }],
    ['replaces', { before: [sub('a')], changes: [up('a', '192.0.2.2')], after: ['a a 192.0.2.2'] }],
    [
      'leaves a matching record unchanged',
      { before: [sub('a')], changes: [up('a')], after: ['a A 192.0.2.1'], unchanged: true },
    ],
    ['deletes', { before: [sub('a'), sub('a', 'TXT')], changes: [del('a')], after: ['a TXT 192.0.2.1'] }],
    ['deletes nothing', { before: [sub('b')], changes: [del('a')], after: ['b A 192.0.2.1'], unchanged: true }],
    [
      'a deleted CNAME makes room',
      { before: [sub('a', 'CNAME', 'b.example')], changes: [up('a'), del('a', 'CNAME')], after: ['a a 192.0.2.1'] },
    ],
    ['the last change wins', { before: [], changes: [up('a'), up('a', '192.0.2.2')], after: ['a a 192.0.2.2'] }],
    [
      'a conflicting CNAME',
      {
        before: [sub('a', 'cname', 'b.example')],
        changes: [up('a'), up('c')],
        after: ['a cname b.example', 'c a 192.0.2.1'],
        rejected: { a: /CNAME/ },
      },
    ],
    [
      'a conflicting forward',
      { before: [sub('a', 'forward')], changes: [up('a')], after: 1, rejected: { a: /FORWARD/ }, unchanged: true },
    ],
    [
      'a rejected name is unchanged',
      {
        before: [sub('a', 'TXT', 'x')],
        changes: [del('a', 'TXT'), up('a', 'nonsense'), up('b')],
        after: ['a TXT x', 'b a 192.0.2.1'],
        rejected: { a: /not a valid/ },
      },
    ],
    ['100 below the domain', { before: many(99), changes: [up('a')], after: 100 }],
    [
      'not 101; the other changes are applied',
      {
        before: many(99),
        changes: [up('a'), up('b'), up('n0', '192.0.2.7')],
        after: 100,
        rejected: { b: /100 records.*make 101/ },
      },
    ],
    [
      'all values or none',
      {
        before: many(99),
        changes: [up('a', '192.0.2.1', '192.0.2.2')],
        after: 99,
        rejected: { a: /101/ },
        unchanged: true,
      },
    ],
    ['a deletion makes room', { before: many(100), changes: [up('a'), del('n3')], after: 100 }],
    [
      'a rejected deletion makes no room',
      {
        before: [...many(99), sub('t', 'TXT', 'x')],
        changes: [del('t', 'TXT'), up('t', 'nonsense'), up('a')],
        after: 100,
        rejected: { t: /not a valid/, a: /101/ },
        unchanged: true,
      },
    ],
    [
      'a deletion that is rejected later makes no room',
      {
        before: [...many(98), sub('t', 'TXT', 'x'), sub('t', 'FORWARD')],
        changes: [del('t', 'TXT'), up('t'), up('a')],
        after: 100,
        rejected: { t: /FORWARD/, a: /101/ },
        unchanged: true,
      },
    ],
    [
      'a CNAME at a name with another record',
      {
        before: [sub('a', 'TXT', 'x')],
        changes: [{ kind: 'upsert', set: { name: toFqdn('a'), type: 'CNAME', ttl: 300, values: ['b.example.'] } }],
        after: ['a TXT x'],
        rejected: { a: /conflicting TXT record/ },
        unchanged: true,
      },
    ],
    [
      'the domain itself has a separate limit',
      {
        before: [...Array.from({ length: 19 }, (_, i) => main('TXT', `${i}`)), ...many(100)],
        changes: [up('', '192.0.2.1', '192.0.2.2')],
        after: 119,
        rejected: { '': /20 records.*make 21/ },
        unchanged: true,
      },
    ],
  ])('%s', (_, { before, changes, after, rejected = {}, unchanged = false }) => {
    const outcome = applyChanges(before, changes, ZONE)
    const records = outcome.records.map(({ host, type, value }) => `${host} ${type} ${value}`)
    if (typeof after === 'number') expect(records).toHaveLength(after)
    else expect(records).toEqual(after)
    expect(outcome.isChanged).toBe(!unchanged)
    expect([...outcome.rejected.keys()].sort()).toEqual(Object.keys(rejected).map(toFqdn).sort())
    for (const [host, reason] of Object.entries(rejected)) expect(outcome.rejected.get(toFqdn(host))).toMatch(reason)
  })
})

const toFqdn = (i: number) => `n${String(i).padStart(3, '0')}.${ZONE}`
const upsert = (i: number, value = '192.0.2.1', ttl = 300): RecordChange => ({
  kind: 'upsert',
  set: { name: toFqdn(i), type: 'A', ttl, values: [value] },
})
const upTo = (count: number) => Array.from({ length: count }, (_, i) => i)
const domain = (hosts: readonly string[], ttl: number | undefined = 3_600): DomainSettings => ({
  mode: 'Dynadot DNS',
  ttl,
  records: hosts.map(host => ({ place: 'sub', host, type: 'A', value: '198.51.100.1', extra: '' })),
})

/** Accepts a set without any of the `faulty` hosts. */
const account = (faulty: readonly string[], failsAt = 0) => {
  const written: DomainSettings[] = []
  let stored: DomainSettings | undefined
  const write = async (settings: DomainSettings): Promise<WriteResult> => {
    written.push(settings)
    if (written.length === failsAt) return { kind: 'unavailable', reason: 'down' }
    const culprit = settings.records.find(({ host }) => faulty.includes(host))
    if (culprit) return { kind: 'rejected', reason: `no ${culprit.host}` }
    stored = settings
    return { kind: 'accepted' }
  }
  return { written, write, storedHosts: () => stored?.records.map(({ host }) => host).sort() }
}

const hosts = (...numbers: number[]) => numbers.map(i => toFqdn(i).slice(0, 4))

test.each<{ count: number; faulty: number[]; writes: number }>([
  { count: 1, faulty: [], writes: 1 },
  { count: 90, faulty: [], writes: 1 },
  { count: 1, faulty: [0], writes: 2 },
  { count: 2, faulty: [0], writes: 3 },
  { count: 8, faulty: [7], writes: 7 },
])('$count names, $faulty of them faulty: $writes writes, all others are stored', async ({ count, faulty, writes }) => {
  const { written, write, storedHosts } = account(hosts(...faulty))
  const result = await writeChanges(
    ZONE,
    domain(['www']),
    upTo(count).map(i => upsert(i)),
    write,
  )
  expect(result).toEqual({
    kind: 'applied',
    rejected: faulty.map(i => ({ name: toFqdn(i), reason: `no ${hosts(i)[0]}` })),
  })
  expect(written).toHaveLength(writes)
  const expected = ['www', ...hosts(...upTo(count).filter(i => !faulty.includes(i)))].sort()
  expect(storedHosts()).toEqual(expected)
})

test.each(['an empty domain', 'one with records'])(
  'many names, all faulty, in %s: nine writes find some, and the rest are reported as skipped',
  async of => {
    const { written, write } = account(hosts(...upTo(95)))
    const before = domain(of === 'an empty domain' ? [] : ['www'])
    const result = await writeChanges(
      ZONE,
      before,
      upTo(95).map(i => upsert(i)),
      write,
    )
    if (result.kind !== 'applied') throw new Error(result.reason)
    expect(result.rejected.length).toBeGreaterThan(0)
    expect([...result.rejected.map(({ name }) => name), ...(result.skipped ?? [])].sort()).toEqual(upTo(95).map(toFqdn))
    expect(written.length).toBeLessThanOrEqual(9)
  },
)

test('more names than one write may have, and every change rejected: one is found', async () => {
  const before = domain(upTo(90).map(i => `x${i}`))
  const released = upTo(90).map(i => ({ kind: 'delete', name: `x${i}.${ZONE}`, type: 'A' }) as const)
  const write = async (settings: DomainSettings): Promise<WriteResult> =>
    settings === before ? { kind: 'accepted' } : { kind: 'rejected', reason: 'no' }
  const result = await writeChanges(ZONE, before, [...released, ...upTo(90).map(i => upsert(i))], write)
  expect(result).toMatchObject({ rejected: [{ reason: 'no' }], skipped: { length: 179 } })
})

test('a faulty name in a domain without records: no foreign record can be at fault, so one write is enough', async () => {
  const { written, write } = account(hosts(0))
  const result = await writeChanges(ZONE, domain([]), [upsert(0)], write)
  expect(result).toEqual({ kind: 'applied', rejected: [{ name: toFqdn(0), reason: 'no n000' }] })
  expect(written).toHaveLength(1)
})

test('some faulty names, repeated without those found: each round gets further', async () => {
  const faulty = hosts(3, 4, 50, 51, 94)
  const found = new Set<string>()
  let before = domain(['www'])
  let rounds = 0
  for (let isLeft = true; isLeft; rounds += 1) {
    const { written, write } = account(faulty)
    const changes = upTo(95)
      .filter(i => !found.has(toFqdn(i)))
      .map(i => upsert(i))
    const result = await writeChanges(ZONE, before, changes, write)
    if (result.kind !== 'applied') throw new Error(result.reason)
    for (const { name } of result.rejected) found.add(name)
    before = written.findLast(({ records }) => !records.some(({ host }) => faulty.includes(host))) ?? before
    isLeft = result.skipped !== undefined
    expect(rounds).toBeLessThan(10)
  }
  expect([...found].sort()).toEqual([3, 4, 50, 51, 94].map(toFqdn))
  expect(before.records).toHaveLength(1 + 90)
})

test('records that are already stored do not make the search longer', async () => {
  const { written, write } = account(hosts(60))
  const before = domain(hosts(...upTo(60)))
  const changes = [...upTo(60).map(i => upsert(i, '198.51.100.1')), upsert(60)]
  const result = await writeChanges(ZONE, before, changes, write)
  expect(result).toEqual({ kind: 'applied', rejected: [{ name: toFqdn(60), reason: 'no n060' }] })
  expect(written).toHaveLength(2)
})

test('the original set is rejected too: the zone is unavailable, and the last write was that set', async () => {
  const { written, write } = account(['foreign'])
  const before = domain(['foreign'])
  const result = await writeChanges(ZONE, before, [upsert(0), upsert(1)], write)
  expect(result).toEqual({
    kind: 'unavailable',
    scope: 'zone',
    reason: expect.stringMatching(/pool\.example.*no foreign/),
    retryAfterMs: 60_000,
  })
  expect(written.at(-1)).toEqual(before)
})

test.each([
  ['the original set, too: two writes and no search', ['www'], 2],
  ['an empty domain: the first and the last name alone are enough', [], 3],
])('a refusal that is not known to be about a record, of %s', async (_, present, writes) => {
  let count = 0
  const refuse = async () => {
    count += 1
    return { kind: 'rejected', reason: 'something else', isDoubtful: true } as const
  }
  const result = await writeChanges(
    ZONE,
    domain(present),
    upTo(20).map(i => upsert(i)),
    refuse,
  )
  const reason = expect.stringMatching(/refuses every change of pool\.example: something else/)
  expect(result).toEqual({ kind: 'unavailable', scope: 'zone', reason, retryAfterMs: 60_000 })
  expect(count).toBe(writes)
})

test.each([1, 2, 3])('write %i fails: unavailable', async failsAt => {
  const { write } = account(hosts(0), failsAt)
  const result = await writeChanges(ZONE, domain(['www']), [upsert(0), upsert(1)], write)
  expect(result).toEqual({ kind: 'unavailable', reason: 'down' })
})

test('the check of the original set fails: unavailable', async () => {
  const { write } = account(hosts(0), 2)
  expect(await writeChanges(ZONE, domain(['www']), [upsert(0)], write)).toEqual({ kind: 'unavailable', reason: 'down' })
})

test('no applicable change: no write', async () => {
  const { written, write } = account([])
  const before = domain(upTo(100).map(i => `x${i}`))
  const changes = [upsert(0), upsert(1, 'nonsense'), { kind: 'delete', name: toFqdn(2), type: 'A' } as const]
  const result = await writeChanges(ZONE, before, changes, write)
  expect(result).toEqual({
    kind: 'applied',
    rejected: expect.arrayContaining([
      { name: toFqdn(0), reason: expect.stringMatching(/101/), isZoneFull: true },
      { name: toFqdn(1), reason: expect.stringMatching(/not a valid/) },
    ]),
  })
  expect(written).toEqual([])
})

test('released and rejected names make room for others in the same apply', async () => {
  const full = upTo(99).map(i => `x${i}`)
  const released = { kind: 'delete', name: `x7.${ZONE}`, type: 'A' } as const
  const { write, storedHosts } = account(hosts(1))
  const result = await writeChanges(ZONE, domain(full), [upsert(3), upsert(2), upsert(1), upsert(0), released], write)
  expect(result).toEqual({
    kind: 'applied',
    rejected: [
      { name: toFqdn(1), reason: 'no n001' },
      { name: toFqdn(3), reason: expect.stringMatching(/100 records.*101/), isZoneFull: true },
    ],
  })
  expect(storedHosts()).toEqual([...full.filter(host => host !== 'x7'), ...hosts(0, 2)].sort())
})

test('the existing TTL is used; without one, the first valid desired TTL', async () => {
  const { written, write } = account([])
  await writeChanges(ZONE, domain([], 60), [upsert(0)], write)
  await writeChanges(
    ZONE,
    { ...domain([]), ttl: undefined },
    [upsert(2, '192.0.2.1', 77), upsert(1), upsert(0, 'x', 9)],
    write,
  )
  expect(written.map(({ ttl }) => ttl)).toEqual([60, 300])
})
