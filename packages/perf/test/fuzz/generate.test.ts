import { allocationApiDocument } from '@pool/contract/openapi/allocation-api'
import { leaseWitnessDocument } from '@pool/contract/openapi/lease-witness'
import { HttpResponse } from '@pool/test-kit/http1.ts'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createApiWorkload, ENDLESS_OPERATIONS } from '../../src/fuzz/generate/api-workload.ts'
import { type Choices, createChoices, createSequence } from '../../src/fuzz/generate/choices.ts'
import { schemaArbitrary } from '../../src/fuzz/generate/from-schema.ts'
import { entityTags, preference } from '../../src/fuzz/generate/headers.ts'
import { encodeBody, mutateValue } from '../../src/fuzz/generate/json-text.ts'
import { mutatePath } from '../../src/fuzz/generate/paths.ts'
import { mutateQuery } from '../../src/fuzz/generate/queries.ts'
import { createMalformed, malformationCount } from '../../src/fuzz/generate/raw.ts'
import { createWitnessWorkload } from '../../src/fuzz/generate/witness-workload.ts'
import { readDocument } from '../../src/fuzz/oracle/document.ts'
import { encodeFuzzRequest, type FuzzRequest, requestText } from '../../src/fuzz/request.ts'

const api = readDocument(allocationApiDocument(), { problem: 'Problem' })
const witness = readDocument(leaseWitnessDocument(), { problem: 'LeaseProblem', greedy: ['slot'] })
const createApi = () => createApiWorkload({ document: api, number: 0, mark: 'MARK', token: 'operator' })
const createWitness = () => createWitnessWorkload({ document: witness, number: 0, token: 'region' })

/** One generator per request, for `count` requests. */
const drawAll = (seed: number, count: number): Choices[] => {
  const [sequence = []] = fc.sample(fc.array(createSequence(1), { minLength: count, maxLength: count }), {
    seed,
    numRuns: 1,
  })
  return sequence.flat().map(createChoices)
}
const drawOne = (seed: number): Choices => drawAll(seed, 1)[0] as Choices

const generateRequests = (create: typeof createApi, seed: number, count: number): FuzzRequest[] => {
  const workload = create()
  return drawAll(seed, count).map(choices => workload.next(choices).request)
}

test('choices are deterministic for a seed and differ between seeds', () => {
  const draw = (seed: number) => {
    const choices = drawOne(seed)
    return choices.times(20, () => choices.below(1_000))
  }
  expect(draw(1)).toEqual(draw(1))
  expect(draw(1)).not.toEqual(draw(2))
  expect(new Set(draw(1)).size).toBeGreaterThan(10)
})

test('each request of a sequence has different choices', () => {
  const first = drawAll(3, 50).map(choices => choices.times(4, () => choices.below(1_000)).join())
  expect(new Set(first).size).toBe(50)
})

