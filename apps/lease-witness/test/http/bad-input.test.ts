import { describe, expect, test } from 'vitest'
import { expectLease, expectProblem, parseProblem } from './support/bodies.ts'
import { freshSlot, leasePath, type SendOptions, send } from './support/client.ts'
import { getHost, type RequestBody } from './support/host.ts'
import { held, seed } from './support/slots.ts'

const KIB = 1_024
const PRECONDITION = { 'If-Match': '4' }
const HOLDER = { 'X-Holder': 'region-a' }
const BOTH = { ...PRECONDITION, ...HOLDER }

/** The expected status and error code. */
type Expected = readonly [status: number, code: string]

const INVALID_SLOT: Expected = [400, 'invalid-slot']
const INVALID_JSON: Expected = [400, 'invalid-json']
const INVALID_IF_MATCH: Expected = [400, 'invalid-if-match']
const INVALID_HOLDER: Expected = [400, 'invalid-holder']
const INVALID_TTL: Expected = [400, 'invalid-ttl']
const INVALID_OP: Expected = [400, 'invalid-op']
const INVALID_VALUE: Expected = [400, 'invalid-value']
const NOT_FOUND: Expected = [404, 'not-found']
const TOO_LARGE: Expected = [413, 'body-too-large']

const slots: readonly (readonly [rule: string, encoded: string, expected: Expected])[] = [
  ['a lone percent sign', '%', INVALID_SLOT],
  ['a byte that never occurs in UTF-8', '%FF', INVALID_SLOT],
  ['a slash, overlong in two bytes', 'a%C0%AFb', INVALID_SLOT],
  ['a high surrogate', '%ED%A0%80', INVALID_SLOT],
  ['507 bytes', 'x'.repeat(507), INVALID_SLOT],
  ['an empty segment', 'a//b', INVALID_SLOT],
  ['an empty segment in front', '/a', INVALID_SLOT],
  ['nothing', '', NOT_FOUND],
  ['a dot', '.', NOT_FOUND],
  ['two dots', '..', NOT_FOUND],
  ['two encoded dots', '%2E%2e', NOT_FOUND],
  ['encoded dots that leave the path', 'a/%2e%2e/%2e%2e/b', NOT_FOUND],
  ['backslashes and dots that leave the path', '..\\..\\b', NOT_FOUND],
]

type WriteRow = readonly [rule: string, options: SendOptions, expected: Expected]

