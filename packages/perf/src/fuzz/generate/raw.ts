import type { Random } from './random.ts'

/** What a broken request is made of: one that would be good by itself. */
export interface Whole {
  readonly method: string
  readonly target: string
  /** Without Host and framing; each without its end of line. */
  readonly headers: readonly string[]
  readonly body: string
}

type Break = (whole: Whole, random: Random) => string

const headOf = ({ method, target, headers }: Whole, more: readonly string[] = [], version = 'HTTP/1.1'): string =>
  `${[`${method} ${target} ${version}`, 'Host: fuzz', ...headers, ...more].join('\r\n')}\r\n\r\n`
const lengthOf = ({ body }: Whole): number => Buffer.byteLength(body, 'latin1')
const chunk = (text: string): string => `${text.length.toString(16)}\r\n${text}\r\n`

/** Requests that HTTP/1.1 (RFC 9112) does not allow, or that servers have read in two ways. Latin-1 text. */
const breaks: readonly Break[] = [
  whole => headOf(whole, [`Content-Length: ${lengthOf(whole) + 10}`]) + whole.body,
  whole => headOf(whole, [`Content-Length: ${Math.max(0, lengthOf(whole) - 3)}`]) + whole.body,
  whole => headOf(whole, ['Content-Length: -1']) + whole.body,
  whole => headOf(whole, ['Content-Length: +5']) + whole.body,
  whole => headOf(whole, ['Content-Length: 5, 5']) + whole.body.slice(0, 5),
  whole => headOf(whole, ['Content-Length: 5', 'Content-Length: 6']) + whole.body,
  whole => headOf(whole, ['Content-Length: 99999999999999999999']) + whole.body,
  whole => headOf(whole, ['Content-Length: x']) + whole.body,
  whole => headOf(whole, ['Content-Length:']) + whole.body,
  whole => headOf(whole, ['Content-Length: 5', 'Transfer-Encoding: chunked']) + chunk(whole.body) + chunk(''),
  whole => headOf(whole, ['Transfer-Encoding: gzip']) + whole.body,
  whole => headOf(whole, ['Transfer-Encoding: chunked, chunked']) + chunk(whole.body) + chunk(''),
  whole => headOf(whole, ['Transfer-Encoding: chunked', 'Transfer-Encoding: identity']) + chunk(whole.body) + chunk(''),
  whole => headOf(whole, ['Transfer-Encoding: \x0bchunked']) + chunk(whole.body) + chunk(''),
  whole => `${headOf(whole, ['Transfer-Encoding: chunked'])}zz\r\n${whole.body}\r\n0\r\n\r\n`,
  whole => `${headOf(whole, ['Transfer-Encoding: chunked'])}-5\r\nabcde\r\n0\r\n\r\n`,
  whole => `${headOf(whole, ['Transfer-Encoding: chunked'])}ffffffffffffffff\r\nabc`,
  whole => headOf(whole, ['Transfer-Encoding: chunked']) + chunk(whole.body),
  whole => `${headOf(whole, ['Transfer-Encoding: chunked'])}5;ext="${'x'.repeat(20_000)}"\r\nabcde\r\n0\r\n\r\n`,
  whole =>
    `${headOf(whole, ['Transfer-Encoding: chunked']) + chunk(whole.body)}0\r\nX-Trailer: 1\r\nHost: other\r\n\r\n`,
  whole => `${headOf(whole, ['Transfer-Encoding: chunked'])}5\nabcde\n0\n\n`,
  whole => headOf(whole, ['X-Folded: a', '\tb']),
  whole => headOf(whole, ['X-Space : a']),
  whole => headOf(whole, [': no name']),
  whole => headOf(whole, ['No colon here']),
  whole => headOf(whole, ['X-Nul: a\0b']),
  whole => headOf(whole, ['X-Cr: a\rb']),
  whole => headOf(whole, ['X-Ctl: \x01\x7f']),
  whole => headOf(whole, ['X-(): 1']),
  whole => headOf(whole, [`X-Huge: ${'h'.repeat(40_000)}`]),
  (whole, random) =>
    headOf(
      whole,
      random.many(3_000, () => `X-${random.below(1e6)}: ${random.below(1e6)}`),
    ),
  whole => headOf({ ...whole, target: `/${'t'.repeat(40_000)}` }),
  whole => headOf({ ...whole, target: '/a b' }),
  whole => headOf({ ...whole, target: '' }),
  whole => headOf({ ...whole, target: '/\0' }),
  whole => headOf({ ...whole, target: 'no-slash' }),
  whole => headOf({ ...whole, method: '' }),
  whole => headOf({ ...whole, method: 'G(T' }),
  whole => headOf({ ...whole, method: 'get' }),
  whole => headOf({ ...whole, method: 'X'.repeat(5_000) }),
  whole => headOf(whole, [], 'HTTP/0.9'),
  whole => headOf(whole, [], 'HTTP/2.0'),
  whole => headOf(whole, [], 'HTTP/1.10'),
  whole => headOf(whole, [], 'http/1.1'),
  whole => headOf(whole, [], ''),
  whole => headOf(whole, [], 'HTTP/1.0'),
  whole => headOf(whole, ['Connection: keep-alive'], 'HTTP/1.0'),
  whole => headOf(whole, ['Host: second']),
  whole => headOf(whole).replace('Host: fuzz\r\n', ''),
  whole => headOf(whole).replaceAll('\r\n', '\n'),
  whole => headOf(whole).replaceAll('\r\n', '\r'),
  whole => `\r\n\r\n${headOf(whole)}`,
  whole => headOf(whole).slice(0, -2),
  (whole, random) => headOf(whole).slice(0, random.below(60)),
  whole => headOf(whole, ['Expect: 200-maybe']),
  whole => headOf(whole, ['Expect: 100-continue', `Content-Length: ${lengthOf(whole)}`]) + whole.body,
  whole =>
    headOf(whole, [
      'Upgrade: websocket',
      'Connection: Upgrade',
      'Sec-WebSocket-Version: 13',
      'Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==',
    ]),
  whole => headOf(whole, ['Upgrade: h2c', 'Connection: Upgrade, HTTP2-Settings', 'HTTP2-Settings: AAMAAABkAAQAAP__']),
  () => 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
  () => '\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03',
  () => 'CONNECT 127.0.0.1:5432 HTTP/1.1\r\nHost: 127.0.0.1:5432\r\n\r\n',
  () => 'CONNECT x HTTP/1.1\r\n\r\n',
  () => 'EHLO fuzz\r\n',
  (_, random) => String.fromCharCode(...random.many(1 + random.below(200), () => random.below(256))),
]

export const breakCount = breaks.length

/** A broken request, by its number or by chance. */
export const brokenBytes = (whole: Whole, random: Random, which = random.below(breaks.length)): Buffer =>
  Buffer.from((breaks[which] as Break)(whole, random), 'latin1')
