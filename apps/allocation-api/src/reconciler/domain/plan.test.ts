import type { Target } from '@pool/contract'
import { describe, expect, test } from 'vitest'
import type { ApplyResult } from '../../dns/domain/result.ts'
import { hidesPool, type RecordChange, type RecordSet } from '../../dns/domain/rrset.ts'
import { createRecords } from '../../dns/domain/target.ts'
import type { DesiredName } from './name.ts'
import {
  indexRecords,
  limitPlans,
  type NameOutcome,
  type Outcome,
  type Plan,
  type PlanOptions,
  planName,
  requireProgress,
  toConflict,
  toOutcome,
  toRetryDelayMs,
  toWantedRecords,
} from './plan.ts'

const a = (name: string, address = '192.0.2.1', ttl = 300): RecordSet => ({ name, type: 'A', ttl, values: [address] })
const cname = (name: string): RecordSet => ({ name, type: 'CNAME', ttl: 300, values: ['elsewhere.example'] })
const ns = (name: string): RecordSet => ({ name, type: 'NS', ttl: 300, values: ['ns.example.'] })
const dname = (name: string): RecordSet => ({ name, type: 'DNAME', ttl: 300, values: ['elsewhere.example.'] })
const txt = (name: string): RecordSet => ({ name, type: 'TXT', ttl: 300, values: ['"x"'] })
const key = ({ name, type }: RecordSet) => ({ name, type })
const upsert = (set: RecordSet): RecordChange => ({ kind: 'upsert', set })
const remove = (set: RecordSet): RecordChange => ({ kind: 'delete', ...key(set) })

const acme = 'acme.pool.test'
const star = '*.acme.pool.test'
const named = (
  desired: RecordSet[],
  owned: RecordSet[] = [],
  more: { hasInFlightWrite?: boolean; previous?: RecordSet[]; isPurged?: boolean } = {},
): DesiredName => ({
  subdomain: 'acme',
  desired,
  owned: owned.map(key),
  previous: [],
  hasInFlightWrite: false,
  isPurged: desired.length === 0,
  ...more,
})