test.each([
  ['api', createApi, api],
  ['witness', createWitness, witness],
] as const)('%s: the same seed generates the same bytes, every operation and every mutation', (_, create, document) => {
  const requests = generateRequests(create, 5, 6_000)
  const again = generateRequests(create, 5, 500)
  again.forEach((request, index) => {
    expect(encodeFuzzRequest(request).equals(encodeFuzzRequest(requests[index] as FuzzRequest))).toBe(true)
  })
  expect([...new Set(requests.map(({ row }) => row))].sort()).toEqual(
    [
      ...document.operations.map(({ id }) => id).filter(id => !ENDLESS_OPERATIONS.includes(id)),
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

test('valid requests have valid heads: one request line, no control characters, correct framing', () => {
  for (const create of [createApi, createWitness]) {
    for (const request of generateRequests(create, 7, 4_000)) {
      if (request.raw) continue
      const bytes = encodeFuzzRequest(request).toString('latin1')
      const head = bytes.slice(0, bytes.indexOf('\r\n\r\n'))
      expect(
        head.split('\r\n').filter(line => /[^\t\x20-\x7e\x80-\xff]/.test(line)),
        head,
      ).toEqual([])
      expect(head.split('\r\n')[0]).toMatch(/^[A-Za-z-]+ [^ ]+ HTTP\/1\.1$/)
    }
  }
})

describe('mutations', () => {
  const many = (make: (choices: Choices) => string, count = 3_000) => drawAll(11, count).map(make)
  test('paths have many encodings, and none ends the request line', () => {
    const all = new Set(many(choices => mutatePath('/lease/ns/name', choices)))
    expect(all.size).toBeGreaterThan(60)
    expect([...all].filter(path => /[\s\0]/.test(path) || path === '')).toEqual([])
    for (const piece of ['//', '%2F', '%00', '\u00ff', '%ed%a0%80', '/LEASE/'])
      expect(
        [...all].some(path => path.includes(piece)),
        piece,
      ).toBe(true)
  })
  test('queries are repeated, incomplete and malformed', () => {
    const all = new Set(many(choices => mutateQuery('limit', 'a b', choices)))
    for (const query of ['limit=a%20b&limit=a%20b', 'limit', 'limit=%ff%fe', 'limit[]=a%20b'])
      expect([...all]).toContain(query)
  })
  test('entity tags are bare, strong, weak, listed and malformed; waits are short', () => {
    const tags = new Set(many(choices => entityTags(7, choices)))
    for (const tag of ['7', '"7"', 'W/"7"', '*', '"7', '"7", "8"', '']) expect([...tags]).toContain(tag)
    const waits = many(preference).filter(text => /^wait=\d\d+$/.test(text))
    expect(waits.filter(text => Number(text.slice(5)) > 1 && text !== 'wait=99999999999')).toEqual([])
  })
  test('each malformed request is derived from the valid one', () => {
    const valid = { method: 'PUT', target: '/lease/a', headers: ['If-Match: 0'], body: '{"holder":"a"}' }
    const all = Array.from({ length: malformationCount }, (_, which) =>
      createMalformed(valid, drawOne(13), which).toString('latin1'),
    )
    expect(new Set(all).size).toBe(malformationCount)
    expect(all.filter(text => text.includes('If-Match: 0')).length).toBeGreaterThan(40)
  })
})

describe('bodies', () => {
  const body = { subdomain: 'acme', reservationToken: 't' }
  const encodeAll = (mutation: 'value' | 'text', count: number) =>
    drawAll(17, count).map(choices => encodeBody(body, mutation, choices))
  test('without a mutation encode the value', () => {
    expect(JSON.parse(encodeBody(body, 'none', drawOne(1)).toString())).toEqual(body)
  })
  test('with a mutated value are JSON', () => {
    const all = encodeAll('value', 2_000).map(String)
    expect(new Set(all).size).toBeGreaterThan(100)
    for (const text of all) expect(() => JSON.parse(text)).not.toThrow()
    expect(all.some(text => text.includes('\\u0000'))).toBe(true)
    expect(all.some(text => text.includes('\\ud800'))).toBe(true)
  })
  test('never change the prototype of the value', () => {
    for (const choices of drawAll(19, 2_000)) mutateValue(body, choices)
    expect(body).toEqual({ subdomain: 'acme', reservationToken: 't' })
    expect(Object.prototype).not.toHaveProperty('polluted')
  })
  test('with a mutated text are truncated, repeated, nested, too long or invalid UTF-8', () => {
    const all = encodeAll('text', 400)
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
  [{ type: 'array', items: { const: 1 } }, (value: unknown) => Array.isArray(value) && value.every(item => item === 1)],
  [{ anyOf: [{ const: 1 }, { const: 2 }] }, (value: unknown) => value === 1 || value === 2],
  [{ $ref: '#/x' }, (value: unknown) => value === 'named'],
  [
    { type: 'object', required: ['a'], properties: { a: { const: 1 }, b: { const: 2 } } },
    (value: unknown) => Object(value).a === 1,
  ],
])('values for %j match the schema or are at its bounds', (schema, fits) => {
  const values = fc.sample(
    schemaArbitrary(schema, () => ({ const: 'named' })),
    { seed: 1, numRuns: 100 },
  )
  for (const value of values) expect(fits(value), String(value)).toBe(true)
})

test('later requests use values of a response, also in a clone of the workload', () => {
  const workload = createApi()
  const respond = (status: number, body: object) =>
    new HttpResponse(status, '', Buffer.from(JSON.stringify(body)), false)
  const token = 'a3bb189e-8bf9-4c1a-9f3e-000000000001'
  for (let name = 0; name < 8; name += 1)
    workload.next(drawOne(name)).learn(respond(201, { subdomain: `t0-${name}`, reservationToken: token }))
  for (const client of [workload, workload.clone()]) {
    const bodies = drawAll(23, 400).map(choices => client.next(choices).request.body?.toString() ?? '')
    expect(bodies.filter(text => text.includes(token)).length).toBeGreaterThan(10)
  }
})

test('a request is printed as a shell command', () => {
  const request = { row: 'r', method: 'GET', target: "/%ff'\u00e9", headers: ['If-Match: \t7'] }
  expect(requestText(request)).toBe(
    "printf 'GET /%%ff\\047\\351 HTTP/1.1\\r\\nHost: localhost\\r\\nIf-Match: \\0117\\r\\n\\r\\n'",
  )
})
