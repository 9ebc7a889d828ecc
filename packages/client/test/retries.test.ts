import { type Operation, type OperationId, operations } from '@pool/contract'
import { describe, expect, test } from 'vitest'
import { AllocationClient } from '../src/index.ts'
import { FakeTiming } from './support/fake-timing.ts'

// What each operation does after a failure, as docs/clients/client.md lists it.

const all = Object.values<Operation & { readonly id: OperationId }>(operations)

const groups: Readonly<Record<string, readonly OperationId[]>> = {
  'under a key': [
    'reserveName',
    'commitName',
    'updateName',
    'releaseName',
    'createDeployment',
    'createDomainChallenge',
    'checkDomain',
  ],
  'only if it had no effect': [
    'liftCoolOff',
    'startSession',
    'releaseWitnessLease',
    'resumeZone',
    'liftBucketClaim',
    'unlockDeployment',
    'applyDeployment',
    'planDeployment',
    'destroyDeployment',
    'removeDeployment',
  ],
  never: ['importInstallation'],
  always: [
    'renewReservation',
    'convergeZone',
    'republishZone',
    'adoptOrphans',
    'removeOrphans',
    'validateObjectStorageKeys',
    'validateToken',
    'endSession',
    ...all.filter(({ method }) => method === 'get').map(({ id }) => id),
  ],
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

test('every operation is in one group', () => {
  expect(Object.values(groups).flat().sort()).toEqual(all.map(({ id }) => id).sort())
})

const cases = Object.entries(groups).flatMap(([group, ids]) =>
  ids.flatMap(id => (Object.keys(failures) as Failure[]).map(failure => [id, failure, group] as const)),
)

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
    const { pathParams }: Operation = operations[id]
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