const rows: readonly {
  readonly what: string
  readonly current: RecordSet[]
  readonly name: DesiredName
  readonly changes: RecordChange[]
  readonly conflict?: string
}[] = [
  {
    what: 'no records exist: all are written',
    current: [],
    name: named([a(acme), a(star)]),
    changes: [upsert(a(acme)), upsert(a(star))],
  },
  {
    what: 'all records exist: no changes',
    current: [a(acme), a(star)],
    name: named([a(acme), a(star)], [a(acme), a(star)]),
    changes: [],
  },
  {
    what: 'one record is missing: it is written',
    current: [a(acme)],
    name: named([a(acme), a(star)], [a(acme), a(star)]),
    changes: [upsert(a(star))],
  },
  {
    what: 'an owned record has another address: updated',
    current: [a(acme, '192.0.2.9')],
    name: named([a(acme)], [a(acme)]),
    changes: [upsert(a(acme))],
  },
  {
    what: 'an owned record has another TTL: updated',
    current: [a(acme, '192.0.2.1', 60)],
    name: named([a(acme)], [a(acme)]),
    changes: [upsert(a(acme))],
  },
  {
    what: 'withdrawn: the owned records are deleted',
    current: [a(acme), a(star)],
    name: named([], [a(acme), a(star)]),
    changes: [remove(a(acme)), remove(a(star))],
  },
  {
    what: 'withdrawn, some records already deleted: the others are deleted',
    current: [a(star)],
    name: named([], [a(acme), a(star)]),
    changes: [remove(a(star))],
  },
  {
    what: 'withdrawn: a foreign record below the name is deleted',
    current: [a(acme), txt(`_acme-challenge.${acme}`)],
    name: named([], [a(acme)]),
    changes: [remove(a(acme)), remove(txt(`_acme-challenge.${acme}`))],
  },
  { what: 'withdrawn before anything was written', current: [], name: named([]), changes: [] },
  {
    what: 'a record that is no longer desired is deleted',
    current: [a(acme), a(star)],
    name: named([a(acme)], [a(acme), a(star)]),
    changes: [remove(a(star))],
  },
  {
    what: 'a foreign TXT record at the name is ignored',
    current: [txt(acme)],
    name: named([a(acme)]),
    changes: [upsert(a(acme))],
  },
  {
    what: 'records of other names are ignored',
    current: [a('other.pool.test', '192.0.2.9'), cname('xacme.pool.test')],
    name: named([a(acme)]),
    changes: [upsert(a(acme))],
  },
  {
    what: 'an A record equal to the desired one is not a conflict',
    current: [a(acme)],
    name: named([a(acme)]),
    changes: [],
  },
  {
    what: 'a foreign A record with another address: conflict',
    current: [a(acme, '192.0.2.9')],
    name: named([a(acme), a(star)]),
    changes: [],
    conflict: 'type A',
  },
  {
    what: 'a foreign CNAME at the name: conflict',
    current: [cname(star)],
    name: named([a(acme), a(star)]),
    changes: [],
    conflict: 'type CNAME',
  },
  {
    what: 'an owned CNAME record is replaced',
    current: [cname(acme)],
    name: named([a(acme)], [cname(acme)]),
    changes: [remove(cname(acme)), upsert(a(acme))],
  },
  {
    what: 'withdrawn after an unconfirmed write: deleted even if the records do not exist',
    current: [],
    name: named([], [a(acme), a(star)], { hasInFlightWrite: true }),
    changes: [remove(a(acme)), remove(a(star))],
  },
  {
    what: 'after an unconfirmed write: every change is repeated even if the records exist',
    current: [a(acme)],
    name: named([a(acme)], [a(acme), a(star)], { hasInFlightWrite: true }),
    changes: [remove(a(star)), upsert(a(acme))],
  },
  {
    what: 'an unconfirmed write, and another value exists: the write did not take effect',
    current: [a(acme, '192.0.2.9')],
    name: named([a(acme)], [], { hasInFlightWrite: true }),
    changes: [],
    conflict: 'type A',
  },
  {
    what: 'an unconfirmed write, and its value exists with another TTL: owned',
    current: [a(acme, '192.0.2.1', 60)],
    name: named([a(acme)], [], { hasInFlightWrite: true }),
    changes: [upsert(a(acme))],
  },
  {
    what: 'withdrawn while its publication is unconfirmed: deleted even if the record does not exist',
    current: [],
    name: named([], [], { hasInFlightWrite: true, previous: [a(acme)] }),
    changes: [remove(a(acme))],
  },
  {
    what: 'withdrawn while its publication is unconfirmed, and a foreign value exists: deleted',
    current: [a(acme, '192.0.2.9')],
    name: named([], [], { hasInFlightWrite: true, previous: [a(acme)] }),
    changes: [remove(a(acme))],
  },
  {
    what: 'withdrawn, with a foreign record at the name: deleted',
    current: [a(acme, '192.0.2.9')],
    name: named([]),
    changes: [remove(a(acme))],
  },
  {
    what: 'a foreign A record that differs from the desired one only in its TTL: conflict',
    current: [a(acme, '192.0.2.1', 60)],
    name: named([a(acme)]),
    changes: [],
    conflict: 'type A',
  },
  {
    what: 'a foreign zone cut at the name: conflict, because names below it are delegated',
    current: [ns(acme)],
    name: named([a(star)]),
    changes: [],
    conflict: `type NS that is not managed by this service exists at ${acme}`,
  },
  {
    what: 'a foreign zone cut below the name and above a desired record: conflict',
    current: [ns(`b.${acme}`)],
    name: named([a(`a.b.${acme}`)]),
    changes: [],
    conflict: 'type NS',
  },
  {
    what: 'the NS records of the zone itself are not a conflict',
    current: [ns('pool.test')],
    name: named([a(acme)]),
    changes: [upsert(a(acme))],
  },
  {
    what: 'a foreign DNAME record above a desired record: conflict',
    current: [dname(acme)],
    name: named([a(star)]),
    changes: [],
    conflict: 'type DNAME',
  },
  {
    what: 'a foreign DNAME record at the name itself is not a conflict',
    current: [dname(acme)],
    name: named([a(acme)]),
    changes: [upsert(a(acme))],
  },
  {
    what: 'withdrawn, and a previous record exists again: deleted, because a write took effect late',
    current: [a(acme)],
    name: named([], [], { previous: [a(acme), a(star)] }),
    changes: [remove(a(acme))],
  },
  {
    what: 'withdrawn, and a record with another address exists: deleted',
    current: [a(acme, '192.0.2.9')],
    name: named([], [], { previous: [a(acme)] }),
    changes: [remove(a(acme))],
  },
  {
    what: 'desired again while previous records exist: replaced without a conflict',
    current: [a(acme, '192.0.2.7'), a(star, '192.0.2.7')],
    name: named([a(acme)], [], { previous: [a(acme, '192.0.2.7'), a(star, '192.0.2.7')] }),
    changes: [remove(a(star)), upsert(a(acme))],
  },
  {
    what: 'a foreign record at a previous name, with another address, stays',
    current: [a(acme), a(star, '192.0.2.9')],
    name: named([a(acme)], [a(acme)], { previous: [a(star)] }),
    changes: [],
  },
  {
    what: 'a foreign record at a previous name stays also while a write is in flight',
    current: [a(acme), a(star, '192.0.2.9')],
    name: named([a(acme)], [a(acme)], { previous: [a(star)], hasInFlightWrite: true }),
    changes: [upsert(a(acme))],
  },
  {
    what: 'a record that is both previous and owned is deleted only once',
    current: [a(acme)],
    name: named([], [a(acme)], { previous: [a(acme), a(acme, '192.0.2.8')] }),
    changes: [remove(a(acme))],
  },
]

