import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { KnownGenerations } from './lease.ts'
import {
  parseDrain,
  parseExpectedGenerations,
  parseKnownGenerations,
  parseLeasesQuery,
  parseMaxWaitSeconds,
  parsePrecondition,
  parseRead,
  parseRenewals,
  parseSlot,
  parseWaitSeconds,
  type ReadHeaders,
} from './request.ts'

describe('the slot in a path', () => {
  const rows: readonly (readonly [encoded: string, slot: string | undefined])[] = [
    ['ns/name', 'ns/name'],
    ['ns%2Fname', 'ns/name'],
    ['n%73%2fname', 'ns/name'],
    ['a', 'a'],
    ['a/', 'a/'],
    ['a/%2Fb', 'a//b'],
    ['/', undefined],
    ['/a', undefined],
    ['a//b', undefined],
    ['a+b', 'a+b'],
    ['a%20b', 'a b'],
    ['%00', '\0'],
    ['%C3%A4', 'ä'],
    ['%F0%9F%98%80', '😀'],
    ['%EF%BB%BFa', '\uFEFFa'],
    ['%2525', '%25'],
    ['..%2Fa', '../a'],
    ['%3F%23', '?#'],
    ['', undefined],
    ['a%', undefined],
    ['%zz', undefined],
    ['%FF', undefined],
    ['%80', undefined],
    ['%C3%28', undefined],
    ['%C0%AF', undefined],
    ['%ED%A0%80', undefined],
    ['%F4%90%80%80', undefined],
    ['x'.repeat(506), 'x'.repeat(506)],
    ['x'.repeat(507), undefined],
    ['%C3%A4'.repeat(253), 'ä'.repeat(253)],
    [`${'%C3%A4'.repeat(253)}x`, undefined],
    [`${'%F0%9F%98%80'.repeat(126)}xx`, `${'😀'.repeat(126)}xx`],
    [`${'%F0%9F%98%80'.repeat(126)}xxx`, undefined],
  ]

  test.each(rows.map(([encoded, slot]) => [encoded.slice(0, 40), encoded, slot] as const))('%s', (_, encoded, slot) => {
    expect(parseSlot(encoded)).toEqual(slot === undefined ? undefined : { slot, encoded })
  })

  test('every text of a valid length is a slot, and every encoding of it gives the same slot', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', minLength: 1, maxLength: 60 }), text => {
        const encoded = encodeURIComponent(text)
        const smaller = encoded.replace(/%../g, hex => hex.toLowerCase())
        expect(parseSlot(encoded)?.slot).toBe(text)
        expect(parseSlot(smaller)?.slot).toBe(text)
      }),
    )
  })

  test('never throws, and no slot is empty or longer than 506 bytes', () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom('%', '2', 'F', 'f', 'C', '0', 'a', '/', '.') }), encoded => {
        const slot = parseSlot(encoded)?.slot
        if (slot === undefined) return
        const bytes = new TextEncoder().encode(slot).length
        expect(bytes).toBeGreaterThan(0)
        expect(bytes).toBeLessThanOrEqual(506)
      }),
    )
  })
})

type Precondition = ReturnType<typeof parsePrecondition>

const generation = (value: number): Precondition => ({ ok: true, value })
/** Matches no lease, so that the write is rejected with 412. */
const noGeneration = generation(-1)
const missing: Precondition = { ok: false, error: { code: 'missing-if-match' } }
const badMatch: Precondition = { ok: false, error: { code: 'invalid-if-match' } }
const badNoneMatch: Precondition = { ok: false, error: { code: 'invalid-if-none-match' } }

describe('If-Match of a write', () => {
  test.each<readonly [ifMatch: string, expected: Precondition]>([
    ['7', generation(7)],
    ['W/"7"', generation(7)],
    ['0', generation(0)],
    [' 7 ', generation(7)],
    ['9007199254740991', generation(Number.MAX_SAFE_INTEGER)],
    ['9007199254740992', noGeneration],
    ['W/"99999999999999999999"', noGeneration],
    ['', badMatch],
    ['*', badMatch],
    ['""', badMatch],
    ['"7', badMatch],
    ['W/7', badMatch],
    ['w/"7"', badMatch],
    ['07', noGeneration],
    ['-1', badMatch],
    ['7.0', badMatch],
    ['7e0', badMatch],
    ['0x7', badMatch],
    ['٧', badMatch],
    ['"7", "8"', badMatch],
    ['7\n', generation(7)],
    ['abc', badMatch],
  ])('%j', (ifMatch, expected) => {
    expect(parsePrecondition(ifMatch, undefined, { mayCreate: true })).toEqual(expected)
    expect(parsePrecondition(ifMatch, undefined, { mayCreate: false })).toEqual(expected)
  })
})

