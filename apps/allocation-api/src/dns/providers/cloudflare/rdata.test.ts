import { expect, test } from 'vitest'
import { toContent, toPresentation } from './rdata.ts'

test.each([
  [{ type: 'A', content: '192.0.2.1' }, '192.0.2.1'],
  [{ type: 'AAAA', content: '2001:DB8:0::1' }, '2001:db8::1'],
  [{ type: 'CNAME', content: 'Web.example' }, 'web.example.'],
  [{ type: 'CNAME', content: 'web.example.' }, 'web.example.'],
  [{ type: 'MX', content: 'mail.example', priority: 10 }, '10 mail.example.'],
  [{ type: 'MX', content: '.', priority: 0 }, '0 .'],
  [{ type: 'TXT', content: 'bare "text" \\ here' }, '"bare \\"text\\" \\\\ here"'],
  [{ type: 'TXT', content: '"one"  "two \\"2\\""' }, '"one" "two \\"2\\""'],
  [{ type: 'TXT', content: 'é' }, '"\\195\\169"'],
  [{ type: 'TXT', content: '"\\195\\169"' }, '"\\195\\169"'],
  [{ type: 'TXT', content: '' }, '""'],
  [{ type: 'TXT', content: 'x'.repeat(300) }, `"${'x'.repeat(255)}" "${'x'.repeat(45)}"`],
  [
    {
      type: 'SRV',
      content: '60 5060 sip.example',
      priority: 10,
      data: { weight: 60, port: 5060, target: 'sip.example' },
    },
    '10 60 5060 sip.example.',
  ],
  [
    { type: 'CAA', content: '0 issue "ca.example"', data: { flags: 0, tag: 'issue', value: 'ca.example' } },
    '0 issue "ca.example"',
  ],
  [{ type: 'TLSA', content: '3 1 1 abcd' }, '3 1 1 abcd'],
])('%j reads as %s', (record, value) => {
  expect(toPresentation(record)).toBe(value)
})

test.each([
  ['A', '192.0.2.1', { content: '192.0.2.1' }],
  ['A', '192.0.2', undefined],
  ['AAAA', '2001:db8::1', { content: '2001:db8::1' }],
  ['AAAA', 'fe80::1%eth0', undefined],
  ['CNAME', 'web.example.', { content: 'web.example' }],
  ['CNAME', 'two words', undefined],
  ['MX', '10 mail.example.', { content: 'mail.example', priority: 10 }],
  ['MX', '65536 mail.example.', undefined],
  ['TXT', '"one" "two"', { content: '"one" "two"' }],
  ['TXT', 'bare', undefined],
  ['SRV', '1 2 3 s.example.', { priority: 1, data: { priority: 1, weight: 2, port: 3, target: 's.example' } }],
  ['SRV', '1 2 s.example.', undefined],
  ['CAA', '0 issue "ca.example"', { data: { flags: 0, tag: 'issue', value: 'ca.example' } }],
  ['CAA', '0 issue', undefined],
  ['TLSA', '3 1 1 abcd', undefined],
])('%s %s is written as %j', (type, value, fields) => {
  expect(toContent(type, value)).toEqual(fields)
})