const options: PlanOptions = { zone: 'pool.test', hasZoneTtl: false, zones: ['pool.test', 'eu.acme.pool.test'] }
const plan = (records: readonly RecordSet[], name: DesiredName, more: Partial<PlanOptions> = {}): Plan =>
  planName(indexRecords('pool.test', { records }), name, { ...options, ...more })
const changesOf = (result: Plan) => (result.kind === 'changes' ? result.changes : result)

describe('the plan: desired minus current', () => {
  test.each(rows)('$what', ({ current, name, changes, conflict }) => {
    const result = plan(current, name)
    if (conflict) expect(result).toEqual({ kind: 'conflict', reason: expect.stringContaining(conflict) })
    else expect(changesOf(result)).toEqual(changes)
  })

  test('the reason of a conflict contains the name and instructions', () => {
    expect(plan([cname(acme)], named([a(acme)]))).toEqual({
      kind: 'conflict',
      reason:
        'A record of type CNAME that is not managed by this service exists at acme.pool.test. Delete it; a release of this name deletes it too.',
    })
  })

  test('in a zone with one TTL for all records, a different TTL is not a difference', () => {
    const current = [a(acme, '192.0.2.1', 60), a(star, '192.0.2.9', 60)]
    const name = named([a(acme), a(star)], [a(acme), a(star)])
    expect(changesOf(plan(current, name, { hasZoneTtl: true }))).toEqual([upsert(a(star))])
    expect(changesOf(plan(current, named([a(acme)]), { hasZoneTtl: true }))).toEqual([])
  })

  test('the plan for the result of a plan is empty', () => {
    const desired = [a(acme), a(star)]
    const current = [a(acme, '192.0.2.9'), txt(acme)]
    const after = [...current.filter(set => set.type !== 'A'), ...desired]
    expect(changesOf(plan(current, named(desired, [a(acme)])))).toEqual(desired.map(upsert))
    expect(changesOf(plan(after, named(desired, desired)))).toEqual([])
  })
})

const purged = (desired: RecordSet[], owned: RecordSet[] = [], more: Parameters<typeof named>[2] = {}) =>
  named(desired, owned, { isPurged: true, ...more })
const other = (type: string, name: string): RecordSet => ({ name, type, ttl: 300, values: ['\\# 1 00'] })
const pool = 'eu.acme.pool.test'

