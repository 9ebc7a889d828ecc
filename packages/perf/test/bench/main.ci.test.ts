import { fileURLToPath } from 'node:url'
import { shouldSkip } from '@pool/test-kit/optional-deps.ts'
import { hasProc } from '@pool/test-kit/processes.ts'
import { isProof } from '@pool/test-kit/proof-size.ts'
import { describe, expect, it } from 'vitest'
import { Environment } from '../../src/bench/environment/environment.ts'
import { missingEtcd } from '../../src/bench/sections/etcd.ts'
import { runCommand } from '../shared/run-command.ts'

const main = fileURLToPath(new URL('../../src/bench/main.ts', import.meta.url))
const root = fileURLToPath(new URL('../../../..', import.meta.url))
const bench = (args: readonly string[], interruptAt?: RegExp) => runCommand(main, args, interruptAt)

/** The smallest load that produces figures. */
const SHORT = ['--seconds=0.05', '--warm-up=0.05', '--rounds=1', '--rows=2000', '--slots=16', '--json']
/** At full size every section runs, otherwise one of each kind: starting the processes takes most of the time. */
const isFull = isProof

const spread = { median: expect.any(Number), min: expect.any(Number), max: expect.any(Number) }
/** A busy machine may complete no operation in this short time. The ratio of rates is then null. */
const figure = expect.toSatisfy(value => value === null || typeof value === 'number', 'a figure or null')
const rates = { median: figure, min: figure, max: figure }
const ratio = { perSecond: rates, p50: spread, p99: spread }
const target = (name: string, expectedRatio: object | null, perOperation: object = {}) => ({
  name,
  perSecond: spread,
  p50Ms: spread,
  p99Ms: spread,
  operations: expect.any(Number),
  perOperation,
  ratio: expectedRatio,
})

const costRatio = hasProc ? rates : null
const positive = expect.toSatisfy(value => value > 0, 'a positive number')

const apiTargets = [target('API', null), target('SQL alone', ratio), target('Hono floor', ratio)]
const leaseTargets = (perOperation: object) => [
  target('witness', null, perOperation),
  target('memory', ratio, perOperation),
  target('KV only', ratio, perOperation),
  target('Hono floor', ratio),
]
const leaseLoads = (onOneSlot: object) =>
  [1, 16].flatMap(slots =>
    [1, 16].map(users => ({ slots, users, targets: leaseTargets(slots === 1 ? onOneSlot : {}) })),
  )

const expected: Record<string, object> = {
  reserve: {
    loads: [1, 16, 64].map(users => ({ users, targets: apiTargets })),
    goals: [
      { bound: 'at least', goal: 0.7 },
      { bound: 'at most', goal: 5 },
      { bound: 'at most', goal: 5, measured: costRatio },
    ],
    costs: [1, 16, 64].flatMap(users => [
      { users, name: 'API', toFloor: costRatio },
      { users, name: 'Hono floor', toFloor: null },
    ]),
    // Each reserve writes, alone or in a batch.
    counts: [1, 16, 64].map(users => ({ users, perRequest: { statements: positive, walFlushes: positive } })),
  },
  'not-found': {
    goals: [{ goal: 1.8 }],
    counts: [1, 16, 64].map(users => ({ users, perRequest: { statements: expect.any(Number) } })),
  },
  check: { goals: [{ goal: 0.8 }, { goal: 5 }, { goal: 2.4 }] },
  commit: { answered202: expect.any(Number), loads: [1, 16, 64].map(users => ({ users })) },
  release: { counts: [1, 16, 64].map(users => ({ users, perRequest: { statements: positive } })) },
  list: {
    rows: 2_000,
    rounds: 1,
    firstByteMs: spread,
    totalMs: spread,
    statements: positive,
    costs: [{ name: 'API' }, { name: 'Hono floor' }],
    goals: [{ goal: 80 }],
  },
  search: {
    rows: 2_000,
    searches: expect.arrayContaining([
      expect.objectContaining({ name: 'FQDN', users: 1 }),
      expect.objectContaining({ users: 8 }),
    ]),
  },
  indexes: {
    loads: ['reserve', 'commit'].map(name => ({ name, ratios: [1, 16, 64].map(users => ({ users })) })),
    sizes: expect.arrayContaining([{ name: 'pool_allocations_address_idx', bytes: expect.any(Number) }]),
  },
  samples: { addMs: spread, countMs: spread, week: { replicaRows: 3 * 60_480, poolRows: 3 * 10_080 } },
  'clone-start': { starts: [{ start: 'first' }, { start: 'later' }], goals: [{ goal: 5 }, { goal: 5 }] },
  start: {
    wholeMs: spread,
    firstMs: expect.any(Number),
    processes: [
      { name: 'API' },
      { name: 'API, without compile cache' },
      { name: 'API, bundle' },
      { name: 'bare Node' },
    ],
    memory: [1, 2, 1, expect.any(Number), 1].map(processes => ({ processes })),
  },
  'lease-get': { loads: leaseLoads({}), goals: [{ goal: 1.7 }, { goal: 1.7 }, { goal: 1.5 }, { goal: 1.5 }] },
  'lease-put': {
    loads: leaseLoads({ granted: spread, duplicates: spread }),
    oneSlot: [1, 16].flatMap(users =>
      ['witness', 'memory', 'KV only'].map(name => ({ users, target: name, validGrantsPerSecond: spread })),
    ),
  },
  'lease-acquire': {
    loads: ['first', 'read-first', 'again', 'read-again', 'put'].map(load => ({
      load,
      ratio: { perSecond: figure, p99: spread },
    })),
    goals: [{ goal: 1 }, { goal: 1 }, { goal: 1 }, { goal: 1 }, { goal: 1.5 }],
  },
  'lease-wait': {
    loads: [1, 100, 2_000].map(waiters => ({
      waiters,
      sides: [{ name: 'witness', medianMs: spread, lastMs: spread }],
      ratio: null,
    })),
    goals: [],
  },
  'lease-cost': { costs: [1, 100, 160].map(slots => ({ slots, dollars: expect.any(Number) })), goals: [{ goal: 0.5 }] },
}

