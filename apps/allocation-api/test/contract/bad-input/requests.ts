import type { ErrorCode } from '@pool/contract'
import { poolPath } from '../../support/service.ts'
import { type BadRow, commitWith, describeValue, malformed, remove, reserve, row } from './row.ts'

const noPath = [404, 'not-found'] as const
const noMethod = [405, 'method-not-allowed'] as const
const badKey = [400, 'invalid-idempotency-key'] as const

const paths: readonly string[] = [
  '/',
  '/api',
  '/api/v1',
  '/api/v2/reserved',
  '/api/v1/reserved/',
  '/api/v1/Reserved',
  '/api/v1/pool',
  '/api/v1/pool/pool.test',
  `${poolPath}/`,
  `${poolPath}/nope`,
  `${poolPath}/check/`,
  `${poolPath}/allocations`,
  `${poolPath}/allocations/`,
  `${poolPath}/allocations/a/b`,
  '/api/v1/pool//check?sub=a',
  '//healthz',
  '/HEALTHZ',
  '/healthz%00',
  '/healthz%20',
  '/%',
  '/%ff',
  '/%2e%2e%2f%2e%2e%2fetc/passwd',
  '/.env',
  '/docs/',
  '/docs/package.json',
  '/docs/..%2fpackage.json',
  '/docs/__proto__',
  '/docs/constructor',
  '/lease/slot',
  '//api/v1//pool//pool.test//check',
  '//other.example/healthz',
  `${poolPath.toUpperCase()}/CHECK`,
  `${poolPath}%2Fcheck`,
  `${poolPath}%5ccheck`,
  `${poolPath}/%2e%2e/check`,
  `${poolPath}/check/..`,
  `${poolPath}/check;v=1`,
  `${poolPath}/check|{}^\`"<>`,
  `${poolPath}/check%2`,
  `${poolPath}/check%zz`,
  `${poolPath}/check%c0%af`,
  `${poolPath}/check%ed%a0%80`,
  `${poolPath}/check%u0041`,
  `${poolPath}/check%0d%0aSet-Cookie:%20a=b`,
  `${poolPath}/check/${'%41'.repeat(2_000)}`,
  `${poolPath}/check/${'a/'.repeat(2_000)}`,
  '/__proto__',
]

const queries: readonly (readonly [code: ErrorCode, queries: readonly string[]])[] = [
  ['invalid-limit', ['limit=0', 'limit=%201', 'limit=%00', 'limit=x&limit=1']],
  ['invalid-cursor', ['cursor=', 'cursor=%00', 'cursor=%ff', 'cursor=!!!!', `cursor=${'QUFB'.repeat(2_000)}`]],
]

const states: readonly string[] = ['', 'free', 'RESERVED', 'reserved,active', '%00', 'none']

export const requestRows: readonly BadRow[] = [
  ...paths.map(path => row(`an unknown path is 404: ${describeValue(path)}`, noPath, { path })),
  row('an unknown path is 404 for every method', noPath, { method: 'PATCH', path: '/nope' }),
  row('get: an unknown name', noPath, { path: `${poolPath}/allocations/nobody` }),
  row('release: an unknown name', noPath, remove({ subdomain: 'nobody' })),
  row('commit: an unknown name', noPath, commitWith({}, 'nobody')),
  ...['OPTIONS', 'TRACE', 'PROPFIND'].map(method =>
    row(`a method of no route is 405: ${method}`, noMethod, { method, path: `${poolPath}/reserve` }),
  ),
  ...['a b', 'a\tb', 'caf\xe9', '\xe2\x84\xaa'].map(key =>
    row(
      `reserve: Idempotency-Key is 1 to 255 visible characters: ${describeValue(key)}`,
      badKey,
      // Latin-1, because a header has one byte for each character.
      reserve({ subdomain: 'acme' }, [`Idempotency-Key: ${key}`]),
    ),
  ),
  row(
    'reserve: two Idempotency-Key headers',
    badKey,
    reserve({ subdomain: 'acme' }, ['Idempotency-Key: a', 'Idempotency-Key: b']),
  ),
  ...queries.flatMap(([code, texts]) =>
    texts.flatMap(query =>
      ['list', 'history'].map(verb =>
        row(`${verb}: ${code}: ${describeValue(query)}`, [422, code], { path: `${poolPath}/${verb}?${query}` }),
      ),
    ),
  ),
  ...states.map(state =>
    row(`list: state is reserved or active: ${describeValue(state)}`, [422, 'invalid-state'], {
      path: `${poolPath}/list?state=${state}`,
    }),
  ),
]

const request = (lines: string, body = '') => `${lines.replaceAll('\n', '\r\n')}\r\n\r\n${body}`
const target = `POST ${poolPath}/reserve HTTP/1.1\nHost: localhost\n`
const chunked = `${target}Transfer-Encoding: chunked`