const purgeRows: readonly {
  readonly what: string
  readonly current: RecordSet[]
  readonly name: DesiredName
  readonly changes: RecordChange[]
  readonly deletedRecords: RecordSet[]
}[] = [
  {
    what: 'every type at and below the name is deleted and listed, also a zone cut with its glue, a wildcard and an unknown type',
    current: [
      ...[txt(acme), other('MX', acme), other('DS', acme), other('TYPE65280', acme)],
      ...[ns(`b.${acme}`), a(`ns.b.${acme}`), dname(`c.${acme}`), txt(star), cname(`*.d.${acme}`)],
    ],
    name: purged([]),
    changes: [
      ...[txt(acme), other('MX', acme), other('DS', acme), other('TYPE65280', acme)],
      ...[ns(`b.${acme}`), a(`ns.b.${acme}`), dname(`c.${acme}`), txt(star), cname(`*.d.${acme}`)],
    ].map(remove),
    deletedRecords: [
      ...[txt(acme), other('MX', acme), other('DS', acme), other('TYPE65280', acme)],
      ...[ns(`b.${acme}`), a(`ns.b.${acme}`), dname(`c.${acme}`), txt(star), cname(`*.d.${acme}`)],
    ],
  },
  {
    what: 'records beside and above the name stay',
    current: [txt('pool.test'), ns('pool.test'), txt('www.pool.test'), txt('xacme.pool.test'), txt('*.pool.test')],
    name: purged([]),
    changes: [],
    deletedRecords: [],
  },
  {
    what: 'a label that contains a dot is not two labels',
    current: [txt('x\\.acme.pool.test'), txt('x\\\\.acme.pool.test')],
    name: purged([]),
    changes: [remove(txt('x\\\\.acme.pool.test'))],
    deletedRecords: [txt('x\\\\.acme.pool.test')],
  },
  {
    what: 'another managed zone below the name keeps its records, its delegation and the glue',
    current: [ns(pool), other('DS', pool), a(`ns.${pool}`), txt(`xeu.${acme}`)],
    name: purged([]),
    changes: [remove(txt(`xeu.${acme}`))],
    deletedRecords: [txt(`xeu.${acme}`)],
  },
  {
    what: 'the own records of a name in another managed zone are deleted all the same',
    current: [a(pool), txt(pool)],
    name: purged([], [a(pool)]),
    changes: [remove(a(pool))],
    deletedRecords: [],
  },
  {
    what: 'the records of a signer stay: the server deletes them',
    current: [other('RRSIG', acme), other('NSEC', acme), other('NSEC3', `hash.${acme}`)],
    name: purged([]),
    changes: [],
    deletedRecords: [],
  },
  {
    what: 'own records are deleted with one change each and not listed',
    current: [a(acme), a(star, '192.0.2.7')],
    name: purged([], [a(acme)], { previous: [a(acme), a(star, '192.0.2.7')] }),
    changes: [remove(a(acme)), remove(a(star))],
    deletedRecords: [],
  },
  {
    what: 'a record set with the values of two own writes is not listed',
    current: [{ ...a(acme), values: ['192.0.2.1', '192.0.2.7'] }],
    name: purged([], [a(acme)], { previous: [a(acme), a(acme, '192.0.2.7')] }),
    changes: [remove(a(acme))],
    deletedRecords: [],
  },
  {
    what: 'an own record with one more value is listed as it was',
    current: [{ ...a(acme), values: ['192.0.2.1', '198.51.100.9'] }],
    name: purged([], [a(acme)], { previous: [a(acme)] }),
    changes: [remove(a(acme))],
    deletedRecords: [{ ...a(acme), values: ['192.0.2.1', '198.51.100.9'] }],
  },
  {
    what: 'an own record that another writer has edited is listed as it was',
    current: [a(acme, '198.51.100.9')],
    name: purged([], [a(acme)], { previous: [a(acme)] }),
    changes: [remove(a(acme))],
    deletedRecords: [a(acme, '198.51.100.9')],
  },
  {
    what: 'a new holder: everything but its records is deleted, deletions first',
    current: [a(acme), txt(`_acme-challenge.${acme}`), a(`shop.${acme}`)],
    name: purged([a(acme, '192.0.2.2')], [], { previous: [a(acme)] }),
    changes: [remove(txt(`_acme-challenge.${acme}`)), remove(a(`shop.${acme}`)), upsert(a(acme, '192.0.2.2'))],
    deletedRecords: [txt(`_acme-challenge.${acme}`), a(`shop.${acme}`)],
  },
  {
    what: 'a new holder: a leftover that would be a conflict is deleted, or replaced',
    current: [cname(star), a(acme, '198.51.100.9')],
    name: purged([a(acme), a(star)]),
    changes: [remove(cname(star)), upsert(a(acme)), upsert(a(star))],
    deletedRecords: [cname(star), a(acme, '198.51.100.9')],
  },
  {
    what: 'a new holder: a leftover zone cut at the name is deleted',
    current: [ns(acme), dname(`b.${acme}`)],
    name: purged([a(acme), a(star)]),
    changes: [remove(ns(acme)), remove(dname(`b.${acme}`)), upsert(a(acme)), upsert(a(star))],
    deletedRecords: [ns(acme), dname(`b.${acme}`)],
  },
  {
    what: 'a new holder with the same address: the record is adopted',
    current: [a(acme)],
    name: purged([a(acme)]),
    changes: [],
    deletedRecords: [],
  },
  {
    what: 'a name that is not purged: records of other writers stay',
    current: [a(acme), txt(acme), a(`shop.${acme}`)],
    name: named([a(acme)], [a(acme)]),
    changes: [],
    deletedRecords: [],
  },
]

