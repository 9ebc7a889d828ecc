import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { AllocationClient } from '../src/allocation/index.ts'
import { ELECTOR_OPTIONS } from '../src/leases/elector.ts'
import { LeaseClient, LeaseElector, PreferenceElector, RenewalBatch, withLease } from '../src/leases/index.ts'

const CLIENT = { baseUrl: 'http://service.test', fetch: () => Promise.reject(new Error('a request was sent')) }
const allocations = new AllocationClient(CLIENT as never)
const leases = new LeaseClient(CLIENT as never)
const callbacks = { onStartedLeading: () => {}, onStoppedLeading: () => {} }
const ELECTOR = { leases, slot: 'a', identity: 'a', callbacks }
const { slot, callbacks: _, ...CANDIDATE } = ELECTOR
const NAME = { domain: 'pool.test', subdomain: 'acme' }
const WRITE = { holder: 'a', generation: 1, ttlMs: 5_000 }

/** How options are given, those that are enough, and some that exist. */
type Target = readonly [use: (options: never) => unknown, enough: object, known: readonly string[]]

const CALL = ['signal', 'deadlineMs', 'attemptTimeoutMs']
const ELECTION = Object.keys(ELECTOR_OPTIONS)
const targets: Readonly<Record<string, Target>> = {
  AllocationClient: [o => new AllocationClient(o), CLIENT, ['token', 'headers', 'deadlineMs', 'retry', 'hooks']],
  LeaseClient: [o => new LeaseClient(o), CLIENT, ['token', 'headers', 'attemptTimeoutMs', 'timing']],
  retry: [retry => new LeaseClient({ ...CLIENT, retry } as never), {}, ['maxAttempts', 'minBackoffMs', 'maxBackoffMs']],
  hooks: [hooks => new LeaseClient({ ...CLIENT, hooks } as never), {}, ['onAttempt', 'onCallEnd', 'traceCall']],
  'a read': [o => allocations.getAllocation(NAME, o), {}, CALL],
  'a write': [
    o => allocations.renewReservation({ ...NAME, reservationToken: 'a' } as never, o),
    {},
    [...CALL, 'idempotencyKey'],
  ],
  'a call without parameters': [o => allocations.listReservedLabels(o), {}, CALL],
  'a stream': [o => allocations.changes(o).next(), {}, CALL],
  reserveAndCommit: [
    o => allocations.reserveAndCommit(NAME as never, o),
    {},
    [...CALL, 'idempotencyKey', 'onReserved'],
  ],
  waitUntilPublished: [o => allocations.waitUntilPublished(NAME, o), {}, [...CALL, 'onPending']],
  'the parameters of waitUntilPublished': [o => allocations.waitUntilPublished(o), NAME, []],
  'the parameters of followLogs': [o => allocations.followLogs(o).next(), { id: 'a' }, ['lastEventId']],
  'a read of a lease': [o => leases.read('a', o), {}, CALL],
  acquire: [o => leases.acquire('a', o), WRITE, ['value']],
  release: [o => leases.release('a', o), WRITE, ['generation']],
  LeaseElector: [o => new LeaseElector(o), ELECTOR, ELECTION],
  callbacks: [o => new LeaseElector({ ...ELECTOR, callbacks: o }), callbacks, ['onNewLeader', 'onStartedLeading']],
  PreferenceElector: [o => new PreferenceElector(o), { ...ELECTOR, isPreferred: true }, [...ELECTION, 'presenceSlot']],
  RenewalBatch: [o => new RenewalBatch(o), { leases, identity: 'a' }, ['windowMs']],
  withLease: [o => withLease(slot, async () => {}, o), CANDIDATE, ['signal', 'value', 'retryPeriod']],
}

const fail = async (use: Target[0], options: unknown): Promise<unknown> => {
  try {
    await use(options as never)
  } catch (error) {
    return error
  }
  return undefined
}

const misspell = (name: string): readonly string[] => [
  `${name}s`,
  name.slice(0, -1),
  name[0]?.toUpperCase() + name.slice(1),
  name.replaceAll(/[A-Z]/g, letter => `_${letter.toLowerCase()}`),
  `${name}Ms`,
]

test.for(Object.entries(targets))('a misspelt option of %s is an error, and nothing is sent', async ([, target]) => {
  const [use, enough, known] = target
  for (const name of known) {
    for (const wrong of misspell(name)) {
      if (known.includes(wrong) || wrong in enough) continue
      const error = await fail(use, { ...enough, [wrong]: 'hunter2secret' })
      expect(error, wrong).toBeInstanceOf(TypeError)
      expect(String(error)).toMatch(new RegExp(`(?:has no option|there is no parameter) ${wrong}`))
      expect(String(error)).not.toContain('hunter2secret')
    }
  }
})

