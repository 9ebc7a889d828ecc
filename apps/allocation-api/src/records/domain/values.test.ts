import { expect, test } from 'vitest'
import { encodeRdata, isRecordValue, quoteString } from '../../dns/wire/rdata.ts'
import { quoteText, RECORD_TYPES, toRecordValue, toShownValue, unquoteText } from './values.ts'

const normal = (type: string, value: string) => toRecordValue(type, value, { acceptsLoopback: false })

test.each<[type: string, value: string, expected: string | null, shown?: string]>([
  ['A', ' 192.0.2.1 ', '192.0.2.1'],
  ['A', '10.0.0.1', '10.0.0.1'],
  ['A', '192.0.2.01', null],
  ['A', '169.254.1.1', null],
  ['A', '224.0.0.1', null],
  ['AAAA', '2001:DB8:0::1', '2001:db8::1'],
  ['AAAA', '::1', null],
  ['AAAA', '::ffff:192.0.2.1', null],
  ['AAAA', 'ff02::1', null],
  ['CNAME', 'Other.Example', 'other.example.', 'other.example'],
  ['CNAME', '_x._domainkey.example.', '_x._domainkey.example.', '_x._domainkey.example'],
  ['CNAME', '.', null],
  ['CNAME', '*.example', null],
  ['CNAME', 'a b', null],
  ['CNAME', 'bücher.example', null],
  ['MX', '10 Mx.example.', '10 mx.example.', '10 mx.example'],
  ['MX', '010\tmx.example', '10 mx.example.', '10 mx.example'],
  ['MX', '0 .', '0 .'],
  ['MX', '65536 mx.example', null],
  ['MX', 'mx.example', null],
  ['SRV', '0 5  5060 sip.example', '0 5 5060 sip.example.', '0 5 5060 sip.example'],
  ['SRV', '0 0 0 .', '0 0 0 .'],
  ['SRV', '0 5 sip.example', null],
  ['CAA', '0 ISSUE "ca.example"', '0 issue "ca.example"'],
  ['CAA', '128 iodef mailto:a@b.example', '128 iodef "mailto:a@b.example"'],
  [
    'CAA',
    '0 issue "ca.example; accounturi=https://ca.example/1"',
    '0 issue "ca.example; accounturi=https://ca.example/1"',
  ],
  ['CAA', '256 issue "ca"', null],
  ['NS', 'ns1.example', 'ns1.example.', 'ns1.example'],
  ['TXT', 'plain text', '"plain text"'],
  ['TXT', '"quoted"', '"quoted"'],
  ['TXT', '"two" "parts"', '"twoparts"'],
  ['TXT', 'a "b" \\c', '"a \\"b\\" \\\\c"'],
  ['TXT', '"\\065\\"\\\\"', '"A\\"\\\\"'],
  ['TXT', '"\\999"', null],
  ['TXT', 'ä', '"\\195\\164"'],
  ['TXT', '"\\255"', '"\\255"'],
  ['TXT', '"\\"in quotes\\""', '"\\"in quotes\\""'],
  ['TXT', '\ud800', null],
  ['TXT', 'x'.repeat(2_049), null],
  ['TXT', '', '""'],
  ['TXT', 'x'.repeat(300), `"${'x'.repeat(255)}" "${'x'.repeat(45)}"`],
  ['PTR', 'x.example', null],
])('%s %j', (type, value, expected, shown = expected ?? undefined) => {
  const found = normal(type, value)
  expect(found).toBe(expected)
  if (found === null) return
  // The normal form is stable, also as tenants see it, and every provider can store it.
  expect(normal(type, found)).toBe(found)
  expect(toShownValue(type, found)).toBe(shown)
  expect(normal(type, toShownValue(type, found))).toBe(found)
  // Without quotes, as most tools read and write it.
  if (type === 'TXT') expect(normal(type, unquoteText(found))).toBe(found)
  expect(isRecordValue(type, found)).toBe(true)
  expect(encodeRdata(type, found)).toBeDefined()
})

test('text is quoted and unquoted without a loss', () => {
  for (const text of ['', 'a', 'a "b" \\', 'ä€', '\n\t', 'x'.repeat(600), '\\065']) {
    expect(unquoteText(quoteText(text))).toBe(text)
    expect(normal('TXT', quoteText(text))).toBe(quoteText(text))
  }
  expect(unquoteText(quoteString(Buffer.from('plain')))).toBe('plain')
})

test('every type that can be allowed has a normal form', () => {
  const values = ['192.0.2.1', '2001:db8::1', 'x.example', '10 x.example', '0 0 1 x.example', '0 issue "x"']
  for (const type of RECORD_TYPES)
    expect(
      values.some(value => normal(type, value) !== null),
      type,
    ).toBe(true)
})