const ds = (name: string): RecordSet => ({ ...ns(name), type: 'DS' })
test.each<readonly [what: string, zone: string, desired: RecordSet[], hidden: string | undefined]>([
  ['the name', acme, [a(acme)], acme],
  ['the wildcard', acme, [a(star)], star],
  ['one of its records', `console.${acme}`, [a(acme), a(`console.${acme}`)], `console.${acme}`],
  ['the whole pool', 'pool.test', [a(acme)], acme],
  ['a name below it without a record of ours', `x.${acme}`, [a(acme), a(star)], undefined],
  ['another name', 'bravo.pool.test', [a(acme)], undefined],
  ['a name that ends in the same text', 'me.pool.test', [a(acme)], undefined],
  ['a delegated name', acme, [ns(acme), ds(acme)], undefined],
  ['a name below a delegated one', `x.${acme}`, [ns(acme), a(`x.${acme}`)], `x.${acme}`],
  ['a released name', acme, [], undefined],
])('another zone answers for %s', (_, zone, desired, hidden) => {
  const read = { records: desired, hiding: new Map([zone, 'elsewhere.pool.test'].map(one => [one, 'zone'])) }
  const plan = planName(indexRecords('pool.test', read), named(desired, desired), {
    ...{ zone: 'pool.test', hasZoneTtl: false, zones: [] },
  })
  const reason = `Another zone at the DNS provider, ${zone}, answers for ${hidden}. Delete that zone.`
  expect(plan).toMatchObject({ kind: 'changes', changes: [], hidden: hidden ? reason : null })
  expect(toConflict(plan)).toBe(hidden ? reason : null)
})

test.each([
  ['absent', [], [{ kind: 'upsert', set: a(acme) }]],
  ['there, although a write is in flight', [a(acme)], []],
])('a name that another zone hides is written if its record is %s', (_, records, changes) => {
  const current = indexRecords('pool.test', { records, hiding: new Map([[acme, 'zone']]) })
  const name = named([a(acme)], [], { hasInFlightWrite: true })
  expect(planName(current, name, { zone: 'pool.test', hasZoneTtl: false, zones: [] })).toMatchObject({ changes })
})

test.each<readonly [type: string, place: string, owner: string, hides: boolean]>([
  ['NS', 'apex', 'example.test', false],
  ['NS', 'name between', 'b.example.test', true],
  ['NS', 'pool', 'a.b.example.test', true],
  ['NS', "tenant's name", 'acme.a.b.example.test', false],
  ['NS', 'name beside', 'c.example.test', false],
  ['NS', 'name that ends in the same text', 'xa.b.example.test', false],
  ['DNAME', 'apex', 'example.test', true],
  ['DNAME', 'name between', 'b.example.test', true],
  ['DNAME', 'pool', 'a.b.example.test', true],
  ['DNAME', "tenant's name", 'acme.a.b.example.test', false],
  ['DNAME', 'name above the zone', 'test', false],
  ['CNAME', 'name between', 'b.example.test', false],
  ['CNAME', 'pool', 'a.b.example.test', false],
  ['DS', 'pool', 'a.b.example.test', false],
])('whether a record of type %s at the %s hides every name of the pool', (type, _, owner, hides) => {
  const pool = 'a.b.example.test'
  expect(hidesPool({ name: owner, type }, pool, 'example.test')).toBe(hides)
  // A zone of its own has a DNAME at its apex at most.
  expect(hidesPool({ name: owner, type }, pool, pool)).toBe(type === 'DNAME' && owner === pool)
  const desired = [a(`acme.${pool}`)]
  const plan = planName(indexRecords(pool, { records: [], hiding: new Map([[owner, type]]) }), named(desired), {
    ...{ zone: pool, hasZoneTtl: false, zones: [] },
  })
  const hidden = `A record of type ${type} at ${owner} hides every name of the pool. Delete that record.`
  if (hides) expect(plan).toMatchObject({ kind: 'changes', changes: [{ kind: 'upsert' }], hidden })
})

