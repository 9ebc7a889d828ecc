import { describe, expect, test } from 'vitest'
import type * as z from 'zod'
import { firstViolation } from './allocation-problem.ts'
import {
  createLoadBalancerIP,
  fqdn,
  idempotencyKey,
  isHostName,
  loadBalancerIP,
  poolDomain,
  subdomain,
} from './fields.ts'

/** The value in its canonical form, or the error code. */
const read = (schema: z.ZodType, value: unknown): unknown => {
  const result = schema.safeParse(value)
  return result.success ? result.data : firstViolation(result.error).code
}

describe('subdomain', () => {
  test.each([
    ['one letter', 'a', 'a'],
    ['63 characters', 'a'.repeat(63), 'a'.repeat(63)],
    ['letters, digits and hyphens', 'a1-b2', 'a1-b2'],
    ['capitals are lower-cased', 'AcMe', 'acme'],
    ['white space around it is trimmed', ' \t\r\n acme \n', 'acme'],
    ['Unicode white space such as NBSP is trimmed', '\u00a0acme\u2003', 'acme'],
    ['63 characters and white space', ` ${'a'.repeat(63)} `, 'a'.repeat(63)],
    ['"--" in positions 2 and 3', 'a--b', 'a--b'],
    ['"--" in positions 4 and 5', 'abc--d', 'abc--d'],
    ['"---" from position 4', 'abc---d', 'abc---d'],
    ['a label that begins with xn', 'xn', 'xn'],
    ['a label that begins with xn-', 'xn-a', 'xn-a'],
  ])('good: %s', (_, given, canonical) => {
    expect(read(subdomain, given)).toBe(canonical)
  })

  test.each<readonly [rule: string, given: unknown]>([
    ['missing', undefined],
    ['null', null],
    ['a number', 5],
    ['a list', ['acme']],
    ['an object', { toString: () => 'acme' }],
    ['empty', ''],
    ['white space only', ' \u00a0 '],
    ['64 characters', 'a'.repeat(64)],
    ['a digit first', '1a'],
    ['a hyphen first', '-a'],
    ['a hyphen last', 'a-'],
    ['a hyphen only', '-'],
    ['an A-label', 'xn--bcher-kva'],
    ['an A-label in capitals', 'XN--BCHER-KVA'],
    ['"--" in positions 3 and 4', 'ab--c'],
    ['"---" from position 3', 'ab---c'],
    ['"--" in positions 3 and 4 behind white space', '  ab--c'],
    ['a trailing dot', 'acme.'],
    ['two labels', 'a.b'],
    ['an underscore', 'a_b'],
    ['space inside', 'a b'],
    ['NBSP inside', 'a\u00a0b'],
    ['NUL', 'a\u0000b'],
    ['NUL at the end', 'acme\u0000'],
    ['a line break inside', 'a\nb'],
    ['KELVIN SIGN', '\u212a'],
    ['KELVIN SIGN inside', 'o\u212a'],
    ['LATIN SMALL LETTER LONG S', 'a\u017f'],
    ['LATIN CAPITAL LETTER I WITH DOT ABOVE', 'a\u0130'],
    ['full-width letters', '\uff41\uff42'],
    ['Cyrillic', '\u0430\u0441'],
    ['Arabic digits', 'a\u0661'],
    ['SOFT HYPHEN', 'a\u00adb'],
    ['ZERO WIDTH SPACE around it', '\u200bacme'],
    ['a combining accent', 'e\u0301'],
    ['an emoji', 'a\u{1f600}'],
    ['a lone high surrogate', 'a\ud800'],
    ['a lone low surrogate', '\udc00a'],
  ])('invalid-format: %s', (_, given) => {
    expect(read(subdomain, given)).toBe('invalid-format')
  })
})

describe('pool domain', () => {
  test.each([
    ['capitals are lower-cased', 'Pool.TEST', 'pool.test'],
    ['white space around it is trimmed', ' pool.test\t', 'pool.test'],
    ['KELVIN SIGN is unchanged', '\u212aool.test', '\u212aool.test'],
    ['a final dot is dropped', 'pool.test.', 'pool.test'],
  ])('%s', (_, given, canonical) => {
    expect(read(poolDomain, given)).toBe(canonical)
  })
})

