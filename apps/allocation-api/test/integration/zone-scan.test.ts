import { createPrng } from '@pool/test-kit/prng.ts'
import { expect, test } from 'vitest'
import type { ZonePart } from '../../src/dns/domain/result.ts'
import type { RecordSet } from '../../src/dns/domain/rrset.ts'
import { createRecords } from '../../src/dns/domain/target.ts'
import type { CheckedName } from '../../src/reconciler/domain/name.ts'
import { indexRecords, planName } from '../../src/reconciler/domain/plan.ts'
import { type ScanSource, scanZone } from '../../src/reconciler/zone-scan.ts'

const zone = 'pool.test'
const recordTemplate = { names: ['@', '*', 'console'], ttl: 60 }
const a = (name: string, ...values: string[]): RecordSet => ({ name, type: 'A', ttl: 60, values })
const desiredOf = (subdomain: string) =>
  createRecords(`${subdomain}.${zone}`, { loadBalancerIP: '192.0.2.1' }, recordTemplate)

const createName = (subdomain: string, other: Partial<CheckedName> = {}): CheckedName => ({
  subdomain,
  version: 1,
  desired: desiredOf(subdomain),
  owned: [],
  previous: [],
  hasInFlightWrite: false,
  isPurged: false,
  isApplied: true,
  changedMsAgo: 0,
  isDriftRepair: false,
  appliedMsAgo: 3_600_000,
  ...other,
})

/** Scans a zone that is sent in `parts`, and counts the reads of it. */
const scan = async (rows: readonly CheckedName[], parts: readonly ZonePart[], maxWeight?: number) => {
  const sorted = rows.toSorted((x, y) => (x.subdomain < y.subdomain ? -1 : 1))
  let reads = 0
  const source: ScanSource = {
    zone,
    recordTemplate,
    listNames: async (after, limit) => sorted.filter(({ subdomain }) => subdomain > after).slice(0, limit),
    findNames: async subdomains => sorted.filter(({ subdomain }) => subdomains.includes(subdomain)),
    readZone: async onPart => {
      reads += 1
      for (const part of parts) await onPart(part)
      return null
    },
  }
  const names = []
  const orphans = []
  for await (const page of scanZone(source, maxWeight)) {
    if (page.kind === 'unavailable') throw new Error(page.reason)
    names.push(...page.names)
    orphans.push(...page.orphans)
  }
  return { names, orphans, reads }
}

const part = (...records: RecordSet[]): ZonePart => ({ kind: 'part', records })

/** A random zone: names with all, some, other or late records, some without a row, records of other writers. */
const createZone = (seed: number, count: number) => {
  const prng = createPrng(seed)
  const rows: CheckedName[] = []
  const records: RecordSet[] = [
    { name: zone, type: 'SOA', ttl: 60, values: ['x'] },
    { name: `_dmarc.${zone}`, type: 'TXT', ttl: 60, values: ['"x"'] },
    a(`*.${zone}`, '192.0.2.9'),
  ]
  for (let i = 0; i < count; i += 1) {
    const subdomain = `n${prng.below(1_000_000)}`
    const desired = desiredOf(subdomain)
    const kind = prng.below(7)
    if (kind === 0) records.push(...desired)
    else {
      const isPurged = prng.chance(0.2)
      const previous = prng.chance(0.2) ? [a(`old.${subdomain}.${zone}`, '192.0.2.7')] : []
      rows.push(createName(subdomain, { isPurged, previous, hasInFlightWrite: prng.chance(0.1) }))
      records.push(
        ...desired.flatMap(set => (kind === 1 && prng.chance(0.5) ? [] : [kind === 2 ? { ...set, ttl: 5 } : set])),
      )
      if (prng.chance(0.3)) records.push({ name: `txt.${subdomain}.${zone}`, type: 'TXT', ttl: 60, values: ['"x"'] })
      if (prng.chance(0.2)) records.push(a(`old.${subdomain}.${zone}`, '192.0.2.7'))
      if (prng.chance(0.1)) records.push({ name: `${subdomain}.${zone}`, type: 'NS', ttl: 60, values: ['ns.example.'] })
    }
  }
  const shuffled = records.map(set => ({ set, at: prng.next() })).sort((x, y) => x.at - y.at)
  return { rows: [...new Map(rows.map(row => [row.subdomain, row])).values()], records: shuffled.map(({ set }) => set) }
}