if (!shouldSkip(missingEtcd)) {
  const names = [
    'GET of 1 slot',
    'GET of 16 slots',
    'renewals of 1 writer',
    '16 writers on 1 slot',
    '16 writers on 16 slots',
  ]
  expected['lease-postgres'] = {
    loads: names.map(name => ({ name, targets: [{ name: 'witness' }, { name: 'etcd', ratio }] })),
    goals: names.flatMap(() => [
      { goal: 1, figure: 'ops/s' },
      { goal: 1, figure: 'p99' },
    ]),
  }
}

describe('the command', () => {
  it('measures its sections, prints JSON, and leaves nothing behind', async () => {
    const names = isFull ? Object.keys(expected) : ['reserve', 'list', 'lease-put']
    const { code, stdout, stderr, left } = await bench([...names, ...SHORT])
    expect(code, stderr).toBe(0)
    const { machine, options, valid, sections } = JSON.parse(stdout)
    expect(machine).toMatchObject({
      node: process.version,
      postgres: expect.stringMatching(/^\d+/),
      workerd: expect.stringMatching(/^\d+\.\d+/),
    })
    expect(options).toMatchObject({ seconds: 0.05, rounds: 1, rows: 2_000 })
    expect(valid).toBe(true)
    expect(sections).toMatchObject(names.map(name => ({ name, valid: true, errors: [], ...expected[name] })))
    const put = sections.find(({ name }: { name: string }) => name === 'lease-put')
    expect(put.oneSlot[3]).toMatchObject({ target: 'witness', duplicatePercent: { max: 0 } })
    expect(left).toEqual([])
  })

  it('compares with another checkout', async () => {
    const names = isFull
      ? ['reserve', 'not-found', 'check', 'commit', 'release', 'lease-get', 'lease-put']
      : ['reserve']
    const { code, stdout, stderr, left } = await bench([...names, ...SHORT, '--against', root])
    expect(code, stderr).toBe(0)
    const { sections } = JSON.parse(stdout)
    const interval = { mean: figure, low: figure, high: figure }
    expect(sections).toMatchObject(
      names.map(name => ({
        name,
        valid: true,
        errors: [],
        loads: (name.startsWith('lease') ? [1, 16] : [16, 64]).map(users => ({
          users,
          perSecond: interval,
          cpu: hasProc ? interval : null,
        })),
      })),
    )
    expect(left).toEqual([])
  })

  it('compares with another server', async () => {
    await using stack = new AsyncDisposableStack()
    const environment = await Environment.open(stack, true)
    const { port } = await environment.startApi(await environment.createDatabase())
    const against = ['--against', `http://127.0.0.1:${port}`]
    const two = await bench(['check', ...SHORT, ...against, '--processes=2'])
    expect(two.code, two.stderr).toBe(0)
    const { code, stdout, stderr, left } = await bench([...SHORT, ...against])
    expect(code, stderr).toBe(0)
    expect(JSON.parse(stdout).sections).toMatchObject(
      ['reserve', 'check'].map(name => ({
        name,
        valid: true,
        errors: [],
        loads: [1, 16, 64].map(users => ({ users, perSecond: { mean: figure } })),
        costs: [1, 16, 64].flatMap(users => (hasProc ? [{ users, name: 'this' }, { name: 'Hono floor' }] : [])),
      })),
    )
    expect(left).toEqual([])
  })

  const moments: readonly (readonly [string, RegExp])[] = [
    ['reserve', /starting Postgres/],
    ['lease-put', /warming up/],
    ...(isFull ? ([['start', /pnpm start, the first/]] as const) : []),
  ]
  it.each(moments)('stops everything that it started on Ctrl-C: %s at "%s"', async (section, moment) => {
    const { code, stderr, left } = await bench([section], moment)
    expect(code).toBe(130)
    expect(stderr).not.toContain('Error')
    expect(left).toEqual([])
  })

  it.each([
    [['leases'], /^bench: unknown section "leases".*\n$/],
    [['--against', '/nowhere'], /^bench: --against \/nowhere: apps\/allocation-api\/src\/main\.ts does not exist.*\n$/],
  ])('rejects invalid arguments in one line: %j', async (args, line) => {
    const { code, stdout, stderr } = await bench(args)
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toMatch(line)
  })
})
