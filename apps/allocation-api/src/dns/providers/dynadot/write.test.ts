import { expect, test } from 'vitest'
import type { RecordChange } from '../../domain/rrset.ts'
import type { DomainSettings } from './response.ts'
import { type WriteResult, writeChanges } from './write.ts'

const ZONE = 'pool.example'
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
  })
  expect(written.at(-1)).toEqual(before)
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
      { name: toFqdn(0), reason: expect.stringMatching(/101/) },
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
      { name: toFqdn(3), reason: expect.stringMatching(/100 records.*101/) },
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
