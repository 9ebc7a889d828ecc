import { expect, test } from 'vitest'
import type { RecordChange, RecordSet } from '../../domain/rrset.ts'
import { parseMessage } from '../../wire/message.ts'
import { buildUpdate, buildUpdates, chunkUpdates, encodeEffectCheck, encodeUpdate, toUpdateSize } from './update.ts'

const zone = 'a.test'
const set = (name: string, type: string, ...values: string[]): RecordSet => ({ name, type, ttl: 60, values })
const upsert = (record: RecordSet): RecordChange => ({ kind: 'upsert', set: record })
const remove = (name: string, type: string): RecordChange => ({ kind: 'delete', name, type })

test('an update deletes every record set of a name before it adds any', () => {
  const update = buildUpdate(
    'x.a.test',
    [upsert(set('x.a.test', 'A', '192.0.2.1', '192.0.2.2')), remove('x.a.test', 'TXT')],
    undefined,
  )
  const octets = encodeUpdate(7, zone, [update])
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

test('a CNAME is added only if no other RRset exists at the name, except those that the same update deletes', () => {
  const update = buildUpdate('x.a.test', [remove('x.a.test', 'A'), upsert(set('x.a.test', 'CNAME', 'y.'))], undefined)
  const { answers } = parseMessage(encodeUpdate(7, zone, [update]))
  const absent = answers.map(({ type }) => type)
  expect(answers.every(record => record.class === 254 && record.ttl === 0 && record.dataLength === 0)).toBe(true)
  expect(absent).toEqual(expect.arrayContaining([2, 15, 16, 28, 33, 257]))
  for (const type of [1, 5, 46, 47, 255]) expect(absent).not.toContain(type)
})

test('a record set that the last read did not return is added only if it still does not exist', () => {
  const changes = [
    upsert(set('x.a.test', 'A', '192.0.2.1')),
    upsert(set('x.a.test', 'TXT', '"a"')),
    remove('x.a.test', 'MX'),
  ]
  const absentWhen = (present: ReadonlySet<string> | undefined) => {
    const { answers } = parseMessage(encodeUpdate(7, zone, [buildUpdate('x.a.test', changes, present)]))
    expect(answers.every(record => record.class === 254 && record.ttl === 0 && record.dataLength === 0)).toBe(true)
    return answers.map(({ type }) => type)
  }
  expect(absentWhen(new Set())).toEqual([1, 16])
  expect(absentWhen(new Set(['x.a.test A']))).toEqual([16])
  expect(absentWhen(new Set(['x.a.test A', 'x.a.test TXT']))).toEqual([])
  expect(absentWhen(undefined)).toEqual([])
})

test('the effect check has prerequisites only: which RRsets exist after the update, and which do not', () => {
  const update = buildUpdate(
    'x.a.test',
    [remove('x.a.test', 'A'), upsert(set('x.a.test', 'TXT', '"a"', '"b"'))],
    undefined,
  )
  const { opcode, questions, answers, authority } = parseMessage(encodeEffectCheck(7, zone, [update]))
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

test('a delegation below the apex is changed like any record set', () => {
  expect(
    buildUpdates(zone, [upsert(set('x.a.test', 'NS', 'ns.'))], { present: undefined, limit: 65_000 }).rejected.size,
  ).toBe(0)
})

test('updates fill messages and are never split', () => {
  const updates = ['a', 'b', 'c', 'd', 'e'].map(label =>
    buildUpdate(`${label}.a.test`, [remove(`${label}.a.test`, 'A')], undefined),
  )
  const [first] = updates
  const size = first ? toUpdateSize(first) : 0
  const sizes = (limit: number) => chunkUpdates(updates, limit).map(batch => batch.length)
  expect(sizes(2 * size)).toEqual([2, 2, 1])
  expect(sizes(2 * size - 1)).toEqual([1, 1, 1, 1, 1])
  expect(sizes(5 * size)).toEqual([5])
  expect(chunkUpdates(updates, 5 * size, 2).map(batch => batch.length)).toEqual([2, 2, 1])
  expect(chunkUpdates([], 100)).toEqual([])
})

test.each<[string, RecordChange, RegExp]>([
  ['outside the zone', upsert(set('x.b.test', 'A', '192.0.2.1')), /not in this zone/],
  ['outside the zone, with the zone as a suffix of a label', remove('xa.test', 'A'), /not in this zone/],
  ['not a domain name', remove('a..a.test', 'A'), /not a domain name/],
  ['a value of another type', upsert(set('x.a.test', 'A', 'x')), /not valid for the type A/],
  ['no value', upsert(set('x.a.test', 'A')), /no value/],
  ['two CNAMEs', upsert(set('x.a.test', 'CNAME', 'a.', 'b.')), /only one CNAME/],
  ['SOA', remove('a.test', 'SOA'), /manages the SOA/],
  ['NS at the apex', upsert(set('a.test', 'NS', 'ns.')), /manages the NS/],
  ['not a record type', remove('x.a.test', 'AXFR'), /not a record type/],
  ['a TTL beyond 31 bits', upsert({ ...set('x.a.test', 'A', '192.0.2.1'), ttl: 2 ** 31 }), /TTL/],
  ['too large', upsert(set('x.a.test', 'TXT', `"${'a'.repeat(200)}"`)), /do not fit/],
])('a change that is not sent: %s', (_, change, reason) => {
  const { updates, rejected } = buildUpdates(zone, [change, remove('good.a.test', 'A')], {
    present: undefined,
    limit: 200,
  })
  expect(updates.map(({ name }) => name)).toEqual(['good.a.test'])
  expect([...rejected.values()]).toEqual([expect.stringMatching(reason)])
})

test('an invalid change rejects all changes at its name; of two changes to one record set the last applies', () => {
  const faulty = buildUpdates(zone, [remove('x.a.test', 'A'), upsert(set('x.a.test', 'AAAA', 'x'))], {
    present: undefined,
    limit: 65_000,
  })
  expect(faulty.updates).toEqual([])
  const [update] = buildUpdates(zone, [remove('x.a.test', 'A'), upsert(set('x.a.test', 'A', '192.0.2.1'))], {
    present: undefined,
    limit: 65_000,
  }).updates
  expect(update?.changes).toEqual([upsert(set('x.a.test', 'A', '192.0.2.1'))])
})
