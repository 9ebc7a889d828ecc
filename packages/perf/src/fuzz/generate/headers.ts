import type { Choices } from './choices.ts'

const tags = (known: number): readonly string[] => [
  `${known}`,
  `"${known}"`,
  `W/"${known}"`,
  `w/"${known}"`,
  `"${known}`,
  `${known}"`,
  '*',
  '"*"',
  '',
  '""',
  'W/""',
  '0',
  '"00"',
  '-1',
  '+1',
  '1e3',
  '0x1',
  '1.0',
  '9007199254740991',
  '"9007199254740992"',
  '99999999999999999999',
  `"${known}", "${known + 1}"`,
  `"x","y",W/"${known}"`,
  `"a,b", "${known}"`,
  `${'"x", '.repeat(300)}"${known}"`,
  `\t"${known}" `,
  '\u00ff',
]

/** A value of If-Match or If-None-Match (RFC 9110 section 13.1): lists, weak tags, `*`, and invalid ones. */
export const entityTags = (known: number, choices: Choices): string => choices.pick(tags(known))

const waits = ['0', '1', '"1"', '"0"', '00', '-1', '1.5', '', '1 ', 'x', '99999999999', '0x1']

/** A value of `Prefer` (RFC 7240). None waits longer than a second. */
export const preference = (choices: Choices): string => {
  const wait = choices.pick(waits)
  return choices.pick([
    `wait=${wait}`,
    `Wait = ${wait}`,
    `respond-async, wait=${wait}`,
    `respond-async; x="a,wait=9", wait=${wait}`,
    `wait=${wait}; foo="bar"`,
    `wait=${wait}, wait=50`,
    'wait',
    'wait;wait=50',
    `x="\\"", wait=${wait}`,
    `x="unclosed, wait=50`,
    ',,,,',
    `${'a="\\'.repeat(120)}`,
    `${'x, '.repeat(150)}wait=${wait}`,
    `${'"'.repeat(511)}`,
    'return=minimal',
    '',
  ])
}

/** A value of `Authorization` with a token; some are valid. */
export const authorization = (token: string, choices: Choices): string =>
  choices.pick([
    `Bearer ${token}`,
    `bearer ${token}`,
    `BEARER    ${token}  `,
    `Bearer${token}`,
    `Bearer ${token},`,
    `Bearer ${token} ${token}`,
    `Bearer "${token}"`,
    `Bearer ${token.slice(0, -1)}`,
    `Bearer ${token}x`,
    `Bearer ${token.toUpperCase()}`,
    `Bearer\t${token}`,
    `Basic ${Buffer.from(`operator:${token}`).toString('base64')}`,
    `Digest username="${token}"`,
    'Bearer',
    'Bearer ',
    '',
    token,
    `Bearer ${'a'.repeat(5_000)}`,
    'Bearer \u00ff\u00fe',
    `Bearer , Bearer ${token}`,
  ])

const lines: readonly ((choices: Choices) => string)[] = [
  choices =>
    `Content-Type: ${choices.pick(['text/plain', 'application/json; charset=utf-16', 'application/json;;', '', 'multipart/form-data', '*/*', 'application/x-www-form-urlencoded'])}`,
  choices => `Accept: ${choices.pick(['text/html', 'application/xml;q=1', '', '*/*;q=0', 'x', ';;,,'])}`,
  choices => `Accept-Encoding: ${choices.pick(['gzip', 'br;q=1', 'identity;q=0', '*;q=0'])}`,
  choices => `Content-Encoding: ${choices.pick(['gzip', 'identity', 'x'])}`,
  choices =>
    `Host: ${choices.pick(['', 'other.example', '127.0.0.1:99999', '[::1', 'a b', 'user@host', '\u00ff', 'x/y?z#', '%00', '..'])}`,
  choices => `X-Request-Id: ${choices.pick(['', 'a b', 'é', 'x'.repeat(129), 'ok-1', '"', '<script>'])}`,
  choices => `Last-Event-ID: ${choices.pick(['', '0', '1', '-1', '01', '2147483648', 'x', '1e3', '99999999999999'])}`,
  choices =>
    `Idempotency-Key: ${choices.pick(['', ' ', 'k', 'a b', 'x'.repeat(255), 'x'.repeat(256), '\u00ff', '"quoted"'])}`,
  choices => `Range: ${choices.pick(['bytes=0-1', 'bytes=-1', 'lines=1-'])}`,
  choices => `If-Modified-Since: ${choices.pick(['0', 'Sat, 31 Dec 2050 23:59:59 GMT'])}`,
  choices => `Origin: ${choices.pick(['null', 'https://evil.example', 'https://console.example', 'http://[::1', ''])}`,
  choices =>
    `Sec-Fetch-Site: ${choices.pick(['cross-site', 'same-site', 'same-origin', 'none', 'Cross-Site', 'later', ''])}`,
  choices => `Sec-Fetch-Mode: ${choices.pick(['navigate', 'cors', 'no-cors'])}`,
  choices => `Cookie: ${choices.pick(['', '=', 'a=b; a=c', '__proto__=1'])}`,
  choices => `Forwarded: for=${choices.pick(['_x', '"[::1]"', 'unknown'])};proto=https`,
  () => 'X-Forwarded-For: 1.2.3.4, ::1',
  () => 'X-HTTP-Method-Override: DELETE',
  () => 'X-Original-URL: /metrics',
  () => 'Connection: close',
  () => 'Connection: keep-alive, X-Holder, Authorization',
  () => 'Upgrade-Insecure-Requests: 1',
  () => 'TE: trailers, deflate;q=0.5',
  () => '__proto__: x',
  () => 'constructor: x',
  () => 'Age: \t x \t',
  choices => `X-Lease-Slot: ${choices.pick(['', 'a'.repeat(507), '\u00ff', 'ns/name', '{"a":1}'])}`,
  choices => `X-Holder: ${choices.pick(['', ' ', 'é', 'a'.repeat(254), 'a b', '\u00ff', '"x"'])}`,
  choices => `X-Long-${choices.below(9)}: ${'v'.repeat(choices.pick([10, 1_000, 12_000]))}`,
]

/** What a browser adds to the request of a page. */
export const pageHeaders = (choices: Choices): string[] => {
  const site = choices.pick(['same-origin', 'none', 'cross-site', 'same-site'])
  const origin = choices.pick([null, 'https://console.example', 'https://evil.example', 'null'])
  return [`Sec-Fetch-Site: ${site}`, ...(origin === null ? [] : [`Origin: ${origin}`])]
}

/** Lines of further headers, sometimes repeated, sometimes hundreds of them. */
export const otherHeaders = (choices: Choices): string[] => {
  if (choices.chance(0.04))
    return choices.times(choices.pick([90, 400]), () => `X-Many-${choices.below(500)}: ${choices.below(9)}`)
  const chosen = choices.times(1 + choices.below(3), () => choices.pick(lines)(choices))
  return choices.chance(0.2) ? [...chosen, ...chosen] : chosen
}