test.each([undefined, 2_000, 100, 1])(
  'random zones, at most %s in memory: each plan is that of the whole zone',
  async maxWeight => {
    for (let seed = 1; seed <= 3; seed += 1) {
      const { rows, records } = createZone(seed, maxWeight === 1 ? 20 : 400)
      const parts = Array.from({ length: Math.ceil(records.length / 7) }, (_, i) =>
        part(...records.slice(7 * i, 7 * i + 7)),
      )
      const { names, orphans, reads } = await scan(rows, parts, maxWeight)
      const all = indexRecords(zone, { records })
      const options = { zone, hasZoneTtl: false, zones: [zone] }
      expect(names.map(({ name }) => name.subdomain)).toEqual(rows.map(({ subdomain }) => subdomain).sort())
      for (const { name, isAsDesired, ...current } of names) {
        const plan = planName(indexRecords(zone, current), name, options)
        expect(plan).toEqual(planName(all, name, options))
        if (isAsDesired && !name.hasInFlightWrite) expect(plan).toMatchObject({ kind: 'changes', changes: [] })
      }
      const known = new Set(rows.map(({ subdomain }) => subdomain))
      const expected = records.flatMap(({ name }) => {
        const [, subdomain] = /^console\.(n\d+)\.pool\.test$/.exec(name) ?? []
        return subdomain !== undefined && !known.has(subdomain) ? [subdomain] : []
      })
      expect(orphans.map(({ subdomain }) => subdomain)).toEqual(expected.sort())
      if (maxWeight === undefined) expect(reads).toBe(1)
      else if (maxWeight <= 100) expect(reads).toBeGreaterThan(1)
    }
  },
)

test('a record set in two parts is one; after a restart, the parts before it do not count', async () => {
  const previous = [a(`old.acme.${zone}`, '192.0.2.1', '192.0.2.2')]
  const old = `old.acme.${zone}`
  const { names } = await scan(
    [createName('acme', { previous })],
    [
      part(a(old, '192.0.2.9')),
      { kind: 'restart' },
      part(a(old, '192.0.2.2'), ...desiredOf('acme')),
      part(a(old, '192.0.2.1')),
    ],
  )
  expect(names[0]?.records.find(({ name }) => name === old)).toEqual(previous[0])
})

test('a name that changes between the reads of its row is left out', async () => {
  let version = 0
  const source: ScanSource = {
    zone,
    recordTemplate,
    listNames: async after => (after === '' ? [createName('acme', { version: 2 })] : []),
    findNames: async () => {
      version += 1
      return [createName('acme', { version })]
    },
    readZone: async onPart => {
      await onPart(part(...desiredOf('acme')))
      return null
    },
  }
  for await (const page of scanZone(source)) expect(page).toMatchObject({ names: [] })
})

test.each([
  ['all records of the template', desiredOf('x'), 0],
  ['with another TTL', desiredOf('x').map(set => ({ ...set, ttl: 5 })), 0],
  ['and others', [...desiredOf('x'), { name: `x.${zone}`, type: 'TXT', ttl: 60, values: ['"x"'] }], 1],
  ['one is missing', desiredOf('x').slice(1), null],
  ['one has another address', [...desiredOf('x').slice(1), a(`x.${zone}`, '192.0.2.2')], null],
  ['one has two addresses', [...desiredOf('x').slice(1), a(`x.${zone}`, '192.0.2.1', '192.0.2.2')], null],
  ['one is a CNAME', [...desiredOf('x').slice(1), { ...a(`x.${zone}`, 'y.example.'), type: 'CNAME' }], null],
])('an orphan has one A record at each name of the template, to one address: %s', async (_, records, otherCount) => {
  const { orphans } = await scan([], [part(...records)])
  const own = records.filter(({ type }) => type === 'A')
  expect(orphans).toEqual(
    otherCount === null ? [] : [{ subdomain: 'x', target: { loadBalancerIP: '192.0.2.1' }, records: own, otherCount }],
  )
})