const label63 = 'a'.repeat(63)
/** 63 + 1 + 63 + 1 + 63 + 1 + 61. */
const name253 = `${label63}.${label63}.${label63}.${'b'.repeat(61)}`

describe('fqdn', () => {
  test.each([
    ['two labels', 'pool.test', 'pool.test'],
    ['many labels', 'a.b.c.d.e.f', 'a.b.c.d.e.f'],
    ['capitals are lower-cased', 'Acme.Pool.TEST', 'acme.pool.test'],
    ['a trailing dot is dropped', 'acme.pool.test.', 'acme.pool.test'],
    ['white space around it is trimmed', ' acme.pool.test.\n', 'acme.pool.test'],
    ['a label may begin with a digit', '3com.example', '3com.example'],
    ['a label may be digits', '123.example', '123.example'],
    ['a label of 63 characters', `${label63}.example`, `${label63}.example`],
    ['253 characters', name253, name253],
    ['253 characters and a trailing dot', `${name253}.`, name253],
    ['an A-label', 'xn--bcher-kva.example', 'xn--bcher-kva.example'],
    ['an A-label as last label', 'example.xn--p1ai', 'example.xn--p1ai'],
    ['a last label of digits and a letter', 'example.1a', 'example.1a'],
  ])('good: %s', (_, given, canonical) => {
    expect(read(fqdn, given)).toBe(canonical)
  })

  test.each<readonly [rule: string, given: unknown]>([
    ['missing', undefined],
    ['null', null],
    ['a number', 5],
    ['empty', ''],
    ['the root', '.'],
    ['one label', 'acme'],
    ['one label and a dot', 'acme.'],
    ['two trailing dots', 'acme.pool.test..'],
    ['a leading dot', '.acme.pool.test'],
    ['an empty label', 'acme..test'],
    ['a label of 64 characters', `${label63}a.example`],
    ['254 characters', `${name253}b`],
    ['a hyphen first', '-a.example'],
    ['a hyphen last', 'a-.example'],
    ['a hyphen last in the last label', 'a.example-'],
    ['an underscore', '_dmarc.example'],
    ['a wildcard', '*.example'],
    ['white space within it', 'acme .example'],
    ['NBSP', 'ac\u00a0me.example'],
    ['NUL', 'acme.example\u0000'],
    ['an IPv4 address', '203.0.113.10'],
    ['a last label of digits', 'acme.123'],
    ['a port', 'acme.example:443'],
    ['an address with a scheme', 'https://acme.example'],
    ['an umlaut', 'b\u00fccher.example'],
    ['KELVIN SIGN', '\u212a.example'],
    ['an ideographic full stop', 'acme\u3002example'],
    ['a lone surrogate', '\ud800.example'],
  ])('invalid-fqdn: %s', (_, given) => {
    expect(read(fqdn, given)).toBe('invalid-fqdn')
  })

  test('a host name is not canonicalized: capital letters are rejected', () => {
    expect(isHostName('acme.example')).toBe(true)
    expect(isHostName('Acme.example')).toBe(false)
  })

  test('a very long text is validated in linear time', () => {
    const started = performance.now()
    expect(read(fqdn, 'a-'.repeat(30_000))).toBe('invalid-fqdn')
    expect(read(subdomain, 'a-'.repeat(30_000))).toBe('invalid-format')
    expect(performance.now() - started).toBeLessThan(4_000)
  })
})