test('the desired names of a purged name are wanted too: a provider is asked by name which zone answers', () => {
  const name = named([a(`console.${acme}`)], [], { isPurged: true })
  expect(toWantedRecords('pool.test', [name])).toEqual({ names: [`console.${acme}`], branches: [acme] })
})

describe('the purge of a name without a holder, or with a new one', () => {
  test.each(purgeRows)('$what', ({ current, name, changes, deletedRecords }) => {
    expect(plan(current, name)).toEqual({ kind: 'changes', changes, deletedRecords, isPartial: false, hidden: null })
  })

  test('the zone cut of another managed zone above a desired record is a conflict', () => {
    expect(plan([ns(pool)], purged([a(pool)]))).toMatchObject({ kind: 'conflict' })
  })

  test('records that the provider stores without serving them are deleted and listed', () => {
    const records = [txt(`a.${acme}`), a(acme)]
    const unserved = [other('TXT', `a.${acme}`), txt(`b.${acme}`), a(acme, '198.51.100.9'), txt('www.pool.test')]
    const current = indexRecords('pool.test', { records, unserved })
    expect(planName(current, purged([a(acme)], [a(acme)]), options)).toEqual({
      kind: 'changes',
      changes: [
        { ...remove(txt(`a.${acme}`)), dropsUnserved: true },
        { ...remove(txt(`b.${acme}`)), dropsUnserved: true },
        { ...upsert(a(acme)), dropsUnserved: true },
      ],
      deletedRecords: [records[0], ...unserved.slice(0, 3)],
      isPartial: false,
      hidden: null,
    })
    // While a name is active they stay.
    expect(changesOf(planName(current, named([a(acme)], [a(acme)]), options))).toEqual([])
  })
})

describe('the limit of the deletions in one write', () => {
  const many = (subdomain: string, count: number) =>
    Array.from({ length: count }, (_, i) => txt(`n${i}.${subdomain}.pool.test`))
  const records = [a(acme), ...many('acme', 5), ...many('beta', 4), ...many('gamma', 3)]
  const current = indexRecords('pool.test', { records })
  const plans = [
    planName(current, purged([a(star)], [a(acme)], { previous: [a(acme)] }), options),
    planName(current, { ...purged([]), subdomain: 'beta' }, options),
    planName(current, { ...purged([]), subdomain: 'gamma' }, options),
  ]

  test('the first large name gets as many, without its new records; the next one waits; small names do not', () => {
    expect(limitPlans(plans, 3)).toEqual([
      {
        kind: 'changes',
        changes: [a(acme), ...many('acme', 3)].map(remove),
        deletedRecords: many('acme', 3),
        isPartial: true,
        hidden: null,
      },
      { kind: 'changes', changes: [], deletedRecords: [], isPartial: true, hidden: null },
      {
        kind: 'changes',
        changes: many('gamma', 3).map(remove),
        deletedRecords: many('gamma', 3),
        isPartial: false,
        hidden: null,
      },
    ])
  })

  test('within the limit, nothing changes', () => {
    expect(limitPlans(plans, 5)).toEqual(plans)
  })
})

const change: RecordChange = { kind: 'delete', name: 'acme.pool.test', type: 'A' }
const changes: Plan = { kind: 'changes', changes: [change], deletedRecords: [], isPartial: false, hidden: null }
const noChanges: Plan = { ...changes, changes: [] }
const partial: Plan = { ...changes, isPartial: true }
const hidden: Plan = { ...changes, hidden: 'another zone answers' }
const conflict: Plan = { kind: 'conflict', reason: 'in the way' }

