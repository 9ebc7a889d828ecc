import type { ErrorCode } from '@pool/contract'
import { poolPath } from '../../support/service.ts'
import { type BadRow, commitWith, describeValue, rawRow, remove, reserve, row } from './row.ts'

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
const badRequest = [400, 'invalid-format'] as const

/** Bytes that are not a valid HTTP request. The server may close the connection or keep it open. */
export const malformedRows: readonly BadRow[] = [
  rawRow('no request line', badRequest, request('hello')),
  rawRow('a TLS handshake', badRequest, Buffer.from('16030100a5010000a10303', 'hex')),
  rawRow('the preface of HTTP/2', badRequest, 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'),
  rawRow('an unknown version of HTTP', badRequest, request('GET /livez HTTP/9.9\nHost: localhost')),
  rawRow('a lower-case method', badRequest, request('get /livez HTTP/1.1\nHost: localhost')),
  rawRow('a space in the path', badRequest, request('GET /live z HTTP/1.1\nHost: localhost')),
  rawRow('a non-ASCII byte in the path', badRequest, request('GET /livez\xe9 HTTP/1.1\nHost: localhost')),
  rawRow('NUL in the path', badRequest, request('GET /livez\0 HTTP/1.1\nHost: localhost')),
  rawRow('a backslash in the path', badRequest, request('GET /livez\\x HTTP/1.1\nHost: localhost')),
  rawRow('no path', badRequest, request('GET  HTTP/1.1\nHost: localhost')),
  rawRow('a path without a slash', badRequest, request('GET livez HTTP/1.1\nHost: localhost')),
  rawRow('a URL without a host', badRequest, request('GET about:blank HTTP/1.1\nHost: localhost')),
  rawRow('no method', badRequest, request(' /livez HTTP/1.1\nHost: localhost')),
  rawRow('a method with a bracket', badRequest, request('G(T /livez HTTP/1.1\nHost: localhost')),
  rawRow('a method of 5 KB', badRequest, request(`${'X'.repeat(5_000)} /livez HTTP/1.1\nHost: localhost`)),
  rawRow('a version of two digits', badRequest, request('GET /livez HTTP/1.10\nHost: localhost')),
  rawRow('a lower-case version', badRequest, request('GET /livez http/1.1\nHost: localhost')),
  rawRow('an empty version', badRequest, request('GET /livez \nHost: localhost')),
  rawRow('another protocol', badRequest, 'EHLO localhost\r\n'),
  rawRow('bytes that are no text', badRequest, '\x80\x81\xff\x00\x01'),
  rawRow('lines that end with LF', badRequest, 'GET /livez HTTP/1.1\nHost: localhost\n\n'),
  rawRow('lines that end with CR', badRequest, 'GET /livez HTTP/1.1\rHost: localhost\r\r'),
  rawRow('a header field without a name', badRequest, request('GET /livez HTTP/1.1\nHost: localhost\n: a')),
  rawRow('a header field with a bracket', badRequest, request('GET /livez HTTP/1.1\nHost: localhost\nX(): a')),
  rawRow('a space before the colon', badRequest, request('GET /livez HTTP/1.1\nHost: localhost\nX : a')),
  rawRow('a header field with CR', badRequest, request('GET /livez HTTP/1.1\nHost: localhost\nX: a\rb')),
  rawRow('a header field with DEL', badRequest, request('GET /livez HTTP/1.1\nHost: localhost\nX: a\x7f')),
  rawRow(
    '3,000 header fields',
    [431, 'invalid-format'],
    request(`GET /livez HTTP/1.1\nHost: localhost${'\nX: 1234567890'.repeat(3_000)}`),
  ),
  rawRow('two Hosts', badRequest, request('GET /livez HTTP/1.1\nHost: localhost\nHost: other')),
  rawRow('a header field without a colon', badRequest, request('GET /livez HTTP/1.1\nHost: localhost\nfoo')),
  rawRow('a header field with NUL', badRequest, request('GET /livez HTTP/1.1\nHost: localhost\nX: a\0b')),
  rawRow('a header field on two lines', badRequest, request('GET /livez HTTP/1.1\nHost: localhost\nX: a\n b')),
  rawRow(
    'a header field of 20 KB',
    [431, 'invalid-format'],
    request(`GET /livez HTTP/1.1\nHost: localhost\nX: ${'a'.repeat(20_000)}`),
  ),
  rawRow('a path of 20 KB', [431, 'invalid-format'], request(`GET /${'a'.repeat(20_000)} HTTP/1.1\nHost: localhost`)),
  rawRow('no Host', badRequest, request('GET /livez HTTP/1.1\nX: a')),
  rawRow('an empty Host', badRequest, request('GET /livez HTTP/1.1\nHost:')),
  rawRow('a Host with a space', badRequest, request('GET /livez HTTP/1.1\nHost: a b')),
  rawRow('a Host with a slash', badRequest, request('GET /livez HTTP/1.1\nHost: a/b')),
  rawRow('a non-ASCII Host', badRequest, request('GET /livez HTTP/1.1\nHost: b\xfccher')),
  rawRow('an invalid absolute URL', badRequest, request('GET http://[/livez HTTP/1.1\nHost: localhost')),
  rawRow(
    'an absolute URL with another scheme',
    badRequest,
    request('GET ftp://localhost/livez HTTP/1.1\nHost: localhost'),
  ),
  rawRow('a Content-Length that is not a number', badRequest, request(`${target}Content-Length: abc`, '{}')),
  rawRow('a very large Content-Length', badRequest, request(`${target}Content-Length: 99999999999999999999999`, '{}')),
  rawRow('a negative Content-Length', badRequest, request(`${target}Content-Length: -1`, '{}')),
  rawRow('a Content-Length with a plus', badRequest, request(`${target}Content-Length: +2`, '{}')),
  rawRow('an empty Content-Length', badRequest, request(`${target}Content-Length:`, '{}')),
  rawRow('a list of equal Content-Lengths', badRequest, request(`${target}Content-Length: 2, 2`, '{}')),
  rawRow('two equal Content-Lengths', badRequest, request(`${target}Content-Length: 2\nContent-Length: 2`, '{}')),
  rawRow('two different Content-Lengths', badRequest, request(`${target}Content-Length: 1\nContent-Length: 2`, '{}')),
  rawRow(
    'both Content-Length and Transfer-Encoding',
    badRequest,
    request(`${target}Content-Length: 2\nTransfer-Encoding: chunked`, '0\r\n\r\n'),
  ),
  rawRow('an unknown transfer coding', badRequest, request(`${target}Transfer-Encoding: gzip`, '{}')),
  ...['chunked, chunked', 'chunked\nTransfer-Encoding: identity', '\x0bchunked'].map(coding =>
    rawRow(
      `the transfer coding ${JSON.stringify(coding)}`,
      badRequest,
      request(`${target}Transfer-Encoding: ${coding}`, '2\r\n{}\r\n0\r\n\r\n'),
    ),
  ),
  ...['-5\r\n{}abc\r\n', '2\n{}\n0\n\n'].map(chunks =>
    rawRow(`the chunks ${JSON.stringify(chunks)}`, badRequest, request(`${target}Transfer-Encoding: chunked`, chunks)),
  ),
  rawRow(
    'a chunk whose size is not a number',
    badRequest,
    request(`${target}Transfer-Encoding: chunked`, 'zz\r\n{}\r\n0\r\n\r\n'),
  ),
  rawRow(
    'a chunk that is longer than its size',
    badRequest,
    request(`${target}Transfer-Encoding: chunked`, '1\r\n{}\r\n0\r\n\r\n'),
  ),
  rawRow(
    'a malformed chunk after a valid one',
    badRequest,
    request(`${target}Transfer-Encoding: chunked`, '5\r\n{"sub\r\nzz\r\n'),
  ),
  rawRow(
    'a chunk extension of 20 KB',
    badRequest,
    request(`${target}Transfer-Encoding: chunked`, `2;${'x'.repeat(20_000)}\r\n{}\r\n0\r\n\r\n`),
  ),
]