describe('If-None-Match of a write', () => {
  test.each<
    readonly [rule: string, ifMatch: string | undefined, none: string | undefined, put: Precondition, del: Precondition]
  >([
    ['neither header', undefined, undefined, missing, missing],
    ['* alone means 0 if the write may create', undefined, '*', generation(0), missing],
    ['* with white space', undefined, ' * ', generation(0), missing],
    ['* and 0 agree', '0', '*', generation(0), badNoneMatch],
    ['* and "0" agree', '"0"', '*', generation(0), badNoneMatch],
    ['* and another generation disagree', '7', '*', badNoneMatch, badNoneMatch],
    ['a tag alone', undefined, '"7"', badNoneMatch, missing],
    ['a tag in addition to If-Match', '7', '"8"', badNoneMatch, badNoneMatch],
    ['empty', undefined, '', badNoneMatch, missing],
    ['"*" is a tag', undefined, '"*"', badNoneMatch, missing],
    ['* twice', undefined, '*, *', badNoneMatch, missing],
    ['an invalid If-Match is reported first', 'x', '*', badMatch, badMatch],
  ])('%s', (_, ifMatch, ifNoneMatch, put, del) => {
    expect(parsePrecondition(ifMatch, ifNoneMatch, { mayCreate: true })).toEqual(put)
    expect(parsePrecondition(ifMatch, ifNoneMatch, { mayCreate: false })).toEqual(del)
  })
})

describe('If-None-Match of a read', () => {
  test.each<readonly [header: string | undefined, known: KnownGenerations]>([
    [undefined, []],
    ['', []],
    ['*', 'any'],
    [' * ', 'any'],
    ['7', [7]],
    ['"7"', [7]],
    ['W/"7"', [7]],
    ['"6", "7",W/"8" ,9', [6, 7, 8, 9]],
    ['"x", "7"', [7]],
    ['"x"', []],
    ['"7", *', [7]],
    [', ,"7",', [7]],
    ['"07"', []],
  ])('%j', (header, known) => {
    expect(parseKnownGenerations(header)).toEqual(known)
  })
})

describe('If-Match of a read: strong comparison', () => {
  test.each<readonly [header: string | undefined, expected: KnownGenerations | undefined]>([
    [undefined, undefined],
    ['', []],
    ['*', 'any'],
    ['7', [7]],
    ['"7"', [7]],
    ['W/"7"', []],
    ['"6", W/"7",8', [6, 8]],
    ['"x"', []],
    ['"07"', []],
  ])('%j', (header, expected) => {
    expect(parseExpectedGenerations(header)).toEqual(expected)
  })
})

describe('a read', () => {
  const none: ReadHeaders = { ifMatch: undefined, ifNoneMatch: undefined, prefer: undefined }
  const changed = { kind: 'changed', known: [7] }
  const vacant = { kind: 'vacant' }

  test.each<readonly [rule: string, headers: Partial<ReadHeaders>, until: string | undefined, condition: unknown]>([
    ['without a known generation', { prefer: 'wait=9' }, undefined, undefined],
    ['with an entity tag that is not a generation', { ifNoneMatch: '"x"', prefer: 'wait=9' }, undefined, undefined],
    ['with a generation', { ifNoneMatch: '"7"', prefer: 'wait=9' }, undefined, changed],
    ['with *', { ifNoneMatch: '*', prefer: 'wait=9' }, undefined, vacant],
    ['until it is vacant', { prefer: 'wait=9' }, 'vacant', vacant],
    ['until it is vacant, with a generation', { ifNoneMatch: '"7"', prefer: 'wait=9' }, 'vacant', vacant],
    ['until it is vacant, without Prefer', { ifNoneMatch: '"7"' }, 'vacant', undefined],
    ['until it is vacant, for 0 s', { prefer: 'wait=0' }, 'vacant', undefined],
    ['with If-Match', { ifMatch: '"7"', ifNoneMatch: '"7"', prefer: 'wait=9' }, 'vacant', undefined],
  ])('%s', (_, headers, until, condition) => {
    const read = parseRead({ ...none, ...headers }, until === undefined ? {} : { until }, 60)
    expect(read).toMatchObject({ ok: true, value: { wait: condition && { condition, seconds: 9 } } })
  })

  test.each(['', 'VACANT', 'released', 'vacant '])('until %j is invalid', until => {
    expect(parseRead(none, { until }, 60)).toMatchObject({ ok: false, error: { code: 'invalid-until' } })
  })

  test('an unknown parameter is ignored', () => {
    expect(parseRead(none, { unti: 'x' }, 60).ok).toBe(true)
  })
})