describe('loadBalancerIP', () => {
  test.each([
    ['203.0.113.10'],
    ['1.0.0.0'],
    ['223.255.255.255'],
    ['10.0.0.1'],
    ['126.255.255.255'],
    ['128.0.0.0'],
    ['192.168.0.255'],
    ['169.253.255.255'],
    ['169.255.0.0'],
    ['198.18.0.1'],
    ['100.64.0.1'],
  ])('good: %s', address => {
    expect(read(createLoadBalancerIP(false), address)).toBe(address)
  })

  test.each([
    '0.0.0.0',
    '0.255.255.255',
    '169.254.0.0',
    '169.254.169.254',
    '169.254.255.255',
    '224.0.0.1',
    '240.0.0.1',
    '255.255.255.255',
  ])('invalid-lb-ip whatever the provider: %s', address => {
    expect([false, true].map(acceptsLoopback => read(createLoadBalancerIP(acceptsLoopback), address))).toEqual(
      Array(2).fill('invalid-lb-ip'),
    )
  })

  test.each(['127.0.0.0', '127.0.0.1', '127.255.255.255'])(
    'loopback is good for records of this machine only: %s',
    address => {
      expect(read(createLoadBalancerIP(false), address)).toBe('invalid-lb-ip')
      expect(read(createLoadBalancerIP(true), address)).toBe(address)
    },
  )

  test.each<readonly [rule: string, given: unknown]>([
    ['missing', undefined],
    ['empty', ''],
  ])('missing-lb-ip: %s', (_, given) => {
    expect(read(loadBalancerIP, given)).toBe('missing-lb-ip')
  })

  test.each<readonly [rule: string, given: unknown]>([
    ['a number', 3_405_803_786],
    ['true', true],
    ['a list', ['203.0.113.10']],
    ['an object', {}],
    ['white space only', ' '],
    ['a name', 'lb.example'],
    ['one octet', '203'],
    ['three octets', '203.0.113'],
    ['five octets', '203.0.113.10.1'],
    ['an empty octet', '203..113.10'],
    ['a trailing dot', '203.0.113.10.'],
    ['a leading dot', '.203.0.113.10'],
    ['an octet above 255', '203.0.113.256'],
    ['an octet of four digits', '203.0.113.0010'],
    ['a leading zero', '203.0.113.010'],
    ['two zeros', '203.00.113.10'],
    ['leading zeros everywhere', '203.000.113.010'],
    ['octal', '0313.0.0161.012'],
    ['hexadecimal octets', '0xcb.0x0.0x71.0xa'],
    ['one hexadecimal number', '0xcb00710a'],
    ['one decimal number', '3405803786'],
    ['a sign', '+203.0.113.10'],
    ['an exponent', '2e2.0.113.10'],
    ['space before it', ' 203.0.113.10'],
    ['space behind it', '203.0.113.10 '],
    ['a line break behind it', '203.0.113.10\n'],
    ['NBSP behind it', '203.0.113.10\u00a0'],
    ['NUL behind it', '203.0.113.10\u0000'],
    ['full-width digits', '\uff12\uff10\uff13.0.113.10'],
    ['Arabic digits', '\u0661.0.113.10'],
    ['a prefix length', '203.0.113.10/32'],
    ['a port', '203.0.113.10:80'],
    ['a list in text', '203.0.113.10,203.0.113.11'],
    ['IPv6', '2001:db8::1'],
    ['IPv6 loopback', '::1'],
    ['IPv6 in brackets', '[2001:db8::1]'],
    ['IPv4 mapped into IPv6', '::ffff:203.0.113.10'],
    ['the unspecified address', '0.0.0.0'],
    ['the network 0/8', '0.1.2.3'],
    ['the first multicast address', '224.0.0.0'],
    ['the last multicast address', '239.255.255.255'],
    ['the reserved block', '240.0.0.1'],
    ['broadcast', '255.255.255.255'],
  ])('invalid-lb-ip: %s', (_, given) => {
    expect(read(loadBalancerIP, given)).toBe('invalid-lb-ip')
  })
})

describe('Idempotency-Key', () => {
  test.each(['k', '!', '~', 'a'.repeat(255), '"7f3c"', 'a,b;c=d'])('good: %s', key => {
    expect(read(idempotencyKey, key)).toBe(key)
  })
  test.each([
    ['empty', ''],
    ['256 characters', 'a'.repeat(256)],
    ['a space', 'a b'],
    ['a space around it', ' a'],
    ['a tab', 'a\tb'],
    ['a line break behind it', 'a\n'],
    ['NUL', 'a\u0000'],
    ['DEL', 'a\u007f'],
    ['NBSP', 'a\u00a0b'],
    ['beyond ASCII', '\u212a'],
    ['a lone surrogate', '\ud800'],
  ])('invalid-idempotency-key: %s', (_, key) => {
    expect(read(idempotencyKey, key)).toBe('invalid-idempotency-key')
  })
})
