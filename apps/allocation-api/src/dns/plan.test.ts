import { describe, expect, test } from 'vitest'
import { type DesiredName, planOf } from './plan.ts'
import type { RecordChange, RecordSet } from './record-set.ts'

const a = (name: string, address = '192.0.2.1', ttl = 300): RecordSet => ({ name, type: 'A', ttl, values: [address] })
const cname = (name: string): RecordSet => ({ name, type: 'CNAME', ttl: 300, values: ['elsewhere.example'] })
const txt = (name: string): RecordSet => ({ name, type: 'TXT', ttl: 300, values: ['"x"'] })
const key = ({ name, type }: RecordSet) => ({ name, type })
const upsert = (set: RecordSet): RecordChange => ({ kind: 'upsert', set })
const remove = (set: RecordSet): RecordChange => ({ kind: 'delete', ...key(set) })

const acme = 'acme.pool.test'
const star = '*.acme.pool.test'
const named = (desired: RecordSet[], owned: RecordSet[] = [], isUnconfirmed = false): DesiredName => ({
  subdomain: 'acme',
  desired,
  owned: owned.map(key),
  isUnconfirmed,
})

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
    conflict: 'A record',
  },
  {
    what: 'a foreign CNAME at the name: conflict',
    current: [cname(star)],
    name: named([a(acme), a(star)]),
    changes: [],
    conflict: 'CNAME record',
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
    name: named([], [a(acme), a(star)], true),
    changes: [remove(a(acme)), remove(a(star))],
  },
  {
    what: 'after a write that was not confirmed: all is said again, although it is there',
    current: [a(acme)],
    name: named([a(acme)], [a(acme), a(star)], true),
    changes: [remove(a(star)), upsert(a(acme))],
  },
  {
    what: 'withdrawn although a foreign record stands in the way: nothing to do',
    current: [a(acme, '192.0.2.9')],
    name: named([]),
    changes: [],
  },
]

describe('the plan: desired minus current', () => {
  test.each(rows)('$what', ({ current, name, changes, conflict }) => {
    const plan = planOf(current, [name])
    expect(plan.changes).toEqual(changes)
    if (conflict) expect(plan.conflicts.get('acme')).toContain(conflict)
    else expect(plan.conflicts.size).toBe(0)
  })

  test('a conflict sets one name aside and no other', () => {
    const other: DesiredName = { subdomain: 'beta', desired: [a('beta.pool.test')], owned: [], isUnconfirmed: false }
    const plan = planOf([cname(acme)], [named([a(acme)]), other])
    expect(plan.changes).toEqual([upsert(a('beta.pool.test'))])
    expect([...plan.conflicts.keys()]).toEqual(['acme'])
  })

  test('applied, leaves nothing to plan', () => {
    const desired = [a(acme), a(star)]
    const current = [a(acme, '192.0.2.9'), txt(acme)]
    const after = [...current.filter(set => set.type !== 'A'), ...desired]
    expect(planOf(current, [named(desired, [a(acme)])]).changes).toEqual(desired.map(upsert))
    expect(planOf(after, [named(desired, desired)]).changes).toEqual([])
  })
})
