import { leaseWitnessDocument } from '@pool/openapi/lease-witness'
import { openApiDocument } from 'allocation-api/src/http/routes/docs.ts'
import { describe, expect, test } from 'vitest'
import { createApiLane } from '../../src/fuzz/generate/api-workload.ts'
import { sampleOf } from '../../src/fuzz/generate/from-schema.ts'
import { entityTags, preference } from '../../src/fuzz/generate/headers.ts'
import { bodyBytes, mutated } from '../../src/fuzz/generate/json-text.ts'
import { bentPath } from '../../src/fuzz/generate/paths.ts'
import { bentQuery } from '../../src/fuzz/generate/queries.ts'
import { randomOf } from '../../src/fuzz/generate/random.ts'
import { breakCount, brokenBytes } from '../../src/fuzz/generate/raw.ts'
import { createWitnessLane } from '../../src/fuzz/generate/witness-workload.ts'
import { readDocument } from '../../src/fuzz/oracle/document.ts'
import { bytesOf, shown } from '../../src/fuzz/wire/request.ts'

const api = readDocument(openApiDocument(), { problem: 'Problem' })
const witness = readDocument(leaseWitnessDocument(), { problem: 'LeaseProblem', greedy: ['slot'] })
const apiLane = (seed: string) =>
  createApiLane({ document: api, random: randomOf(seed), number: 0, mark: 'MARK', token: 'operator' })
const witnessLane = (seed: string) =>
  createWitnessLane({ document: witness, random: randomOf(seed), number: 0, token: 'region' })

test('a seed gives the same sequence, and another seed another', () => {
  const first = (seed: string) =>
    randomOf(seed).many(20, () => 0) &&
    Array.from(
      { length: 20 },
      (() => {
        const r = randomOf(seed)
        return () => r.below(1_000)
      })(),
    )
  expect(first('a')).toEqual(first('a'))
  expect(first('a')).not.toEqual(first('b'))
  expect(new Set(first('a')).size).toBeGreaterThan(10)
})

test.each([
  ['api', apiLane],
  ['witness', witnessLane],
] as const)('%s: the same seed makes the same bytes, every operation and every grammar', (_, laneOf) => {
  const [one, other] = [laneOf('s'), laneOf('s')]
  const rows = new Set<string>()
  for (let n = 0; n < 6_000; n += 1) {
    const { request } = one.next()
    rows.add(request.row)
    expect(bytesOf(request).equals(bytesOf(other.next().request))).toBe(true)
  }
  const document = laneOf === apiLane ? api : witness
  expect([...rows].sort()).toEqual(
    [
      ...document.operations.map(({ id }) => id),
      'bodies',
      'framing',
      'headers',
      'methods',
      'paths',
      'queries',
      'raw',
    ].sort(),
  )
})

test('sound requests have sound heads: one request line, no control characters, framing that is true', () => {
  for (const lane of [apiLane('heads'), witnessLane('heads')]) {
    for (let n = 0; n < 4_000; n += 1) {
      const { request } = lane.next()
      if (request.raw) continue
      const bytes = bytesOf(request).toString('latin1')
      const head = bytes.slice(0, bytes.indexOf('\r\n\r\n'))
      expect(
        head.split('\r\n').filter(line => /[^\t\x20-\x7e\x80-\xff]/.test(line)),
        head,
      ).toEqual([])
      expect(head.split('\r\n')[0]).toMatch(/^[A-Za-z-]+ [^ ]+ HTTP\/1\.1$/)
    }
  }
})

describe('grammars', () => {
  const random = randomOf('grammars')
  test('paths are spelled in many ways, none of which ends the request line', () => {
    const all = new Set(random.many(3_000, () => bentPath('/lease/ns/name', random)))
    expect(all.size).toBeGreaterThan(60)
    expect([...all].filter(path => /[\s\0]/.test(path) || path === '')).toEqual([])
    for (const piece of ['//', '%2F', '%00', '\u00ff', '%ed%a0%80', '/LEASE/'])
      expect(
        [...all].some(path => path.includes(piece)),
        piece,
      ).toBe(true)
  })
  test('queries repeat, lack, and break what they say', () => {
    const all = new Set(random.many(1_000, () => bentQuery('limit', 'a b', random)))
    for (const query of ['limit=a%20b&limit=a%20b', 'limit', 'limit=%ff%fe', 'limit[]=a%20b'])
      expect([...all]).toContain(query)
  })
  test('entity tags are bare, strong, weak, listed and malformed; waits are short', () => {
    const tags = new Set(random.many(1_000, () => entityTags(7, random)))
    for (const tag of ['7', '"7"', 'W/"7"', '*', '"7', '"7", "8"', '']) expect([...tags]).toContain(tag)
    const waits = random.many(1_000, () => preference(random)).filter(text => /^wait=\d\d+$/.test(text))
    expect(waits.filter(text => Number(text.slice(5)) > 1 && text !== 'wait=99999999999')).toEqual([])
  })
  test('each broken request is made of the whole one', () => {
    const whole = { method: 'PUT', target: '/lease/a', headers: ['If-Match: 0'], body: '{"holder":"a"}' }
    const all = Array.from({ length: breakCount }, (_, which) =>
      brokenBytes(whole, randomOf('raw'), which).toString('latin1'),
    )
    expect(new Set(all).size).toBe(breakCount)
    expect(all.filter(text => text.includes('If-Match: 0')).length).toBeGreaterThan(40)
  })
})

