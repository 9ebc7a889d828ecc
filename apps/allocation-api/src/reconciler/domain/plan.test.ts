import { describe, expect, test } from 'vitest'
import type { RecordChange, RecordSet } from '../../dns/domain/rrset.ts'
import { type DesiredName, indexRecords, planName } from './plan.ts'

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
  { hasInFlightWrite = false, previous = [] }: { hasInFlightWrite?: boolean; previous?: RecordSet[] } = {},
): DesiredName => ({ subdomain: 'acme', desired, owned: owned.map(key), previous, hasInFlightWrite })

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
    what: 'withdrawn: a foreign record below the name is not deleted',
    current: [a(acme), txt(`_acme-challenge.${acme}`)],
    name: named([], [a(acme)]),
    changes: [remove(a(acme))],
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
    what: 'withdrawn while its publication is unconfirmed, but a foreign value exists: not deleted',
    current: [a(acme, '192.0.2.9')],
    name: named([], [], { hasInFlightWrite: true, previous: [a(acme)] }),
    changes: [],
  },
  {
    what: 'withdrawn, with a foreign record at the name: no changes',
    current: [a(acme, '192.0.2.9')],
    name: named([]),
    changes: [],
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
    what: 'withdrawn, and a record with another address exists: foreign, not deleted',
    current: [a(acme, '192.0.2.9')],
    name: named([], [], { previous: [a(acme)] }),
    changes: [],
  },
  {
    what: 'desired again while previous records exist: replaced without a conflict',
    current: [a(acme, '192.0.2.7'), a(star, '192.0.2.7')],
    name: named([a(acme)], [], { previous: [a(acme, '192.0.2.7'), a(star, '192.0.2.7')] }),
    changes: [remove(a(star)), upsert(a(acme))],
  },
  {
    what: 'a record that is both previous and owned is deleted only once',
    current: [a(acme)],
    name: named([], [a(acme)], { previous: [a(acme), a(acme, '192.0.2.8')] }),
    changes: [remove(a(acme))],
  },
]

const options = { zone: 'pool.test', hasZoneTtl: false }
const plan = (current: readonly RecordSet[], name: DesiredName, more: Partial<typeof options> = {}) =>
  planName(indexRecords(current), name, { ...options, ...more })

describe('the plan: desired minus current', () => {
  test.each(rows)('$what', ({ current, name, changes, conflict }) => {
    const result = plan(current, name)
    if (conflict) expect(result).toEqual({ kind: 'conflict', reason: expect.stringContaining(conflict) })
    else expect(result).toEqual({ kind: 'changes', changes })
  })

  test('the reason of a conflict contains the name and instructions', () => {
    expect(plan([cname(acme)], named([a(acme)]))).toEqual({
      kind: 'conflict',
      reason:
        'A record of type CNAME that is not managed by this service exists at acme.pool.test. Delete it, or release this name.',
    })
  })

  test('in a zone with one TTL for all records, a different TTL is not a difference', () => {
    const current = [a(acme, '192.0.2.1', 60), a(star, '192.0.2.9', 60)]
    const name = named([a(acme), a(star)], [a(acme), a(star)])
    expect(plan(current, name, { hasZoneTtl: true })).toEqual({ kind: 'changes', changes: [upsert(a(star))] })
    expect(plan(current, named([a(acme)]), { hasZoneTtl: true })).toEqual({ kind: 'changes', changes: [] })
  })

  test('the plan for the result of a plan is empty', () => {
    const desired = [a(acme), a(star)]
    const current = [a(acme, '192.0.2.9'), txt(acme)]
    const after = [...current.filter(set => set.type !== 'A'), ...desired]
    expect(plan(current, named(desired, [a(acme)]))).toEqual({ kind: 'changes', changes: desired.map(upsert) })
    expect(plan(after, named(desired, desired))).toEqual({ kind: 'changes', changes: [] })
  })
})