test.each<readonly [text: string | undefined, seconds: number | undefined]>([
  [undefined, 25],
  ['', 25],
  [' ', 25],
  ['1', 1],
  [' 60 ', 60],
  ['0', undefined],
  ['61', undefined],
  ['2.5', undefined],
  ['25s', undefined],
])('MAX_WAIT_SECONDS %j: %s', (text, seconds) => {
  expect(parseMaxWaitSeconds(text)).toBe(seconds)
})

const encode = (value: unknown): Uint8Array => new TextEncoder().encode(JSON.stringify(value))

describe('renewals', () => {
  const item = { slot: 'a//b', generation: 7 }

  test('of one holder, each for its slot', () => {
    const leases = [
      { ...item, ttlSeconds: 1.5 },
      { slot: 'c', generation: 0 },
    ]
    expect(parseRenewals(encode({ holder: 'x', leases }))).toEqual({
      ok: true,
      value: [
        {
          address: { slot: 'a//b', encoded: 'a%2F%2Fb' },
          write: { kind: 'renew', holder: 'x', ttlMs: 1_500, generation: 7 },
        },
        { address: { slot: 'c', encoded: 'c' }, write: { kind: 'renew', holder: 'x', ttlMs: 30_000, generation: 0 } },
      ],
    })
  })

  test.each<readonly [rule: string, body: unknown, code: string]>([
    ['no object', [], 'invalid-json'],
    ['no holder', { leases: [item] }, 'invalid-holder'],
    ['no list', { holder: 'x' }, 'invalid-leases'],
    ['an empty list', { holder: 'x', leases: [] }, 'invalid-leases'],
    ['a slot twice', { holder: 'x', leases: [item, { ...item, generation: 8 }] }, 'invalid-leases'],
    ['no slot', { holder: 'x', leases: [{ generation: 7 }] }, 'invalid-slot'],
    ['a slot of 507 bytes', { holder: 'x', leases: [{ ...item, slot: 'a'.repeat(507) }] }, 'invalid-slot'],
    ['no generation', { holder: 'x', leases: [{ slot: 'a' }] }, 'invalid-generation'],
    ['a generation as text', { holder: 'x', leases: [{ ...item, generation: '7' }] }, 'invalid-generation'],
    ['a generation beyond 2^53-1', { holder: 'x', leases: [{ ...item, generation: 2 ** 53 }] }, 'invalid-generation'],
    ['ttlSeconds 0', { holder: 'x', leases: [{ ...item, ttlSeconds: 0 }] }, 'invalid-ttl'],
  ])('with %s', (_, body, code) => {
    expect(parseRenewals(encode(body))).toMatchObject({ ok: false, error: { code } })
  })

  test.each([
    [100, true],
    [101, false],
  ])('of %d slots: %s', (count, isValid) => {
    const leases = Array.from({ length: count }, (_, i) => ({ slot: `s${i}`, generation: 1 }))
    expect(parseRenewals(encode({ holder: 'x', leases })).ok).toBe(isValid)
  })
})

describe('the query of /leases', () => {
  test('without slot: the copies, by the first value of each parameter', () => {
    expect(parseLeasesQuery({ prefix: ['a', 'b'], limit: ['5'] })).toEqual({
      ok: true,
      value: { kind: 'copies', query: { prefix: 'a', limit: 5 } },
    })
  })

  test('with slot: the named slots, in their order', () => {
    expect(parseLeasesQuery({ slot: ['b', 'a/c'] })).toEqual({
      ok: true,
      value: {
        kind: 'exact',
        addresses: [
          { slot: 'b', encoded: 'b' },
          { slot: 'a/c', encoded: 'a%2Fc' },
        ],
      },
    })
  })

  test.each<readonly [rule: string, query: Record<string, string[]>, code: string]>([
    ['an empty slot', { slot: ['a', ''] }, 'invalid-slot'],
    ['a slot of 507 bytes', { slot: ['a'.repeat(507)] }, 'invalid-slot'],
    ['a slot twice', { slot: ['a', 'a'] }, 'invalid-slot'],
    ['101 slots', { slot: Array.from({ length: 101 }, (_, i) => `s${i}`) }, 'invalid-slot'],
    ['a prefix too', { slot: ['a'], prefix: ['a'] }, 'invalid-request'],
    ['a cursor too', { slot: ['a'], cursor: ['x'] }, 'invalid-request'],
    ['an invalid limit', { limit: ['x'] }, 'invalid-limit'],
  ])('with %s', (_, query, code) => {
    expect(parseLeasesQuery(query)).toMatchObject({ ok: false, error: { code } })
  })
})