const applied: ApplyResult = { kind: 'applied', rejected: [] }
const rejecting = (name: string): ApplyResult => ({ kind: 'applied', rejected: [{ name, reason: 'no' }] })
const skipping = (name: string): ApplyResult => ({ kind: 'applied', rejected: [], skipped: [name] })
const down: ApplyResult = { kind: 'unavailable', reason: 'down', retryAfterMs: 7 }
const noZone: ApplyResult = { kind: 'unavailable', reason: 'no zone', scope: 'zone' }

const done: Outcome = { kind: 'applied', changes: [change] }
const failed = (cause: string, reason: string) => ({ kind: 'failed', cause, reason })
const outage = { ...failed('provider', 'down'), retryAfterMs: 7, isTransient: true }

describe('the outcome of a name', () => {
  test.each<[what: string, plan: Plan, result: ApplyResult, outcome: object]>([
    ['applied', changes, applied, done],
    ['written below another zone', hidden, applied, failed('foreign-record', 'another zone answers')],
    ['an outage before a write below another zone', hidden, down, outage],
    ['rejected below what hides it', hidden, rejecting('acme.pool.test'), failed('rejected', 'another zone answers')],
    [
      'a zone that refuses what is hidden',
      hidden,
      noZone,
      { ...failed('zone', 'another zone answers'), isTransient: false },
    ],
    ['nothing to change', noChanges, applied, { kind: 'applied', changes: [] }],
    ['another name rejected', changes, rejecting('other.pool.test'), done],
    ['a name with the same suffix rejected', changes, rejecting('xacme.pool.test'), done],
    ['the zone rejected', changes, rejecting('pool.test'), done],
    [
      'rejected',
      changes,
      rejecting('acme.pool.test'),
      failed('rejected', 'The DNS provider rejected acme.pool.test: no'),
    ],
    [
      'a name below it rejected',
      changes,
      rejecting('*.acme.pool.test'),
      failed('rejected', 'The DNS provider rejected *.acme.pool.test: no'),
    ],
    ['skipped', changes, skipping('acme.pool.test'), { kind: 'skipped' }],
    ['a name below it skipped', changes, skipping('*.acme.pool.test'), { kind: 'skipped' }],
    ['only the first changes were made', partial, applied, { kind: 'skipped' }],
    [
      'one of the first changes rejected',
      partial,
      rejecting('acme.pool.test'),
      failed('rejected', 'The DNS provider rejected acme.pool.test: no'),
    ],
    ['another name skipped', changes, skipping('other.pool.test'), done],
    [
      'rejected and skipped',
      changes,
      { ...skipping('*.acme.pool.test'), ...rejecting('acme.pool.test') },
      failed('rejected', 'The DNS provider rejected acme.pool.test: no'),
    ],
    ['provider unavailable', changes, down, outage],
    ['zone unavailable', changes, noZone, { ...failed('zone', 'no zone'), isTransient: false }],
    [
      'zone unavailable for a moment',
      changes,
      { ...noZone, isTransient: true },
      { ...failed('zone', 'no zone'), isTransient: true },
    ],
    ['nothing to change, provider unavailable', noChanges, down, outage],
    ['conflict', conflict, applied, failed('foreign-record', 'in the way')],
    ['conflict, provider unavailable', conflict, down, failed('foreign-record', 'in the way')],
  ])('%s', (_, plan, result, outcome) => {
    expect(toOutcome('acme.pool.test', plan, result)).toEqual(outcome)
  })
})

describe('a sync is repeated at once only after progress', () => {
  const one = (subdomain: string, kind: string) =>
    ({ name: { subdomain }, outcome: { kind } }) as unknown as NameOutcome
  test.each([
    ['all were skipped', ['skipped', 'skipped'], [], ['failed', 'failed']],
    ['all were skipped or locked', ['skipped', 'locked'], [], ['failed', 'locked']],
    ['one was applied', ['skipped', 'applied'], [], ['skipped', 'applied']],
    ['one failed, which the next sync is without', ['skipped', 'failed'], [], ['skipped', 'failed']],
    ['a part of one was deleted', ['skipped', 'skipped'], ['b'], ['skipped', 'skipped']],
  ])('%s', (_, kinds, advanced, expected) => {
    const outcomes = kinds.map((kind, i) => one('ab'[i] ?? '', kind))
    expect(requireProgress(outcomes, new Set(advanced)).map(({ outcome }) => outcome.kind)).toEqual(expected)
  })
})

