import type { Choices } from './choices.ts'

/** The valid request that a malformed one is made from. */
export interface ValidRequest {
  readonly method: string
  readonly target: string
  /** Lines without Host, framing and CRLF. */
  readonly headers: readonly string[]
  readonly body: string
}

type Malformation = (request: ValidRequest, choices: Choices) => string

const toHead = (
  { method, target, headers }: ValidRequest,
  more: readonly string[] = [],
  version = 'HTTP/1.1',
): string => `${[`${method} ${target} ${version}`, 'Host: fuzz', ...headers, ...more].join('\r\n')}\r\n\r\n`
const toLength = ({ body }: ValidRequest): number => Buffer.byteLength(body, 'latin1')
const chunk = (text: string): string => `${text.length.toString(16)}\r\n${text}\r\n`

/** Requests that HTTP/1.1 (RFC 9112) forbids, or that servers parse differently. Latin-1 text. */
const malformations: readonly Malformation[] = [
  request => toHead(request, [`Content-Length: ${toLength(request) + 10}`]) + request.body,
  request => toHead(request, [`Content-Length: ${Math.max(0, toLength(request) - 3)}`]) + request.body,
  request => toHead(request, ['Content-Length: -1']) + request.body,
  request => toHead(request, ['Content-Length: +5']) + request.body,
  request => toHead(request, ['Content-Length: 5, 5']) + request.body.slice(0, 5),
  request => toHead(request, ['Content-Length: 5', 'Content-Length: 6']) + request.body,
  request => toHead(request, ['Content-Length: 99999999999999999999']) + request.body,
  request => toHead(request, ['Content-Length: x']) + request.body,
  request => toHead(request, ['Content-Length:']) + request.body,
  request => toHead(request, ['Content-Length: 5', 'Transfer-Encoding: chunked']) + chunk(request.body) + chunk(''),
  request => toHead(request, ['Transfer-Encoding: gzip']) + request.body,
  request => toHead(request, ['Transfer-Encoding: chunked, chunked']) + chunk(request.body) + chunk(''),
  request =>
    toHead(request, ['Transfer-Encoding: chunked', 'Transfer-Encoding: identity']) + chunk(request.body) + chunk(''),
  request => toHead(request, ['Transfer-Encoding: \x0bchunked']) + chunk(request.body) + chunk(''),
  request => `${toHead(request, ['Transfer-Encoding: chunked'])}zz\r\n${request.body}\r\n0\r\n\r\n`,
  request => `${toHead(request, ['Transfer-Encoding: chunked'])}-5\r\nabcde\r\n0\r\n\r\n`,
  request => `${toHead(request, ['Transfer-Encoding: chunked'])}ffffffffffffffff\r\nabc`,
  request => toHead(request, ['Transfer-Encoding: chunked']) + chunk(request.body),
  request => `${toHead(request, ['Transfer-Encoding: chunked'])}5;ext="${'x'.repeat(20_000)}"\r\nabcde\r\n0\r\n\r\n`,
  request =>
    `${toHead(request, ['Transfer-Encoding: chunked']) + chunk(request.body)}0\r\nX-Trailer: 1\r\nHost: other\r\n\r\n`,
  request => `${toHead(request, ['Transfer-Encoding: chunked'])}5\nabcde\n0\n\n`,
  request => toHead(request, ['X-Folded: a', '\tb']),
  request => toHead(request, ['X-Space : a']),
  request => toHead(request, [': no name']),
  request => toHead(request, ['No colon here']),
  request => toHead(request, ['X-Nul: a\0b']),
  request => toHead(request, ['X-Cr: a\rb']),
  request => toHead(request, ['X-Ctl: \x01\x7f']),
  request => toHead(request, ['X-(): 1']),
  request => toHead(request, [`X-Huge: ${'h'.repeat(40_000)}`]),
  (request, choices) =>
    toHead(
      request,
      choices.times(3_000, () => `X-${choices.below(1e6)}: ${choices.below(1e6)}`),
    ),
  request => toHead({ ...request, target: `/${'t'.repeat(40_000)}` }),
  request => toHead({ ...request, target: '/a b' }),
  request => toHead({ ...request, target: '' }),
  request => toHead({ ...request, target: '/\0' }),
  request => toHead({ ...request, target: 'no-slash' }),
  request => toHead({ ...request, method: '' }),
  request => toHead({ ...request, method: 'G(T' }),
  request => toHead({ ...request, method: 'get' }),
  request => toHead({ ...request, method: 'X'.repeat(5_000) }),
  request => toHead(request, [], 'HTTP/0.9'),
  request => toHead(request, [], 'HTTP/2.0'),
  request => toHead(request, [], 'HTTP/1.10'),
  request => toHead(request, [], 'http/1.1'),
  request => toHead(request, [], ''),
  request => toHead(request, [], 'HTTP/1.0'),
  request => toHead(request, ['Connection: keep-alive'], 'HTTP/1.0'),
  request => toHead(request, ['Host: second']),
  request => toHead(request).replace('Host: fuzz\r\n', ''),
  request => toHead(request).replaceAll('\r\n', '\n'),
  request => toHead(request).replaceAll('\r\n', '\r'),
  request => `\r\n\r\n${toHead(request)}`,
  request => toHead(request).slice(0, -2),
  (request, choices) => toHead(request).slice(0, choices.below(60)),
  request => toHead(request, ['Expect: 200-maybe']),
  request => toHead(request, ['Expect: 100-continue', `Content-Length: ${toLength(request)}`]) + request.body,
  request =>
    toHead(request, [
      'Upgrade: websocket',
      'Connection: Upgrade',
      'Sec-WebSocket-Version: 13',
      'Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==',
    ]),
  request =>
    toHead(request, ['Upgrade: h2c', 'Connection: Upgrade, HTTP2-Settings', 'HTTP2-Settings: AAMAAABkAAQAAP__']),
  () => 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
  () => '\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03',
  () => 'CONNECT 127.0.0.1:5432 HTTP/1.1\r\nHost: 127.0.0.1:5432\r\n\r\n',
  () => 'CONNECT x HTTP/1.1\r\n\r\n',
  () => 'EHLO fuzz\r\n',
  (_, choices) => String.fromCharCode(...choices.times(1 + choices.below(200), () => choices.below(256))),
]

export const malformationCount = malformations.length

/** A malformed request, by its number or at random. */
export const createMalformed = (
  request: ValidRequest,
  choices: Choices,
  which = choices.below(malformations.length),
): Buffer => Buffer.from((malformations[which] as Malformation)(request, choices), 'latin1')