describe('the body of a drain', () => {
  const toBody = (value: unknown) => new TextEncoder().encode(JSON.stringify(value))
  const object = '0123456789abcdef'.repeat(4)

  test.each<readonly [rule: string, body: Uint8Array, value: unknown]>([
    ['none', new Uint8Array(), {}],
    ['100 slots', toBody({ slots: Array(100).fill('a') }), { slots: Array(100).fill('a') }],
    ['an object', toBody({ objects: [object] }), { objects: [object] }],
    ['a cursor', toBody({ cursor: 'abc' }), { cursor: 'abc' }],
  ])('may have %s', (_, body, value) => {
    expect(parseDrain(body)).toEqual({ ok: true, value })
  })

  const slots = 'slots must be a list of at most 100 slots.'
  const objects = 'objects must be a list of at most 100 ids, each of 64 lower-case hexadecimal digits.'
  test.each<readonly [rule: string, body: unknown, code: string, detail: string]>([
    ['a list', [], 'invalid-json', 'The body must be a JSON object, or absent.'],
    ['an empty slot', { slots: ['a', ''] }, 'invalid-slot', 'slot must be text of 1 to 506 bytes in UTF-8.'],
    ['one slot without a list', { slots: 'a' }, 'invalid-slot', slots],
    ['101 slots', { slots: Array(101).fill('a') }, 'invalid-slot', slots],
    ['one object without a list', { objects: object }, 'invalid-request', objects],
    ['an object in upper case', { objects: [object.toUpperCase()] }, 'invalid-request', objects],
    ['101 objects', { objects: Array(101).fill(object) }, 'invalid-request', objects],
    ['an empty cursor', { cursor: '' }, 'invalid-cursor', 'cursor must be the nextCursor of an earlier response.'],
  ])('with %s', (_, body, code, detail) => {
    expect(parseDrain(toBody(body))).toEqual({ ok: false, error: { code, detail } })
  })
})

describe('for every generation', () => {
  const any = fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER })

  test('its three forms mean the same on a write and on a read', () => {
    fc.assert(
      fc.property(any, fc.constantFrom('', '"', 'W/"'), (value, opening) => {
        const tag = `${opening}${value}${opening === '' ? '' : '"'}`
        expect(parsePrecondition(tag, undefined, { mayCreate: true })).toEqual(generation(value))
        expect(parseKnownGenerations(tag)).toEqual([value])
      }),
    )
  })

  test('no other text is accepted', () => {
    fc.assert(
      fc.property(fc.string(), text => {
        const result = parsePrecondition(text, undefined, { mayCreate: true })
        expect(result.ok).toBe(/^\s*(?:[0-9]+|(?:W\/)?"[0-9]+")\s*$/.test(text))
      }),
    )
  })
})

test.each<readonly [prefer: string | undefined, seconds: number]>([
  [undefined, 0],
  ['', 0],
  ['wait=1', 1],
  ['wait=30', 30],
  ['wait=60', 60],
  ['wait=61', 60],
  ['wait=999999999', 60],
  ['wait=0', 0],
  ['wait=007', 7],
  ['WAIT=5', 5],
  ['Wait=5', 5],
  [' wait = 5 ', 5],
  ['wait="5"', 5],
  ['wait=5; why=x', 5],
  ['respond-async, wait=5', 5],
  ['wait=5, respond-async', 5],
  ['wait=5, wait=9', 5],
  ['wait, wait=9', 0],
  ['wait=x, wait=9', 0],
  ['foo="a, wait=9", wait=5', 5],
  ['foo="a\\", wait=9", wait=5', 5],
  ['foo="wait=9"', 0],
  ['foo; wait=9', 0],
  ['await=9', 0],
  ['waiting=9', 0],
  ['x-wait=9', 0],
  ['wait', 0],
  ['wait=', 0],
  ['wait=""', 0],
  ['wait=-5', 0],
  ['wait=+5', 0],
  ['wait=1.5', 0],
  ['wait=5s', 0],
  ['wait=5 6', 0],
  ['wait=1e1', 0],
  ['wait=0x10', 0],
  ['wait=Infinity', 0],
  ['wait=NaN', 0],
  ['wait=10000000000', 0],
  ['wait="5', 0],
  [',,wait=5,,', 5],
])('Prefer: %s waits %d seconds', (prefer, seconds) => {
  expect(parseWaitSeconds(prefer, 60)).toBe(seconds)
})

test('a malicious header is parsed quickly', () => {
  const started = performance.now()
  for (const part of ['"', '"\\', 'wait ', ' ', ',', '",', '\\"'])
    parseWaitSeconds(part.repeat(32_768 / part.length), 60)
  expect(performance.now() - started).toBeLessThan(5_000)
})