/** Bytes that are not a valid HTTP request. The server may close the connection or keep it open. */
export const malformedRows: readonly BadRow[] = [
  malformed('no request line', request('hello')),
  malformed('a TLS handshake', Buffer.from('16030100a5010000a10303', 'hex')),
  malformed('the preface of HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'),
  malformed('an unknown version of HTTP', request('GET /livez HTTP/9.9\nHost: localhost')),
  malformed('a lower-case method', request('get /livez HTTP/1.1\nHost: localhost')),
  malformed('a space in the path', request('GET /live z HTTP/1.1\nHost: localhost')),
  malformed('a non-ASCII byte in the path', request('GET /livez\xe9 HTTP/1.1\nHost: localhost')),
  malformed('NUL in the path', request('GET /livez\0 HTTP/1.1\nHost: localhost')),
  malformed('a backslash in the path', request('GET /livez\\x HTTP/1.1\nHost: localhost')),
  malformed('no path', request('GET  HTTP/1.1\nHost: localhost')),
  malformed('a path without a slash', request('GET livez HTTP/1.1\nHost: localhost')),
  malformed('a URL without a host', request('GET about:blank HTTP/1.1\nHost: localhost')),
  malformed('no method', request(' /livez HTTP/1.1\nHost: localhost')),
  malformed('a method with a bracket', request('G(T /livez HTTP/1.1\nHost: localhost')),
  malformed('a method of 5 KB', request(`${'X'.repeat(5_000)} /livez HTTP/1.1\nHost: localhost`)),
  malformed('a version of two digits', request('GET /livez HTTP/1.10\nHost: localhost')),
  malformed('a lower-case version', request('GET /livez http/1.1\nHost: localhost')),
  malformed('an empty version', request('GET /livez \nHost: localhost')),
  malformed('another protocol', 'EHLO localhost\r\n'),
  malformed('bytes that are no text', '\x80\x81\xff\x00\x01'),
  malformed('lines that end with LF', 'GET /livez HTTP/1.1\nHost: localhost\n\n'),
  malformed('lines that end with CR', 'GET /livez HTTP/1.1\rHost: localhost\r\r'),
  malformed('a header field without a name', request('GET /livez HTTP/1.1\nHost: localhost\n: a')),
  malformed('a header field with a bracket', request('GET /livez HTTP/1.1\nHost: localhost\nX(): a')),
  malformed('a space before the colon', request('GET /livez HTTP/1.1\nHost: localhost\nX : a')),
  malformed('a header field with CR', request('GET /livez HTTP/1.1\nHost: localhost\nX: a\rb')),
  malformed('a header field with DEL', request('GET /livez HTTP/1.1\nHost: localhost\nX: a\x7f')),
  malformed(
    '3,000 header fields',
    request(`GET /livez HTTP/1.1\nHost: localhost${'\nX: 1234567890'.repeat(3_000)}`),
    431,
  ),
  malformed('two Hosts', request('GET /livez HTTP/1.1\nHost: localhost\nHost: other')),
  malformed('a header field without a colon', request('GET /livez HTTP/1.1\nHost: localhost\nfoo')),
  malformed('a header field with NUL', request('GET /livez HTTP/1.1\nHost: localhost\nX: a\0b')),
  malformed('a header field on two lines', request('GET /livez HTTP/1.1\nHost: localhost\nX: a\n b')),
  malformed('a header field of 20 KB', request(`GET /livez HTTP/1.1\nHost: localhost\nX: ${'a'.repeat(20_000)}`), 431),
  malformed('a path of 20 KB', request(`GET /${'a'.repeat(20_000)} HTTP/1.1\nHost: localhost`), 431),
  malformed('no Host', request('GET /livez HTTP/1.1\nX: a')),
  malformed('an empty Host', request('GET /livez HTTP/1.1\nHost:')),
  malformed('a Host with a space', request('GET /livez HTTP/1.1\nHost: a b')),
  malformed('a Host with a slash', request('GET /livez HTTP/1.1\nHost: a/b')),
  malformed('a non-ASCII Host', request('GET /livez HTTP/1.1\nHost: b\xfccher')),
  malformed('an invalid absolute URL', request('GET http://[/livez HTTP/1.1\nHost: localhost')),
  malformed('an absolute URL with another scheme', request('GET ftp://localhost/livez HTTP/1.1\nHost: localhost')),
  malformed('a Content-Length that is not a number', request(`${target}Content-Length: abc`, '{}')),
  malformed('a very large Content-Length', request(`${target}Content-Length: 99999999999999999999999`, '{}')),
  malformed('a negative Content-Length', request(`${target}Content-Length: -1`, '{}')),
  malformed('a Content-Length with a plus', request(`${target}Content-Length: +2`, '{}')),
  malformed('an empty Content-Length', request(`${target}Content-Length:`, '{}')),
  malformed('a list of equal Content-Lengths', request(`${target}Content-Length: 2, 2`, '{}')),
  malformed('two equal Content-Lengths', request(`${target}Content-Length: 2\nContent-Length: 2`, '{}')),
  malformed('two different Content-Lengths', request(`${target}Content-Length: 1\nContent-Length: 2`, '{}')),
  malformed(
    'both Content-Length and Transfer-Encoding',
    request(`${target}Content-Length: 2\nTransfer-Encoding: chunked`, '0\r\n\r\n'),
  ),
  malformed('an unknown transfer coding', request(`${target}Transfer-Encoding: gzip`, '{}')),
  ...['chunked, chunked', 'chunked\nTransfer-Encoding: identity', '\x0bchunked'].map(coding =>
    malformed(
      `the transfer coding ${JSON.stringify(coding)}`,
      request(`${target}Transfer-Encoding: ${coding}`, '2\r\n{}\r\n0\r\n\r\n'),
    ),
  ),
  ...['-5\r\n{}abc\r\n', '2\n{}\n0\n\n'].map(chunks =>
    malformed(`the chunks ${JSON.stringify(chunks)}`, request(chunked, chunks)),
  ),
  malformed('a chunk whose size is not a number', request(chunked, 'zz\r\n{}\r\n0\r\n\r\n')),
  malformed('a chunk that is longer than its size', request(chunked, '1\r\n{}\r\n0\r\n\r\n')),
  malformed('a malformed chunk after a valid one', request(chunked, '5\r\n{"sub\r\nzz\r\n')),
  malformed('a chunk extension of 20 KB', request(chunked, `2;${'x'.repeat(20_000)}\r\n{}\r\n0\r\n\r\n`)),
]
