import type { Random } from './random.ts'

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

/** A value of If-Match or If-None-Match (RFC 9110 section 13.1): lists, weak tags, `*`, and what is none of them. */
export const entityTags = (known: number, random: Random): string => random.pick(tags(known))

const waits = ['0', '1', '"1"', '"0"', '00', '-1', '1.5', '', '1 ', 'x', '99999999999', '0x1']

/** `Prefer` (RFC 7240). Nothing here waits longer than a second. */
export const preference = (random: Random): string => {
  const wait = random.pick(waits)
  return random.pick([
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

/** `Authorization` with a token: some of them let in who has it. */
export const authorization = (token: string, random: Random): string =>
  random.pick([
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

const anyOf: readonly ((random: Random) => string)[] = [
  random =>
    `Content-Type: ${random.pick(['text/plain', 'application/json; charset=utf-16', 'application/json;;', '', 'multipart/form-data', '*/*', 'application/x-www-form-urlencoded'])}`,
  random => `Accept: ${random.pick(['text/html', 'application/xml;q=1', '', '*/*;q=0', 'x', ';;,,'])}`,
  random => `Accept-Encoding: ${random.pick(['gzip', 'br;q=1', 'identity;q=0', '*;q=0'])}`,
  random => `Content-Encoding: ${random.pick(['gzip', 'identity', 'x'])}`,
  random =>
    `Host: ${random.pick(['', 'other.example', '127.0.0.1:99999', '[::1', 'a b', 'user@host', '\u00ff', 'x/y?z#', '%00', '..'])}`,
  random => `X-Request-Id: ${random.pick(['', 'a b', 'é', 'x'.repeat(129), 'ok-1', '"', '<script>'])}`,
  random => `Last-Event-ID: ${random.pick(['', '0', '1', '-1', '01', '2147483648', 'x', '1e3', '99999999999999'])}`,
  random =>
    `Idempotency-Key: ${random.pick(['', ' ', 'k', 'a b', 'x'.repeat(255), 'x'.repeat(256), '\u00ff', '"quoted"'])}`,
  random => `Range: ${random.pick(['bytes=0-1', 'bytes=-1', 'lines=1-'])}`,
  random => `If-Modified-Since: ${random.pick(['0', 'Sat, 31 Dec 2050 23:59:59 GMT'])}`,
  random => `Origin: ${random.pick(['null', 'https://evil.example'])}`,
  random => `Cookie: ${random.pick(['', '=', 'a=b; a=c', '__proto__=1'])}`,
  random => `Forwarded: for=${random.pick(['_x', '"[::1]"', 'unknown'])};proto=https`,
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
  random => `X-Lease-Slot: ${random.pick(['', 'a'.repeat(507), '\u00ff', 'ns/name', '{"a":1}'])}`,
  random => `X-Holder: ${random.pick(['', ' ', 'é', 'a'.repeat(254), 'a b', '\u00ff', '"x"'])}`,
  random => `X-Long-${random.below(9)}: ${'v'.repeat(random.pick([10, 1_000, 12_000]))}`,
]

/** Lines of other headers: of whatever a request may carry besides, some of them twice, now and then a great many. */
export const otherHeaders = (random: Random): string[] => {
  if (random.chance(0.04))
    return random.many(random.pick([90, 400]), () => `X-Many-${random.below(500)}: ${random.below(9)}`)
  const lines = random.many(1 + random.below(3), () => random.pick(anyOf)(random))
  return random.chance(0.2) ? [...lines, ...lines] : lines
}
