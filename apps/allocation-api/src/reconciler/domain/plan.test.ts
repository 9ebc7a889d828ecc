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
    what: 'nothing there: all is written',
    current: [],
    name: named([a(acme), a(star)]),
    changes: [upsert(a(acme)), upsert(a(star))],
  },
  {
    what: 'all there: nothing to do',
    current: [a(acme), a(star)],
    name: named([a(acme), a(star)], [a(acme), a(star)]),
    changes: [],
  },
  {
    what: 'one is missing: that one',
    current: [a(acme)],
    name: named([a(acme), a(star)], [a(acme), a(star)]),
    changes: [upsert(a(star))],
  },
  {
    what: 'ours has another address: changed',
    current: [a(acme, '192.0.2.9')],
    name: named([a(acme)], [a(acme)]),
    changes: [upsert(a(acme))],
  },
  {
    what: 'ours has another TTL: changed',
    current: [a(acme, '192.0.2.1', 60)],
    name: named([a(acme)], [a(acme)]),
    changes: [upsert(a(acme))],
  },
  {
    what: 'withdrawn: ours go',
    current: [a(acme), a(star)],
    name: named([], [a(acme), a(star)]),
    changes: [remove(a(acme)), remove(a(star))],
  },
  {
    what: 'withdrawn, some gone already: the rest goes',
    current: [a(star)],
    name: named([], [a(acme), a(star)]),
    changes: [remove(a(star))],
  },
  {
    what: 'withdrawn: a foreign record below the name stays',
    current: [a(acme), txt(`_acme-challenge.${acme}`)],
    name: named([], [a(acme)]),
    changes: [remove(a(acme))],
  },
  { what: 'withdrawn before anything was written', current: [], name: named([]), changes: [] },
  {
    what: 'a name of the set was dropped: it goes',
    current: [a(acme), a(star)],
    name: named([a(acme)], [a(acme), a(star)]),
    changes: [remove(a(star))],
  },
  {
    what: 'a foreign TXT at the name does not matter',
    current: [txt(acme)],
    name: named([a(acme)]),
    changes: [upsert(a(acme))],
  },
  {
    what: 'records of other names do not matter',
    current: [a('other.pool.test', '192.0.2.9'), cname('xacme.pool.test')],
    name: named([a(acme)]),
    changes: [upsert(a(acme))],
  },
  { what: 'a foreign A equal to ours is taken as ours', current: [a(acme)], name: named([a(acme)]), changes: [] },
  {
    what: 'a foreign A with another address: conflict',
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
    what: 'our own CNAME of before is replaced',
    current: [cname(acme)],
    name: named([a(acme)], [cname(acme)]),
    changes: [remove(cname(acme)), upsert(a(acme))],
  },
  {
    what: 'withdrawn after a write that was not confirmed: deleted, although it is not there',
    current: [],
    name: named([], [a(acme), a(star)], { hasInFlightWrite: true }),
    changes: [remove(a(acme)), remove(a(star))],
  },
  {
    what: 'after a write that was not confirmed: all is said again, although it is there',
    current: [a(acme)],
    name: named([a(acme)], [a(acme), a(star)], { hasInFlightWrite: true }),
    changes: [remove(a(star)), upsert(a(acme))],
  },
  {
    what: 'an order that was not confirmed, and something else stands there: it was not carried out',
    current: [a(acme, '192.0.2.9')],
    name: named([a(acme)], [], { hasInFlightWrite: true }),
    changes: [],
    conflict: 'type A',
  },
  {
    what: 'an order that was not confirmed, and it stands there with another TTL: ours',
    current: [a(acme, '192.0.2.1', 60)],
    name: named([a(acme)], [], { hasInFlightWrite: true }),
    changes: [upsert(a(acme))],
  },
  {
    what: 'withdrawn while its publication is not confirmed: deleted, although it is not there',
    current: [],
    name: named([], [], { hasInFlightWrite: true, previous: [a(acme)] }),
    changes: [remove(a(acme))],
  },
  {
    what: 'so, but somebody has something else there: it stays',
    current: [a(acme, '192.0.2.9')],
    name: named([], [], { hasInFlightWrite: true, previous: [a(acme)] }),
    changes: [],
  },
  {
    what: 'withdrawn although a foreign record stands in the way: nothing to do',
    current: [a(acme, '192.0.2.9')],
    name: named([]),
    changes: [],
  },
  {
    what: 'a foreign A equal to ours but for its TTL: conflict',
    current: [a(acme, '192.0.2.1', 60)],
    name: named([a(acme)]),
    changes: [],
    conflict: 'type A',
  },
  {
    what: 'a foreign zone cut at the name: conflict, for what is below it is answered elsewhere',
    current: [ns(acme)],
    name: named([a(star)]),
    changes: [],
    conflict: `type NS that is not managed by this service exists at ${acme}`,
  },
  {
    what: 'a foreign zone cut below the name, above what is wanted: conflict',
    current: [ns(`b.${acme}`)],
    name: named([a(`a.b.${acme}`)]),
    changes: [],
    conflict: 'type NS',
  },
  { what: 'the zone has its own NS', current: [ns('pool.test')], name: named([a(acme)]), changes: [upsert(a(acme))] },
  {
    what: 'a foreign DNAME above what is wanted: conflict',
    current: [dname(acme)],
    name: named([a(star)]),
    changes: [],
    conflict: 'type DNAME',
  },
  {
    what: 'a foreign DNAME at the name itself leaves an A beside it',
    current: [dname(acme)],
    name: named([a(acme)]),
    changes: [upsert(a(acme))],
  },
  {
    what: 'withdrawn, and there again as it was: an order that was given up has taken effect late',
    current: [a(acme)],
    name: named([], [], { previous: [a(acme), a(star)] }),
    changes: [remove(a(acme))],
  },
  {
    what: 'withdrawn, and somebody has put another address there: not ours',
    current: [a(acme, '192.0.2.9')],
    name: named([], [], { previous: [a(acme)] }),
    changes: [],
  },
  {
    what: 'desired again while the previous ones are back: replaced, no conflict',
    current: [a(acme, '192.0.2.7'), a(star, '192.0.2.7')],
    name: named([a(acme)], [], { previous: [a(acme, '192.0.2.7'), a(star, '192.0.2.7')] }),
    changes: [remove(a(star)), upsert(a(acme))],
  },
  {
    what: 'previous, owned and desired at once: said once',
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
    const said = plan(current, name)
    if (conflict) expect(said).toEqual({ kind: 'conflict', reason: expect.stringContaining(conflict) })
    else expect(said).toEqual({ kind: 'changes', changes })
  })

  test('a conflict says where it is and what can be done about it', () => {
    expect(plan([cname(acme)], named([a(acme)]))).toEqual({
      kind: 'conflict',
      reason:
        'A record of type CNAME that is not managed by this service exists at acme.pool.test. Delete it, or release this name.',
    })
  })

  test('where a zone has one TTL for all, another TTL than asked for is no difference', () => {
    const current = [a(acme, '192.0.2.1', 60), a(star, '192.0.2.9', 60)]
    const name = named([a(acme), a(star)], [a(acme), a(star)])
    expect(plan(current, name, { hasZoneTtl: true })).toEqual({ kind: 'changes', changes: [upsert(a(star))] })
    expect(plan(current, named([a(acme)]), { hasZoneTtl: true })).toEqual({ kind: 'changes', changes: [] })
  })

  test('applied, leaves nothing to plan', () => {
    const desired = [a(acme), a(star)]
    const current = [a(acme, '192.0.2.9'), txt(acme)]
    const after = [...current.filter(set => set.type !== 'A'), ...desired]
    expect(plan(current, named(desired, [a(acme)]))).toEqual({ kind: 'changes', changes: desired.map(upsert) })
    expect(plan(after, named(desired, desired))).toEqual({ kind: 'changes', changes: [] })
  })
})