const writes: readonly WriteRow[] = [
  ['no If-Match', { headers: HOLDER }, [400, 'missing-if-match']],
  ...(['*', 'x', '"4", "4"'] as const).map(
    (tag): WriteRow => [`If-Match: ${tag}`, { headers: { ...HOLDER, 'If-Match': tag } }, INVALID_IF_MATCH],
  ),
  ['If-Match in other digits', { headers: { ...HOLDER, 'If-Match': '٤' } }, INVALID_IF_MATCH],
  ['If-None-Match in addition', { headers: { ...BOTH, 'If-None-Match': '*' } }, [400, 'invalid-if-none-match']],
  ['If-None-Match with a tag', { headers: { ...HOLDER, 'If-None-Match': '"4"' } }, [400, 'invalid-if-none-match']],
  ['two errors: the precondition is reported first', { headers: { 'If-Match': 'x' }, body: '{' }, INVALID_IF_MATCH],

  ['a brace', { headers: BOTH, body: '{' }, INVALID_JSON],
  ['only a space', { headers: BOTH, body: ' ' }, INVALID_JSON],
  ['a form', { headers: BOTH, body: 'holder=region-a' }, INVALID_JSON],
  ['an array', { headers: BOTH, body: '[]' }, INVALID_JSON],
  ['a number', { headers: BOTH, body: '4' }, INVALID_JSON],
  ['null', { headers: BOTH, body: 'null' }, INVALID_JSON],
  ['invalid UTF-8', { headers: BOTH, body: new Uint8Array([0x7b, 0xff, 0x7d]) }, INVALID_JSON],
  ['a surrogate in UTF-8', { headers: BOTH, body: new Uint8Array([0x22, 0xed, 0xa0, 0x80, 0x22]) }, INVALID_JSON],
  ['NUL bytes', { headers: BOTH, body: new Uint8Array(16) }, INVALID_JSON],
  ['arrays, 32,768 deep', { headers: BOTH, body: '['.repeat(32_768) + ']'.repeat(32_768) }, INVALID_JSON],
  ['64 KiB and a byte', { headers: BOTH, body: ' '.repeat(64 * KIB + 1) }, TOO_LARGE],
  ['64 KiB and a byte, otherwise valid', { headers: BOTH, body: `{}${' '.repeat(64 * KIB - 1)}` }, TOO_LARGE],
  ['2 MiB', { headers: BOTH, body: ' '.repeat(2 * KIB * KIB) }, TOO_LARGE],
  [
    '2 MiB without a token',
    { headers: BOTH, body: ' '.repeat(2 * KIB * KIB), authorization: null },
    [401, 'unauthorized'],
  ],

  ...['""', '" region-a"', '"a\\nb"', '"ä"', '5', 'null', '{}'].map(
    (holder): WriteRow => [`holder ${holder}`, { headers: PRECONDITION, body: `{"holder":${holder}}` }, INVALID_HOLDER],
  ),
  ['a holder of 254 characters', { headers: PRECONDITION, body: `{"holder":"${'a'.repeat(254)}"}` }, INVALID_HOLDER],
  ['an invalid holder and a valid X-Holder', { headers: BOTH, body: '{"holder":5}' }, INVALID_HOLDER],
  ['no holder', { headers: PRECONDITION, body: '{}' }, INVALID_HOLDER],
  ['no holder and no body', { headers: PRECONDITION }, INVALID_HOLDER],
  ['a holder in __proto__', { headers: PRECONDITION, body: '{"__proto__":{"holder":"region-a"}}' }, INVALID_HOLDER],
  [
    'two holders, the last invalid',
    { headers: PRECONDITION, body: '{"holder":"region-a","holder":5}' },
    INVALID_HOLDER,
  ],
  ['X-Holder of 254 characters', { headers: { ...PRECONDITION, 'X-Holder': 'a'.repeat(254) } }, INVALID_HOLDER],
  ['X-Holder with a tab', { headers: { ...PRECONDITION, 'X-Holder': 'a\tb' } }, INVALID_HOLDER],
  ['X-Holder outside ASCII', { headers: { ...PRECONDITION, 'X-Holder': 'région' } }, INVALID_HOLDER],
  ['X-Holder empty', { headers: { ...PRECONDITION, 'X-Holder': '' } }, INVALID_HOLDER],
  ['two holders', { headers: BOTH, body: '{"holder":"region-b"}' }, [400, 'holder-mismatch']],

  ...['0', '0.999', '86400.5', '1e999', '"30"', 'null'].map(
    (ttl): WriteRow => [`ttlSeconds ${ttl}`, { headers: BOTH, body: `{"ttlSeconds":${ttl}}` }, INVALID_TTL],
  ),
  ['ttlSeconds of 400 digits', { headers: BOTH, body: `{"ttlSeconds":${'9'.repeat(400)}}` }, INVALID_TTL],
  ...['"release"', '"ACQUIRE"', '"acquire "', '""', '5', 'null', '["renew"]', '{}', '"__proto__"', '"toString"'].map(
    (op): WriteRow => [`op ${op}`, { headers: BOTH, body: `{"op":${op}}` }, INVALID_OP],
  ),

  ...(
    [
      ['of 1,025 bytes', `"${'a'.repeat(1_025)}"`],
      ['of 1,025 bytes in 513 characters', `"${'ä'.repeat(512)}a"`],
      ['of 1,025 bytes in 342 characters', `"${'€'.repeat(341)}aa"`],
      ['of 1,028 bytes in 257 characters', `"${'\u{1f600}'.repeat(257)}"`],
      ...['\\ud800', 'a\\udc00b', '\\udc00\\ud800'].map(
        text => [`with a lone surrogate ${text}`, `"${text}"`] as const,
      ),
      ...['0000', '0009', '000a', '000d', '001b', '001f', '007f', '0080', '0085', '009f'].map(
        code => [`with the control character U+${code}`, `"a\\u${code}b"`] as const,
      ),
      ...['5', 'null', 'true', '["a"]', '{"a":"b"}'].map(value => [value, value] as const),
    ] as const
  ).map(
    ([rule, value]): WriteRow => [
      `a value ${rule}`,
      { headers: BOTH, body: `{"op":"renew","value":${value}}` },
      INVALID_VALUE,
    ],
  ),
  ['an invalid op and value: the op is reported first', { headers: BOTH, body: '{"value":5,"op":5}' }, INVALID_OP],
]

