import { readFileSync } from 'node:fs'
import { type AllocationOperation, type CallId, callOperations } from '@pool/contract'
import { describe, expect, test } from 'vitest'
import { AllocationClient } from '../src/index.ts'
import { FakeTiming } from './support/fake-timing.ts'

// What each operation does after a failure, as docs/clients/client.md lists it.

/** The group of each operation, whose flags are in the contract. */
const toGroup = ({ method, body, key, isRead, isRepeatable }: AllocationOperation) => {
  if (key) return 'under a key'
  if (body?.mediaType) return 'never'
  return method === 'get' || isRead || isRepeatable ? 'always' : 'only if it had no effect'
}

const failures = {
  'a lost response': () => Promise.reject(new TypeError('fetch failed')),
  429: () => Promise.resolve(Response.json({ error: 'too-many-requests' }, { status: 429 })),
  '503 without an effect': () => Promise.resolve(Response.json({ error: 'database-read-only' }, { status: 503 })),
  '503 with an unknown outcome': () =>
    Promise.resolve(Response.json({ error: 'database-unavailable' }, { status: 503 })),
  '502 of a proxy': () => Promise.resolve(new Response('<html>', { status: 502 })),
  500: () => Promise.resolve(Response.json({ error: 'internal-error' }, { status: 500 })),
  409: () => Promise.resolve(Response.json({ error: 'conflict' }, { status: 409 })),
} as const
type Failure = keyof typeof failures

/** Requests for a call that always fails in this way. */
const expected: Readonly<Record<string, Readonly<Record<Failure, number>>>> = {
  always: {
    'a lost response': 5,
    429: 5,
    '503 without an effect': 5,
    '503 with an unknown outcome': 5,
    '502 of a proxy': 5,
    500: 1,
    409: 1,
  },
  'under a key': {
    'a lost response': 5,
    429: 5,
    '503 without an effect': 5,
    '503 with an unknown outcome': 5,
    '502 of a proxy': 5,
    500: 1,
    409: 1,
  },
  'only if it had no effect': {
    'a lost response': 1,
    429: 5,
    '503 without an effect': 5,
    '503 with an unknown outcome': 1,
    '502 of a proxy': 1,
    500: 1,
    409: 1,
  },
  never: {
    'a lost response': 1,
    429: 1,
    '503 without an effect': 1,
    '503 with an unknown outcome': 1,
    '502 of a proxy': 1,
    500: 1,
    409: 1,
  },
}

const calls: readonly AllocationOperation[] = Object.values(callOperations)
const cases = calls.flatMap(operation =>
  (Object.keys(failures) as Failure[]).map(failure => [operation.id as CallId, failure, toGroup(operation)] as const),
)

test('a write that could do more when it is repeated is in no group that repeats it', () => {
  const repeated = calls.filter(one => one.method !== 'get' && toGroup(one) === 'always').map(({ id }) => id)
  expect(repeated.sort()).toEqual([
    'adoptOrphans',
    'convergeZone',
    'deleteRecord',
    'endSession',
    'putRecord',
    'removeOrphans',
    'renewReservation',
    'republishZone',
    'validateObjectStorageKeys',
    'validateToken',
  ])
})

/** Of the console, whose sessions and whose way to the witness clients do not need. */
const OF_THE_CONSOLE = ['startSession', 'releaseWitnessLease']

test.each([
  ['under a key', 'yes, under one'],
  ['only if it had no effect', 'only after a 429'],
  ['never', 'never'],
])('docs/clients/client.md lists the operations that are repeated %s', (group, text) => {
  const page = readFileSync(new URL('../../../docs/clients/client.md', import.meta.url), 'utf8')
  const row = page.split('\n').find(line => line.includes(`| ${text}`)) ?? ''
  const ids = calls
    .filter(one => toGroup(one) === group && !one.isRead && !OF_THE_CONSOLE.includes(one.id))
    .map(({ id }) => id)
  expect([...row.matchAll(/`(\w+)`/g)].map(([, id]) => id).sort()).toEqual(ids.sort())
})

describe('after a failure', () => {
  test.each(cases)('%s, %s: %s', async (id, failure, group) => {
    const timing = new FakeTiming()
    const keys: (string | null)[] = []
    const client = new AllocationClient({
      baseUrl: 'http://localhost',
      timing,
      fetch: (_, init) => {
        keys.push(new Headers(init?.headers).get('Idempotency-Key'))
        return failures[failure]()
      },
    })
    const { pathParams }: AllocationOperation = callOperations[id]
    const fields = Object.keys(pathParams?.shape ?? {})
    const params = Object.fromEntries(fields.map(name => [name, 'x']))
    const call = (client[id] as (params: object) => Promise<unknown>).call(client, params)
    await expect(timing.settle(call)).rejects.toMatchObject({ operation: id, attempts: expected[group]?.[failure] })
    expect(keys).toHaveLength(expected[group]?.[failure] ?? 0)
    // One key for all requests of a call, and only where the service has keys.
    expect(new Set(keys).size).toBe(1)
    expect(keys[0] !== null).toBe(group === 'under a key')
  })
})
