import { expect, test } from 'vitest'
import type { RecordSet } from '../../domain/rrset.ts'
import { type DynadotRecord, parseRecordSets, toDynadotRecords, validateRecordSet } from './record.ts'

const ZONE = 'pool.example'
const sub = (host: string, type: string, value: string, extra = ''): DynadotRecord => ({
  place: 'sub',
  host,
  type,
  value,
  extra,
})
const main = (type: string, value: string, extra = ''): DynadotRecord => ({
  ...sub('', type, value, extra),
  place: 'main',
})
const set = (name: string, type: string, ...values: string[]): RecordSet => ({ name, type, ttl: 300, values })

test.each<[string, DynadotRecord, RecordSet]>([
  ['an address of the domain', main('A', '192.0.2.1'), set(ZONE, 'A', '192.0.2.1')],
  ['a wildcard', sub('*.acme', 'a', '192.0.2.1'), set(`*.acme.${ZONE}`, 'A', '192.0.2.1')],
  ['a host in capitals', sub('WWW', 'CNAME', 'web.example'), set(`www.${ZONE}`, 'CNAME', 'web.example.')],
  ['the domain as a host', sub('@', 'A', '192.0.2.1'), set(ZONE, 'A', '192.0.2.1')],
  ['a target with its dot', sub('w', 'CNAME', 'web.example.'), set(`w.${ZONE}`, 'CNAME', 'web.example.')],
  ['a distance', main('MX', 'mail.example', '10'), set(ZONE, 'MX', '10 mail.example.')],
  ['no distance', main('MX', 'mail.example'), set(ZONE, 'MX', '0 mail.example.')],
  [
    'a service',
    sub('_s._tcp', 'SRV', '10 60 5060 sip.example'),
    set(`_s._tcp.${ZONE}`, 'SRV', '10 60 5060 sip.example.'),
  ],
  [
    'a split service',
    sub('_s', 'SRV', '60 5060 sip.example', '10'),
    set(`_s.${ZONE}`, 'SRV', '10 60 5060 sip.example.'),
  ],
  ['a text', main('TXT', 'v=spf1 -all'), set(ZONE, 'TXT', '"v=spf1 -all"')],
  ['a text with quotes', main('TXT', 'say "yes" \\'), set(ZONE, 'TXT', '"say \\"yes\\" \\\\"')],
  ['quoted strings', main('TXT', '"one" "two"'), set(ZONE, 'TXT', '"one" "two"')],
  ['a text beyond ASCII', main('TXT', 'é'), set(ZONE, 'TXT', '"\\195\\169"')],
  ['a long text', main('TXT', 'x'.repeat(300)), set(ZONE, 'TXT', `"${'x'.repeat(255)}" "${'x'.repeat(45)}"`)],
  ['a type specific to Dynadot', sub('go', 'forward', 'to.example', '1'), set(`go.${ZONE}`, 'FORWARD', 'to.example 1')],
  ['an unknown type', sub('c', 'CAA', '0 issue "ca.example"'), set(`c.${ZONE}`, 'CAA', '0 issue "ca.example"')],
])('reads %s', (_, record, expected) => {
  expect(parseRecordSets([record], ZONE, 300)).toEqual([expected])
})

test('records of one name and type are one set, sorted, without duplicates', () => {
  const records = [
    sub('a', 'A', '192.0.2.2'),
    sub('b', 'A', '192.0.2.9'),
    sub('A', 'a', '192.0.2.1'),
    sub('a', 'A', '192.0.2.2'),
  ]
  expect(parseRecordSets(records, ZONE, 60)).toEqual([
    { ...set(`a.${ZONE}`, 'A', '192.0.2.1', '192.0.2.2'), ttl: 60 },
    { ...set(`b.${ZONE}`, 'A', '192.0.2.9'), ttl: 60 },
  ])
})

test.each<[RecordSet, DynadotRecord[]]>([
  [set(ZONE, 'A', '192.0.2.1', '192.0.2.2'), [main('a', '192.0.2.1'), main('a', '192.0.2.2')]],
  [set(`*.acme.${ZONE}`, 'A', '192.0.2.1'), [sub('*.acme', 'a', '192.0.2.1')]],
  [set(`w.${ZONE}`, 'CNAME', 'web.example.'), [sub('w', 'cname', 'web.example')]],
  [set(ZONE, 'MX', '10 mail.example.'), [main('mx', 'mail.example', '10')]],
  [set(`_s.${ZONE}`, 'SRV', '10 60 5060 sip.example.'), [sub('_s', 'srv', '10 60 5060 sip.example')]],
  [set(ZONE, 'TXT', '"say \\"yes\\""'), [main('txt', 'say "yes"')]],
  [set(ZONE, 'TXT', '"\\"quoted\\""'), [main('txt', '"\\"quoted\\""')]],
  [set(ZONE, 'TXT', '"one" "two"'), [main('txt', '"one" "two"')]],
])('%j survives a round trip', (wanted, expected) => {
  const records = toDynadotRecords(wanted, ZONE)
  expect(records).toEqual(expected)
  expect(parseRecordSets(records, ZONE, 300)).toEqual([wanted])
})

test.each<[RecordSet, RegExp | undefined]>([
  [set(`acme.${ZONE}`, 'A', '192.0.2.1'), undefined],
  [set(`*.acme.${ZONE}`, 'A', '192.0.2.1'), undefined],
  [set(`_s.${ZONE}`, 'SRV', '1 2 3 sip.example.'), undefined],
  [set(`_s.${ZONE}`, 'SRV', '1 2 sip.example.'), /not a valid SRV/],
  [set(ZONE, 'SRV', '1 2 3 sip.example.'), /does not support a SRV/],
  [set(`acme.${ZONE}`, 'CAA', '0 issue "ca.example"'), /does not support a CAA/],
  [set('acme.other.example', 'A', '192.0.2.1'), /name of this zone/],
  [set(`xpool.example`, 'A', '192.0.2.1'), /name of this zone/],
  [set(`a b.${ZONE}`, 'A', '192.0.2.1'), /name of this zone/],
  [set(`acme.${ZONE}`, 'A', '192.0.2.256'), /not a valid A/],
  [set(`acme.${ZONE}`, 'A'), /no value/],
  [{ ...set(`acme.${ZONE}`, 'A', '192.0.2.1'), ttl: 0 }, /TTL/],
  [set(`acme.${ZONE}`, 'CNAME', 'a.example.', 'b.example.'), /only one CNAME/],
])('what Dynadot can store: %j', (wanted, reason) => {
  if (reason) expect(validateRecordSet(wanted, ZONE)).toMatch(reason)
  else expect(validateRecordSet(wanted, ZONE)).toBeUndefined()
})