const releases: readonly WriteRow[] = [
  ['no If-Match', { headers: HOLDER }, [400, 'missing-if-match']],
  ['only If-None-Match: *', { headers: { ...HOLDER, 'If-None-Match': '*' } }, [400, 'missing-if-match']],
  ['If-None-Match: * in addition', { headers: { ...BOTH, 'If-None-Match': '*' } }, [400, 'invalid-if-none-match']],
  ['If-Match: *', { headers: { ...HOLDER, 'If-Match': '*' } }, INVALID_IF_MATCH],
  ['If-Match: "4', { headers: { ...HOLDER, 'If-Match': '"4' } }, INVALID_IF_MATCH],
  ['no X-Holder', { headers: PRECONDITION }, [400, 'missing-x-holder']],
  ['X-Holder empty', { headers: { ...PRECONDITION, 'X-Holder': '' } }, [400, 'missing-x-holder']],
  ['the holder only in the body', { headers: PRECONDITION, body: '{"holder":"region-a"}' }, [400, 'missing-x-holder']],
  ['X-Holder of 254 characters', { headers: { ...PRECONDITION, 'X-Holder': 'a'.repeat(254) } }, INVALID_HOLDER],
  ['X-Holder outside ASCII', { headers: { ...PRECONDITION, 'X-Holder': 'é' } }, INVALID_HOLDER],
  ['64 KiB and a byte', { headers: BOTH, body: 'x'.repeat(64 * KIB + 1) }, TOO_LARGE],
]

const expectRejected = async (response: Awaited<ReturnType<typeof send>>, [status, code]: Expected): Promise<void> => {
  const { detail, requestId } = code === 'unauthorized' ? parseProblem(response) : expectProblem(response, status, code)
  expect([response.status, parseProblem(response).error]).toEqual([status, code])
  expect(requestId).toBeUndefined()
  if (code !== 'unauthorized') expect(detail).toMatch(/^\S.*\.$/)
}

/** Sends requests to a held slot, whose stored state must not change. */
const expectUnchanged = async (sendTo: (path: string) => Promise<void>): Promise<void> => {
  const slot = freshSlot()
  await seed(slot, held({ generation: 4 }))
  const before = await getHost().readStored(slot)
  await sendTo(leasePath(slot))
  expect(await getHost().readStored(slot)).toEqual(before)
}

describe('an invalid slot stores nothing', () => {
  test.each(slots)('%s', async (_, encoded, expected) => {
    const before = await getHost().countStored()
    await expectRejected(await send('GET', `/lease/${encoded}`), expected)
    await expectRejected(await send('PUT', `/lease/${encoded}`, { headers: { ...HOLDER, 'If-Match': '0' } }), expected)
    await expectRejected(await send('DELETE', `/lease/${encoded}`, { headers: BOTH }), expected)
    await expectRejected(await send('GET', `/history/${encoded}`), expected)
    expect(await getHost().countStored()).toBe(before)
  })
})