describe('bodies', () => {
  const body = { subdomain: 'acme', reservationToken: 't' }
  test('unbent it is the value', () => {
    expect(JSON.parse(bodyBytes(body, 'none', randomOf('n')).toString())).toEqual(body)
  })
  test('with one value changed it is JSON still, and other than before', () => {
    const random = randomOf('v')
    const all = random.many(2_000, () => bodyBytes(body, 'value', random).toString())
    expect(new Set(all).size).toBeGreaterThan(100)
    for (const text of all) expect(() => JSON.parse(text)).not.toThrow()
    expect(all.some(text => text.includes('\\u0000'))).toBe(true)
    expect(all.some(text => text.includes('\\ud800'))).toBe(true)
  })
  test('the prototype of the value is never touched by changing it', () => {
    const random = randomOf('p')
    random.many(2_000, () => mutated(body, random))
    expect(body).toEqual({ subdomain: 'acme', reservationToken: 't' })
    expect(Object.prototype).not.toHaveProperty('polluted')
  })
  test('bent texts are broken, doubled, nested, too long and not UTF-8', () => {
    const random = randomOf('t')
    const all = random.many(400, () => bodyBytes(body, 'text', random))
    expect(all.some(bytes => bytes.length > 64 * 1_024)).toBe(true)
    expect(all.some(bytes => bytes.toString().includes('"__proto__"'))).toBe(true)
    expect(all.some(bytes => bytes.includes(0xff))).toBe(true)
    expect(all.some(bytes => bytes.length === 0)).toBe(true)
  })
})

test.each([
  [{ const: 'x' }, (value: unknown) => value === 'x'],
  [{ type: 'boolean' }, (value: unknown) => typeof value === 'boolean'],
  [
    { type: 'integer', minimum: 1, maximum: 5 },
    (value: unknown) => typeof value === 'number' && value >= -5 && value <= 6,
  ],
  [{ type: 'array', items: { const: 1 } }, (value: unknown) => Array.isArray(value) && value.every(one => one === 1)],
  [{ anyOf: [{ const: 1 }, { const: 2 }] }, (value: unknown) => value === 1 || value === 2],
  [{ $ref: '#/x' }, (value: unknown) => value === 'named'],
  [
    { type: 'object', required: ['a'], properties: { a: { const: 1 }, b: { const: 2 } } },
    (value: unknown) => Object(value).a === 1,
  ],
])('a sample of %j is of its schema, or at its bounds', (schema, fits) => {
  const random = randomOf('schema')
  for (const value of random.many(100, () => sampleOf(schema, random, () => ({ const: 'named' }))))
    expect(fits(value), String(value)).toBe(true)
})

test('what a client was told goes into its next requests', () => {
  const lane = apiLane('deep')
  const answer = (status: number, body: object) => ({
    status,
    headers: new Map(),
    body: Buffer.from(JSON.stringify(body)),
    isLast: false,
  })
  const token = 'a3bb189e-8bf9-4c1a-9f3e-000000000001'
  for (let name = 0; name < 8; name += 1)
    lane.next().learn(answer(201, { subdomain: `t0-${name}`, reservationToken: token }))
  const bodies = Array.from({ length: 400 }, () => lane.next().request.body?.toString() ?? '')
  expect(bodies.filter(text => text.includes(token)).length).toBeGreaterThan(10)
})

test('a request is shown so that a shell sends it', () => {
  const request = { row: 'r', method: 'GET', target: "/%ff'\u00e9", headers: ['If-Match: \t7'] }
  expect(shown(request)).toBe("printf 'GET /%%ff\\047\\351 HTTP/1.1\\r\\nHost: fuzz\\r\\nIf-Match: \\0117\\r\\n\\r\\n'")
})
