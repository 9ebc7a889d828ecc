import fc from 'fast-check'

/** Texts that have broken parsers: U+0000, lone surrogates, bidirectional controls, names of Object.prototype, … */
export const naughtyTexts: readonly string[] = [
  '',
  ' ',
  '\u0000',
  'a\u0000b',
  '\ud800',
  '\udfff\ud800',
  '\ufeff',
  '\u202egpj.exe',
  '\u212a', // KELVIN SIGN, which Unicode lower-cases to k
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

const longTexts = ['a'.repeat(4_096), 'é'.repeat(20_000), '\\'.repeat(10_000), 'a.'.repeat(8_000)]

export const naughtyText: fc.Arbitrary<string> = fc.oneof(
  { weight: 86, arbitrary: fc.constantFrom(...naughtyTexts) },
  { weight: 10, arbitrary: fc.string({ unit: 'binary', maxLength: 40 }) },
  { weight: 4, arbitrary: fc.constantFrom(...longTexts) },
)

const nestedArrays = (depth: number): unknown => {
  let value: unknown = 0
  for (let level = 0; level < depth; level += 1) value = [value]
  return value
}

const otherValues: readonly unknown[] = [
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

/** A JSON value, usually one that the schema does not allow. */
export const naughtyValue: fc.Arbitrary<unknown> = fc.oneof(
  { weight: 40, arbitrary: fc.constantFrom(...otherValues) },
  { weight: 48, arbitrary: naughtyText },
  { weight: 10, arbitrary: fc.jsonValue({ maxDepth: 2 }) },
  { weight: 2, arbitrary: fc.constant(nestedArrays(200)) },
)