test.for(Object.entries(targets).filter(([name]) => !name.startsWith('the parameters')))(
  'what is no object of options of %s is an error that says so',
  async ([, [use]]) => {
    for (const value of [null, 'text', 5, true, [], new AbortController().signal]) {
      const error = await fail(use, value)
      expect(error, String(value)).toBeInstanceOf(TypeError)
      expect(String(error)).toMatch(/needs an object with its options|must be an object/)
    }
  },
)

const wrongKinds: readonly (readonly [string, object, RegExp])[] = [
  ['AllocationClient', { token: 5 }, /token must be text, or a function/],
  ['AllocationClient', { deadlineMs: '3s' }, /deadlineMs must be a number of milliseconds/],
  ['AllocationClient', { attemptTimeoutMs: Number.NaN }, /attemptTimeoutMs must be a number of milliseconds/],
  ['AllocationClient', { retry: 3 }, /retry must be an object/],
  ['AllocationClient', { fetch: 'fetch' }, /fetch must be a function/],
  ['retry', { maxAttempts: 0 }, /maxAttempts must be a whole number of at least 1/],
  ['retry', { minBackoffMs: -1 }, /minBackoffMs must be a number of milliseconds/],
  ['hooks', { onCallEnd: 'log' }, /onCallEnd must be a function/],
  ['a read', { signal: {} }, /signal must be an AbortSignal/],
  ['LeaseElector', { leases: {} }, /leases must be a LeaseClient/],
  ['LeaseElector', { leases: undefined }, /leases must be a LeaseClient/],
  ['LeaseElector', { callbacks: undefined }, /callbacks needs an object/],
  ['LeaseElector', { releaseOnCancel: 'false' }, /releaseOnCancel must be true or false/],
  ['LeaseElector', { onError: 'warn' }, /onError must be a function/],
  ['callbacks', { onNewLeader: true }, /onNewLeader must be a function/],
  ['PreferenceElector', { isPreferred: 'false' }, /isPreferred must be true or false/],
  ['RenewalBatch', { leases: undefined }, /leases must be a LeaseClient/],
  ['RenewalBatch', { identity: 5 }, /identity must be from createIdentity/],
  ['RenewalBatch', { windowMs: '10' }, /windowMs must be a number of milliseconds/],
]
test.for(wrongKinds)('a value of another kind is an error: %s, %o', async ([name, options, message]) => {
  const [use, enough] = targets[name] as Target
  const error = await fail(use, { ...enough, ...options })
  expect(error).toBeInstanceOf(TypeError)
  expect(String(error)).toMatch(message)
})

test.for([
  [
    'AllocationClient',
    AllocationClient,
    ['/api', '/api/', '/api/v1', '//api', '/a/api/v1/pool', '/%61pi', '/a%2fapi', '/healthz'],
  ],
  [
    'LeaseClient',
    LeaseClient,
    ['/lease', '/lease/', '/lease/two', '/a/lease', '//lease', '/%6Cease', '/a%2Flease', '/history', '/leases'],
  ],
] as const)('%s: a base URL has no path that the client adds itself', ([, Client, paths]) => {
  for (const path of paths) {
    const create = () => new Client({ ...CLIENT, baseUrl: `${CLIENT.baseUrl}${path}` } as never)
    expect(create, path).toThrow(/^baseUrl must have no \/\w+ in its path: the client adds it/)
  }
  for (const path of ['', '/', '/prefix', '/my-lease/apis', '/%zz'])
    expect(() => new Client({ ...CLIENT, baseUrl: `${CLIENT.baseUrl}${path}` } as never), path).not.toThrow()
})

test('a 404 of a path is not the 404 of a name', async () => {
  const read = (detail: string) => {
    const fetch = async () => Response.json({ error: 'not-found', detail }, { status: 404 })
    return new AllocationClient({ ...CLIENT, fetch }).getAllocation(NAME).catch((error: Error) => error.name)
  }
  expect(await read('No such route: a path begins with /api/v1.')).toBe('UnexpectedResponseError')
  expect(await read('No such allocation: it was released.')).toBe('ProblemError')
})

test('docs/clients/elector.md lists every option of an elector', () => {
  const page = readFileSync(new URL('../../../docs/clients/elector.md', import.meta.url), 'utf8')
  for (const name of ELECTION) expect(page).toMatch(new RegExp(`^\\|[^|]*\`${name}\``, 'm'))
})

test('a read takes no Idempotency-Key', async () => {
  const error = await fail(o => allocations.getAllocation(NAME, o), { idempotencyKey: 'a' })
  expect(String(error)).toMatch(/getAllocation has no option idempotencyKey/)
})
