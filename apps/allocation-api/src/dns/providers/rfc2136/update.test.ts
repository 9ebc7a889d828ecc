import { expect, test } from 'vitest'
import type { RecordChange, RecordSet } from '../../domain/rrset.ts'
import { parseMessage } from '../../wire/message.ts'
import { buildUpdates } from './update.ts'
import { buildUpdate, chunkUpdates, encodeEffectCheck, encodeUpdate, updateSize } from './update-message.ts'

const zone = 'a.test'
const set = (name: string, type: string, ...values: string[]): RecordSet => ({ name, type, ttl: 60, values })
const upsert = (record: RecordSet): RecordChange => ({ kind: 'upsert', set: record })
const remove = (name: string, type: string): RecordChange => ({ kind: 'delete', name, type })

test('an update deletes every record set of a name before it adds any', () => {
  const order = buildUpdate(
    'x.a.test',
    [upsert(set('x.a.test', 'A', '192.0.2.1', '192.0.2.2')), remove('x.a.test', 'TXT')],
    undefined,
  )
  const octets = encodeUpdate(7, zone, [order])
  const { id, opcode, questions, answers, authority } = parseMessage(octets)
  expect({ id, opcode, questions, prerequisites: answers.length }).toEqual({
    id: 7,
    opcode: 5,
    questions: [{ name: zone, type: 6, class: 1 }],
    prerequisites: 0,
  })
  expect(authority.map(({ type, class: of, ttl, dataLength }) => [type, of, ttl, dataLength])).toEqual([
    [1, 255, 0, 0],
    [16, 255, 0, 0],
    [1, 1, 60, 4],
    [1, 1, 60, 4],
  ])
})

test('a CNAME is added only where nothing else stands, but for what goes with the same order', () => {
  const order = buildUpdate('x.a.test', [remove('x.a.test', 'A'), upsert(set('x.a.test', 'CNAME', 'y.'))], undefined)
  const { answers } = parseMessage(encodeUpdate(7, zone, [order]))
  const absent = answers.map(({ type }) => type)
  expect(answers.every(record => record.class === 254 && record.ttl === 0 && record.dataLength === 0)).toBe(true)
  expect(absent).toEqual(expect.arrayContaining([2, 15, 16, 28, 33, 257]))
  for (const type of [1, 5, 46, 47, 255]) expect(absent).not.toContain(type)
})

test('a record set that was not shown is added only where there is none still', () => {
  const changes = [
    upsert(set('x.a.test', 'A', '192.0.2.1')),
    upsert(set('x.a.test', 'TXT', '"a"')),
    remove('x.a.test', 'MX'),
  ]
  const absentWhen = (shown: ReadonlySet<string> | undefined) => {
    const { answers } = parseMessage(encodeUpdate(7, zone, [buildUpdate('x.a.test', changes, shown)]))
    expect(answers.every(record => record.class === 254 && record.ttl === 0 && record.dataLength === 0)).toBe(true)
    return answers.map(({ type }) => type)
  }
  expect(absentWhen(new Set())).toEqual([1, 16])
  expect(absentWhen(new Set(['x.a.test A']))).toEqual([16])
  expect(absentWhen(new Set(['x.a.test A', 'x.a.test TXT']))).toEqual([])
  expect(absentWhen(undefined)).toEqual([])
})

test('whether an order is done is asked with prerequisites alone: what is to be there, and what not', () => {
  const order = buildUpdate(
    'x.a.test',
    [remove('x.a.test', 'A'), upsert(set('x.a.test', 'TXT', '"a"', '"b"'))],
    undefined,
  )
  const { opcode, questions, answers, authority } = parseMessage(encodeEffectCheck(7, zone, [order]))
  expect({ opcode, questions, authority }).toEqual({
    opcode: 5,
    questions: [{ name: zone, type: 6, class: 1 }],
    authority: [],
  })
  expect(answers.map(({ name, type, class: of, ttl, dataLength }) => [name, type, of, ttl, dataLength])).toEqual([
    ['x.a.test', 1, 254, 0, 0],
    ['x.a.test', 16, 255, 0, 0],
  ])
})

test('a delegation below the zone is changed as any record set', () => {
  expect(
    buildUpdates(zone, [upsert(set('x.a.test', 'NS', 'ns.'))], { shown: undefined, limit: 65_000 }).rejected.size,
  ).toBe(0)
})

test('orders fill messages and none is cut', () => {
  const orders = ['a', 'b', 'c', 'd', 'e'].map(label =>
    buildUpdate(`${label}.a.test`, [remove(`${label}.a.test`, 'A')], undefined),
  )
  const [one] = orders
  const size = one ? updateSize(one) : 0
  const sizes = (limit: number) => chunkUpdates(orders, limit).map(batch => batch.length)
  expect(sizes(2 * size)).toEqual([2, 2, 1])
  expect(sizes(2 * size - 1)).toEqual([1, 1, 1, 1, 1])
  expect(sizes(5 * size)).toEqual([5])
  expect(chunkUpdates(orders, 5 * size, 2).map(batch => batch.length)).toEqual([2, 2, 1])
  expect(chunkUpdates([], 100)).toEqual([])
})

test.each<[string, RecordChange, RegExp]>([
  ['outside the zone', upsert(set('x.b.test', 'A', '192.0.2.1')), /not in this zone/],
  ['outside, with its ending', remove('xa.test', 'A'), /not in this zone/],
  ['no name', remove('a..a.test', 'A'), /not a domain name/],
  ['no value of its type', upsert(set('x.a.test', 'A', 'x')), /not valid for the type A/],
  ['no value', upsert(set('x.a.test', 'A')), /no value/],
  ['two CNAMEs', upsert(set('x.a.test', 'CNAME', 'a.', 'b.')), /one CNAME/],
  ['SOA', remove('a.test', 'SOA'), /keeps the SOA/],
  ['the name servers of the zone', upsert(set('a.test', 'NS', 'ns.')), /keeps the NS/],
  ['no type', remove('x.a.test', 'AXFR'), /not a record type/],
  ['a TTL beyond 31 bits', upsert({ ...set('x.a.test', 'A', '192.0.2.1'), ttl: 2 ** 31 }), /TTL/],
  ['too large', upsert(set('x.a.test', 'TXT', `"${'a'.repeat(200)}"`)), /more of it/],
])('a change that no server is asked for: %s', (_, change, reason) => {
  const { updates: orders, rejected } = buildUpdates(zone, [change, remove('good.a.test', 'A')], {
    shown: undefined,
    limit: 200,
  })
  expect(orders.map(({ name }) => name)).toEqual(['good.a.test'])
  expect([...rejected.values()]).toEqual([expect.stringMatching(reason)])
})

test('one faulty change holds back all of its name; of two that say the same record set the last counts', () => {
  const faulty = buildUpdates(zone, [remove('x.a.test', 'A'), upsert(set('x.a.test', 'AAAA', 'x'))], {
    shown: undefined,
    limit: 65_000,
  })
  expect(faulty.updates).toEqual([])
  const [twice] = buildUpdates(zone, [remove('x.a.test', 'A'), upsert(set('x.a.test', 'A', '192.0.2.1'))], {
    shown: undefined,
    limit: 65_000,
  }).updates
  expect(twice?.changes).toEqual([upsert(set('x.a.test', 'A', '192.0.2.1'))])
})
