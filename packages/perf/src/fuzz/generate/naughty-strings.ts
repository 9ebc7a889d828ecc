import type { Random } from './random.ts'

/** Texts that have broken something somewhere: U+0000, lone surrogates, turned directions, names of Object's own, … */
export const nastyTexts: readonly string[] = [
  '',
  ' ',
  '\u0000',
  'a\u0000b',
  '\ud800',
  '\udfff\ud800',
  '\ufeff',
  '\u202egpj.exe',
  'K', // U+212A, which Unicode lower-cases to k
  'ı',
  'ﬀ',
  '💥'.repeat(64),
  '__proto__',
  'constructor',
  'toString',
  '%00',
  '%s%n%x',
  '../../etc/passwd',
  "' or 1=1--",
  '"; drop table pool_allocations; --',
  '$' + '{jndi:ldap://x}',
  '{{7*7}}',
  '<script>alert(1)</script>',
  'line\r\nSet-Cookie: a=b',
  'xn--nxasmq6b',
  'a'.repeat(63),
  'a'.repeat(64),
  'a'.repeat(255),
  'a'.repeat(256),
  '-a',
  'a-',
  'A.B',
  'localhost',
  '::1',
  '0x7f000001',
  '127.1',
  '255.255.255.255',
  '203.0.113.10.',
  '1e309',
  'NaN',
  'null',
  'true',
  '9007199254740993',
  '-0',
]

const longTexts: readonly (() => string)[] = [
  () => 'a'.repeat(4_096),
  () => 'é'.repeat(20_000),
  () => '\\'.repeat(10_000),
  () => 'a.'.repeat(8_000),
]

export const nastyText = (random: Random): string =>
  random.chance(0.04) ? random.pick(longTexts)() : random.pick(nastyTexts)

const nestedArrays = (depth: number): unknown => {
  let value: unknown = 0
  for (let level = 0; level < depth; level += 1) value = [value]
  return value
}

const others: readonly unknown[] = [
  null,
  true,
  false,
  0,
  -1,
  1,
  0.5,
  1e21,
  -1e308,
  2 ** 31,
  2 ** 53,
  [],
  {},
  [[]],
  [null],
  ['acme'],
  { $gt: '' },
  { toString: 1 },
]

/** Any value of JSON, mostly one that does not belong. */
export const nastyValue = (random: Random): unknown =>
  random.chance(0.02) ? nestedArrays(200) : random.chance(0.5) ? nastyText(random) : random.pick(others)
