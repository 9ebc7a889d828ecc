import { gzipSync } from 'node:zlib'
import { poolPath } from '../../support/service.ts'
import { type BadRow, describeValue, post, remove, reserve, row } from './row.ts'

const json = [400, 'invalid-json'] as const
const format = [422, 'invalid-format'] as const
const tooLarge = [413, 'body-too-large'] as const

export const LIMIT_BYTES = 64 * 1_024
const good = JSON.stringify({ subdomain: 'acme' })

const notJson: readonly (readonly [rule: string, body: string | Uint8Array])[] = [
  ['no body', ''],
  ['white space', ' \r\n'],
  ['an unclosed object', '{"subdomain":"acme"'],
  ['an unclosed string', '{"subdomain":"acme'],
  ['single quotes', "{'subdomain':'acme'}"],
  ['a key without quotes', '{subdomain:"acme"}'],
  ['a trailing comma', '{"subdomain":"acme",}'],
  ['a comment', '{"subdomain":"acme"}//'],
  ['two values', `${good}${good}`],
  ['NaN', '{"subdomain":NaN}'],
  ['undefined', 'undefined'],
  ['a raw line break in a string', '{"subdomain":"ac\nme"}'],
  ['a raw NUL in a string', '{"subdomain":"ac\u0000me"}'],
  ['a trailing NUL', `${good}\u0000`],
  ['an unknown escape', '{"subdomain":"\\x61cme"}'],
  ['a form', 'subdomain=acme'],
  ['XML', '<subdomain>acme</subdomain>'],
  ['invalid UTF-8', Buffer.from('{"subdomain":"ac\xffme"}', 'latin1')],
  ['truncated UTF-8', Buffer.concat([Buffer.from('{"subdomain":"acme"}'), Buffer.from([0xe2, 0x84])])],
  ['a surrogate in UTF-8', Buffer.from('{"subdomain":"\xed\xa0\x80"}', 'latin1')],
  ['an overlong slash in UTF-8', Buffer.from('{"subdomain":"\xc0\xaf"}', 'latin1')],
  ['UTF-16', Buffer.from(`\ufeff${good}`, 'utf16le')],
  ['only a byte order mark', '\ufeff'],
  ['two byte order marks', `\ufeff\ufeff${good}`],
  ['gzip', gzipSync(good)],
  ['60,000 brackets that are not closed', '['.repeat(60_000)],
  ['12,000 nested objects that are not closed', '{"a":'.repeat(12_000)],
]

/** JSON, but not an object with the required fields. */
const notRequestObjects: readonly string[] = [
  'null',
  'true',
  '1',
  '1e999',
  '"acme"',
  '[]',
  '["acme"]',
  '[{"subdomain":"acme"}]',
  '{}',
  '{"Subdomain":"acme"}',
  '{"subdomain ":"acme"}',
  '{"subdomain":{"subdomain":"acme"}}',
  '{"__proto__":{"subdomain":"acme"}}',
  '{"constructor":{"prototype":{"subdomain":"acme"}}}',
  '{"subdomain":"acme","subdomain":"-"}',
  `${'['.repeat(30_000)}${']'.repeat(30_000)}`,
]

const padded = (bytes: number) => good.padEnd(bytes)

const oversized: readonly (readonly [what: string, bytes: number])[] = [
  ['64 KiB and one byte', LIMIT_BYTES + 1],
  ['1 MiB', 1_024 * 1_024],
]

export const bodyRows: readonly BadRow[] = [
  ...notJson.map(([rule, body]) => row(`reserve: a body must be JSON in UTF-8: ${rule}`, json, reserve(body))),
  ...['commit', 'renew'].map(verb => row(`${verb}: a body is required`, json, post(verb, ''))),
  ...['commit', 'renew'].map(verb => row(`${verb}: a body must be JSON`, json, post(verb, '{'))),
  row('reserve: no body and no Content-Length', json, { method: 'POST', path: `${poolPath}/reserve` }),
  row('release: a body must be JSON without ?sub=', json, remove('{')),
  row('release: neither body nor ?sub=', format, remove(undefined)),
  ...notRequestObjects.flatMap(body => [
    row(`reserve: a body must be an object with subdomain: ${describeValue(body)}`, format, reserve(body)),
    row(`release: a body must be an object with subdomain: ${describeValue(body)}`, format, remove(body)),
  ]),
  ...['commit', 'renew'].map(verb => row(`${verb}: a body must be an object`, format, post(verb, '[]'))),
  ...oversized.flatMap(([what, bytes]) =>
    ['with Content-Length', 'chunked'].flatMap(framing => {
      const request = { ...reserve(padded(bytes)), chunked: framing === 'chunked' }
      return [
        row(`reserve: a body above 64 KiB, ${framing}: ${what}`, tooLarge, request),
        row(`commit: a body above 64 KiB, ${framing}: ${what}`, tooLarge, { ...request, path: `${poolPath}/commit` }),
        row(`renew: a body above 64 KiB, ${framing}: ${what}`, tooLarge, { ...request, path: `${poolPath}/renew` }),
        row(`release: a body above 64 KiB, ${framing}: ${what}`, tooLarge, {
          ...request,
          method: 'DELETE',
          path: `${poolPath}/release`,
        }),
      ]
    }),
  ),
  row('a body above 64 KiB is rejected before it is read as JSON', tooLarge, reserve('['.repeat(LIMIT_BYTES + 1))),
  row('release: a body above 64 KiB is rejected although ?sub= is present', tooLarge, {
    method: 'DELETE',
    path: `${poolPath}/release?sub=held`,
    body: padded(LIMIT_BYTES + 1),
  }),
]
