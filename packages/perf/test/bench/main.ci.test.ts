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

/** The smallest load that produces figures. */
const SHORT = ['--seconds=0.05', '--warm-up=0.05', '--rounds=1', '--rows=2000', '--slots=16']
/** At full size every section runs, otherwise one of each kind: starting the processes takes most of the time. */
const isFull = isProof

/** The sections in what a run printed: their tables as cells, without the heads. */
const parseSections = (stdout: string): Readonly<Record<string, readonly (readonly string[])[]>> =>
  Object.fromEntries(
    stdout
      .split('\n## ')
      .slice(1)
      .map(text => {
        const lines = text.split('\n').filter(line => line.startsWith('| '))
        const cells = lines.map(line => line.split(/(?<!\\)\|/).slice(1, -1))
        return [text.slice(0, text.indexOf(':')), cells.slice(1).map(row => row.map(cell => cell.trim()))] as const
      }),
  )

/** Runs the bench, which must succeed and leave nothing behind. */
const bench = async (args: readonly string[]) => {
  const { code, stdout, stderr, left } = await runCommand(main, [...SHORT, ...args])
  expect({ code, left }, `${stdout}\n${stderr}`).toEqual({ code: 0, left: [] })
  expect(stdout).toMatch(/^```\ndate .*\nmachine .*\nversions .*Postgres \d+.*workerd \d+/)
  return parseSections(stdout)
}

/** The load, the virtual users and the target of each row. */
const toTargets = (rows: readonly (readonly string[])[] = []) =>
  rows.map(row => row.slice(0, 3).filter(Boolean).join(', '))

const apiRows = (loads: readonly string[], baselines: readonly string[], first = 'API') =>
  loads.flatMap(load => {
    const others = load.endsWith('Key') ? baselines.toSpliced(-1, 0, 'without a key') : baselines
    return [1, 16, 64].flatMap(users => [`${load}, ${users}, ${first}`, ...others, 'Hono floor'])
  })
const leaseRows = (first: string, baselines: readonly string[]) =>
  [
    ['GET of 1 slot', 16],
    ['GET of 16 slots', 16],
    ['renewals of 1 writer', 1],
    ['16 writers on 1 slot', 16],
    ['16 writers on 16 slots', 16],
  ].flatMap(([load, users]) => [`${load}, ${users}, ${first}`, ...baselines, 'Hono floor'])

const twice = (load: string) => [load, `${load} with an Idempotency-Key`]
const apiLoads = {
  reserve: twice('reserve'),
  'not-found': ['not-found'],
  check: ['check'],
  commit: twice('commit'),
  release: ['release'],
}

describe('pnpm bench', () => {
  const names = isFull ? Object.keys(apiLoads) : ['reserve']
  it('measures the API beside its statements and the floor', async () => {
    const found = await bench(names)
    expect(Object.keys(found)).toEqual(names)
    for (const [name, rows] of Object.entries(found)) {
      const loads = apiLoads[name as keyof typeof apiLoads]
      expect(toTargets(rows)).toEqual(apiRows(loads, name === 'not-found' ? [] : ['SQL alone']))
      // The CPU time and the memory of the API.
      if (hasProc) expect(rows[0]?.slice(6, 8)).toEqual([expect.stringMatching(/\d/), expect.stringMatching(/\d/)])
    }
  })

  it.runIf(isFull)('measures the witness, beside etcd if it is installed', async () => {
    const found = await bench(['lease-workerd', 'lease-postgres'])
    expect(toTargets(found['lease-postgres'])).toEqual(leaseRows('witness', shouldSkip(missingEtcd) ? [] : ['etcd']))
    expect(toTargets(found['lease-workerd'])).toEqual(leaseRows('witness', []))
  })

  it.runIf(isFull)('reads a list, times starts and counts what a lease costs', async () => {
    const found = await bench(['list', 'start', 'lease-cost'])
    expect(found.list?.map(([what]) => what)).toContain('memory peak, highest round')
    expect(found.start?.map(([what]) => what)).toEqual([
      'API',
      'API, bundle',
      'bare Node',
      'pnpm start on existing data',
      'pnpm start, the first',
    ])
    expect(found['lease-cost']?.at(-1)).toEqual(['total', '', '', expect.stringMatching(/^\d\.\d{3}$/), ''])
  })

  it.runIf(isFull)('compares with another checkout', async () => {
    const found = await bench(['--against', root])
    expect(Object.keys(found)).toEqual([...names, 'lease-workerd', 'lease-postgres'])
    expect(toTargets(found['not-found'])).toEqual(apiRows(['not-found'], ['other'], 'this'))
    expect(toTargets(found['lease-workerd'])).toEqual(leaseRows('this', ['other']))
  })

  it.runIf(isFull)('compares with another server', async () => {
    await using stack = new AsyncDisposableStack()
    const environment = await Environment.open(stack)
    const { port } = await environment.startApi(await environment.createDatabase())
    const found = await bench(['check', '--against', `http://127.0.0.1:${port}`])
    expect(toTargets(found.check)).toEqual(apiRows(['check'], ['other', 'SQL alone'], 'this'))
  })

  const moments: readonly (readonly [string, RegExp])[] = [
    ['reserve', /starting Postgres/],
    ['lease-workerd', /warming up/],
    ...(isFull ? ([['start', /pnpm start, the first/]] as const) : []),
  ]
  it.each(moments)('stops everything that it started on Ctrl-C: %s at "%s"', async (section, moment) => {
    const { code, stderr, left } = await runCommand(main, [section], moment)
    expect(code).toBe(130)
    expect(stderr).not.toContain('Error')
    expect(left).toEqual([])
  })

  it.each([
    [['leases'], /^bench: unknown section "leases".*\n$/],
    [['--against', '/nowhere'], /^bench: --against \/nowhere: apps\/allocation-api\/src\/main\.ts does not exist.*\n$/],
  ])('rejects invalid arguments in one line: %j', async (args, line) => {
    const { code, stdout, stderr } = await runCommand(main, args)
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toMatch(line)
  })
})