describe('a rejected PUT', () => {
  test.each(writes)('%s', async (_, options, expected) => {
    await expectUnchanged(async path => expectRejected(await send('PUT', path, options), expected))
  })
})

describe('a rejected DELETE', () => {
  test.each(releases)('%s', async (_, options, expected) => {
    await expectUnchanged(async path => expectRejected(await send('DELETE', path, options), expected))
  })
})

describe('an If-Match of digits that no generation has: 412', () => {
  test.each(['04', '4'.repeat(10_000)])('%.25s', async tag => {
    const slot = freshSlot()
    await seed(slot, held({ generation: 4 }))
    for (const method of ['PUT', 'DELETE']) {
      const response = await send(method, leasePath(slot), { headers: { ...HOLDER, 'If-Match': tag } })
      expectLease(response, 412, { generation: 4 })
      expect(response.headers.get('Lease-Conflict')).toBe('generation')
    }
  })
})

const RENEWAL = { slot: 'a', generation: 4 }

describe('a rejected POST to /leases/renew', () => {
  test.each<readonly [rule: string, body: string, expected: Expected]>([
    ['no JSON', '{', INVALID_JSON],
    ['no holder', JSON.stringify({ leases: [RENEWAL] }), INVALID_HOLDER],
    ['a slot twice', JSON.stringify({ holder: 'region-a', leases: [RENEWAL, RENEWAL] }), [400, 'invalid-leases']],
    ['64 KiB and a byte', ' '.repeat(64 * KIB + 1), TOO_LARGE],
  ])('%s', async (_, body, expected) => {
    await expectRejected(await send('POST', '/leases/renew', { body }), expected)
  })
})

describe('unusual but valid bodies', () => {
  test.each<readonly [rule: string, body: RequestBody]>([
    ['a byte order mark', new Uint8Array([0xef, 0xbb, 0xbf, 0x7b, 0x7d])],
    ['64 KiB, most of it white space', `{}${' '.repeat(64 * KIB - 2)}`],
    ['a duplicate key: the last one counts', '{"op":"nonsense","op":"renew"}'],
    ['__proto__ with invalid fields', '{"__proto__":{"op":"nonsense","ttlSeconds":0}}'],
    ['an unknown field, 10,000 deep', `{"x":${'['.repeat(10_000)}${']'.repeat(10_000)}}`],
    ['an unknown field with a lone surrogate', '{"x":"\\ud800"}'],
    ['in chunks', new Blob(['{"op":', '"renew"', '}']).stream()],
  ])('%s', async (_, body) => {
    const slot = freshSlot()
    await seed(slot, held({ generation: 4 }))
    expectLease(await send('PUT', leasePath(slot), { headers: BOTH, body }), 200, { holder: 'region-a', generation: 5 })
  })
})

describe('the query of a list', () => {
  test.each(
    [
      ['limit=0', 'invalid-limit'],
      ['limit=1001', 'invalid-limit'],
      ['limit=1.5', 'invalid-limit'],
      ['limit=', 'invalid-limit'],
      ['limit=1&limit=x&limit', ''],
      [`prefix=${'x'.repeat(507)}`, 'invalid-prefix'],
      ['cursor=', 'invalid-cursor'],
      ['cursor=a%20b', 'invalid-cursor'],
      [`cursor=${'x'.repeat(2_049)}`, 'invalid-cursor'],
      ['prefix=%FF', ''],
    ].map(([query = '', code = '']) => [query.slice(0, 40), query, code] as const),
  )('%s', async (_, query, code) => {
    const response = await send('GET', `/leases?${query}`)
    if (code === '') expect(response.status).toBe(200)
    else await expectRejected(response, [400, code])
  })

  test('an unknown cursor is not an internal error', async () => {
    for (const cursor of ['AAAA', 'nonsense', '%00', '"x"', 'e30=']) {
      expect((await send('GET', `/leases?cursor=${cursor}`)).status).not.toBe(500)
    }
  })
})