test('a name that fails at once has five attempts in ten seconds at most', () => {
  const failure = { kind: 'failed', cause: 'rejected', reason: 'no' } as const
  const pauses = [0, 1, 2, 3, 4].map(attempts => toRetryDelayMs({ attempts, failure: 'zone' }, failure, 0))
  expect(pauses.reduce((sum, pause) => sum + pause)).toBeGreaterThan(10_000)
})

describe('the delay until the next attempt', () => {
  const never = { attempts: 0, failure: null }
  const rejection = { kind: 'failed', cause: 'rejected', reason: 'no' } as const
  test.each([
    ['the first failure', never, rejection, 0.5, 500],
    ['the third failure with the same cause', { attempts: 2, failure: 'rejected' } as const, rejection, 0.5, 2_000],
    ['the first failure after an outage', { attempts: 9, failure: 'provider' } as const, rejection, 0.5, 500],
    ['a failure after those of another cause', { attempts: 2, failure: 'zone' } as const, rejection, 0.5, 2_000],
    ['a longer Retry-After', never, { ...rejection, retryAfterMs: 900 }, 0.5, 900],
    ['a shorter Retry-After', never, { ...rejection, retryAfterMs: 100 }, 0.5, 500],
    [
      'the provider: the time until the circuit closes',
      never,
      { ...rejection, cause: 'provider', retryAfterMs: 900 },
      0,
      900,
    ],
    [
      'the provider: a circuit that is closed',
      { attempts: 9, failure: 'provider' },
      { ...rejection, cause: 'provider', retryAfterMs: 500 },
      0.5,
      10_000,
    ],
    ['a zone that is missing', { attempts: 9, failure: 'zone' }, { ...rejection, cause: 'zone' }, 0.5, 50_000],
    ['the provider: with jitter', never, { ...rejection, cause: 'provider', retryAfterMs: 900 }, 1, 1_150],
  ] as const)('%s', (_, previous, failure, random, ms) => {
    expect(toRetryDelayMs(previous, failure, random)).toBe(ms)
  })
})

describe('a record of another writer at a name of a target', () => {
  const template = { names: ['@', '*'], ttl: 300 }
  const nameservers = ['ns1.example.com', 'ns2.example.com']
  const digest = 'AB'.repeat(32)
  const targets: Readonly<Record<string, Target>> = {
    ipv4: { loadBalancerIP: '192.0.2.1' },
    ipv6: { loadBalancerIPv6: '2001:db8::1' },
    hostname: { loadBalancerHostname: 'lb.example.com' },
    delegation: { nameservers, ds: [{ keyTag: 1, algorithm: 13, digestType: 2, digest }] },
  }
  const aaaa = { ...a(acme, '2001:db8::9'), type: 'AAAA' }
  const ds = { ...a(acme, `2 13 2 ${digest}`), type: 'DS' }
  test.each<[RecordSet, readonly string[]]>([
    [a(acme, '192.0.2.9'), ['ipv4', 'hostname', 'delegation']],
    [aaaa, ['ipv6', 'hostname', 'delegation']],
    [txt(acme), ['hostname', 'delegation']],
    [cname(acme), ['ipv4', 'ipv6', 'hostname', 'delegation']],
    [ns(acme), ['ipv4', 'ipv6', 'hostname', 'delegation']],
    [ds, ['hostname', 'delegation']],
    [dname(acme), ['ipv4', 'ipv6', 'hostname', 'delegation']],
    [txt(`_acme-challenge.${acme}`), ['hostname']],
    ...['RRSIG', 'NSEC', 'NSEC3'].map((type): [RecordSet, []] => [{ ...txt(acme), type }, []]),
  ])('%j is in the way of %j', (foreign, expected) => {
    const current = indexRecords('pool.test', { records: [foreign] })
    const conflicts = Object.entries(targets).filter(
      ([, target]) => planName(current, named(createRecords(acme, target, template)), options).kind === 'conflict',
    )
    expect(conflicts.map(([form]) => form)).toEqual(expected)
  })

  test('the records of a target that the zone has already are adopted', () => {
    for (const target of Object.values(targets)) {
      const desired = createRecords(acme, target, template)
      const plan = planName(indexRecords('pool.test', { records: desired }), named(desired), options)
      expect(plan).toMatchObject({ kind: 'changes', changes: [] })
    }
  })
})
