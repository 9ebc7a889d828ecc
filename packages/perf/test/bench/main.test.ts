import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { beforeAll, describe, expect, it } from 'vitest'
import { runCommand } from './run-command.ts'

const main = fileURLToPath(new URL('../../src/bench/main.ts', import.meta.url))

/** A folder for a page. */
const ownFolder = async () => {
  const folder = await mkdtemp(join(tmpdir(), 'bench-test-'))
  return { folder, [Symbol.asyncDispose]: () => rm(folder, { recursive: true }) }
}

const bench = (args: readonly string[], interruptAt?: RegExp) => runCommand(main, args, interruptAt)

/** As little as gives figures. */
const SHORT = ['--seconds=0.1', '--rounds=1']

const spread = { median: expect.any(Number), min: expect.any(Number), max: expect.any(Number) }
/** A busy machine may do nothing within a tenth of a second: then there is no ratio of rates. */
const figure = expect.toSatisfy(value => value === null || typeof value === 'number', 'a figure, or none')
const ofRates = { median: figure, min: figure, max: figure }
const ratio = { perSecond: ofRates, p50: spread, p99: spread }
const subject = (name: string, expectedRatio: object | null) => ({
  name,
  perSecond: spread,
  p50Ms: spread,
  p99Ms: spread,
  operations: expect.any(Number),
  perOperation: {},
  ratio: expectedRatio,
})

describe('the command', () => {
  // Beside the others: most of the time it waits for the doubles of the providers, which is what it measures.
  let atProviders: ReturnType<typeof bench>
  beforeAll(() => {
    atProviders = bench(['providers', ...SHORT, '--json'])
  })

  it('measures reserve, list, load and replicas, as JSON, and leaves nothing behind', async () => {
    const names = ['reserve', 'list', 'load', 'replicas']
    const { code, stdout, stderr, left } = await bench([...names, ...SHORT, '--rows=2000', '--json'])
    expect(code, stderr).toBe(0)
    const { machine, options, valid, sections } = JSON.parse(stdout)
    expect(machine).toMatchObject({ node: process.version, postgres: expect.stringMatching(/^\d+/) })
    expect(options).toMatchObject({ seconds: 0.1, rounds: 1, rows: 2_000 })
    expect(valid).toBe(true)
    expect(sections).toMatchObject(names.map(name => ({ name, valid: true, faults: [] })))
    const [reserve, list, load, replicas] = sections
    const subjects = [subject('API', null), subject('SQL alone', ratio), subject('empty route', ratio)]
    expect(reserve.loads).toEqual([1, 16, 64].map(connections => ({ connections, subjects })))
    expect(reserve.targets).toMatchObject([{ bound: 'at least' }, { bound: 'at most', target: 5 }])
    expect(list).toMatchObject({
      rows: 2_000,
      rounds: 1,
      firstByteMs: spread,
      totalMs: spread,
      targets: [{ target: 80 }],
    })
    expect(list.bytes).toBeGreaterThan(2_000 * 100)
    const loads = [1, 2, 4, 8, 16, 32, 64, 128, 256]
    expect(load.verbs.map((line: Record<string, unknown>) => `${line.name} ${line.connections}`)).toEqual(
      loads.flatMap(connections => ['check', 'reserve', 'commit'].map(verb => `${verb} ${connections}`)),
    )
    for (const line of load.verbs) expect(line.p99Ms.median).toBeGreaterThanOrEqual(line.p50Ms.median)
    expect(replicas.loads).toMatchObject(
      [16, 64].flatMap(connections =>
        [1, 2, 4].map(processes => ({ connections, processes, pool: 10 * processes, toOne: ofRates })),
      ),
    )
    expect(replicas.openConnectionsEach).toBeGreaterThan(1)
    expect(left).toEqual([])
  })

  it('measures sizes, a sweep and starts, and writes the page, which earlier figures make again', async () => {
    await using docs = await ownFolder()
    const names = ['size', 'sweep', 'start']
    const { code, stdout, stderr, left } = await bench([
      ...[...names, ...SHORT, '--largest=1e4', '--expired=20000', '--json', `--page=${docs.folder}`],
    ])
    expect(code, stderr).toBe(0)
    const { sections } = JSON.parse(stdout)
    expect(sections).toMatchObject(names.map(name => ({ name, valid: true, faults: [] })))
    const [size, sweep, start] = sections
    const costs = { checkMs: spread, reserveMs: spread, sweepMs: spread, listMs: spread }
    expect(size.sizes).toMatchObject(
      [1_000, 10_000].map(rows => ({
        rows,
        figures: costs,
        toSmallest: costs,
        scrapeMs: spread,
        scrapesWithoutCounts: 0,
      })),
    )
    expect(sweep).toMatchObject({
      rows: 20_000,
      sweptInMs: expect.any(Number),
      targets: [{ target: 2 }, { target: 2 }],
    })
    expect(sweep.loads).toMatchObject([16, 64].map(connections => ({ connections, ratio })))
    expect(start.processes.map(({ name }: Record<string, unknown>) => name)).toEqual([
      'API',
      'API, nothing compiled',
      'bare Node',
    ])
    expect(start).toMatchObject({ wholeMs: spread, firstMs: expect.any(Number) })
    expect(start.memory.map(({ processes }: Record<string, unknown>) => processes)).not.toContain(0)
    expect(left).toEqual([])

    const written = async () => {
      const folder = join(docs.folder, 'benchmarks')
      const files = (await readdir(folder)).toSorted()
      return Promise.all(files.map(async file => [file, await readFile(join(folder, file), 'utf8')]))
    }
    const first = await written()
    expect(first.map(([file]) => file)).toEqual(['cost-against-size.svg', 'last-run.json', 'last-run.md'])
    const again = await bench(['--page', docs.folder, '--from', join(docs.folder, 'benchmarks', 'last-run.json')])
    expect(again).toMatchObject({ code: 0, stdout: '' })
    expect(await written()).toEqual(first)
  })

  it('measures the lease witness, without Postgres', async () => {
    const lease = ['lease-get', 'lease-put', 'lease-renewals']
    const { code, stdout, stderr, left } = await bench([...lease, ...SHORT, '--slots=32', '--json'])
    expect(code, stderr).toBe(0)
    expect(stderr).not.toContain('Postgres')
    const { machine, valid, sections } = JSON.parse(stdout)
    expect(machine).toMatchObject({ postgres: null, workerd: expect.stringMatching(/^\d+\.\d+/) })
    expect(valid).toBe(true)

    const target = { of: 'ops/s', target: expect.any(Number), measured: ofRates, met: expect.any(Boolean) }
    const [get, put, renewals] = sections
    for (const [section, ofOneSlot] of [
      [get, {}],
      [put, { granted: spread, twice: spread }],
    ]) {
      const subjects = (perOperation: object) => [
        { ...subject('witness', null), perOperation },
        { ...subject('memory', ratio), perOperation },
        { ...subject('KV only', ratio), perOperation },
      ]
      expect(section).toMatchObject({ valid: true, faults: [], targets: [target, target, target, target] })
      expect(section.loads).toEqual([
        { where: { slots: 1, clients: 1 }, subjects: subjects(ofOneSlot) },
        { where: { slots: 1, clients: 16 }, subjects: subjects(ofOneSlot) },
        { where: { slots: 32, clients: 1 }, subjects: subjects({}) },
        { where: { slots: 32, clients: 16 }, subjects: subjects({}) },
      ])
    }
    expect(put.oneSlot.map(({ clients, subject }: Record<string, unknown>) => `${subject} ${clients}`)).toEqual([
      'witness 1',
      'memory 1',
      'KV only 1',
      'witness 16',
      'memory 16',
      'KV only 16',
    ])
    expect(put.oneSlot[3]).toMatchObject({ grantedTwicePercent: { max: 0 }, rightGrantsPerSecond: spread })
    expect(renewals).toMatchObject({ valid: true, faults: [], targets: [{ ...target, of: 'p99' }] })
    const both = [subject('witness', null), subject('KV only', ratio)]
    expect(renewals.loads).toEqual([
      { where: { load: 'renewals' }, subjects: both },
      { where: { load: 'takeovers' }, subjects: both },
    ])
    expect(left).toEqual([])
  })

  it('measures commits at the providers, in shared passes and one write a commit', async () => {
    const { code, stdout, stderr, left } = await atProviders
    expect(code, stderr).toBe(0)
    const [section] = JSON.parse(stdout).sections
    expect(section).toMatchObject({ name: 'providers', valid: true, faults: [], answered202: expect.any(Number) })
    const lacking = section.notes.join('\n').match(/Not measured: \w+/g) ?? []
    expect(section.loads).toHaveLength(3 * (4 - lacking.length))
    const common = { perSecond: spread, callsPerCommit: spread, commits: expect.any(Number) }
    for (const load of section.loads)
      expect(load).toEqual({
        provider: expect.stringMatching(/^(cloudflare|dynadot|powerdns|rfc2136)$/),
        delayMs: expect.any(Number),
        concurrent: expect.any(Number),
        api: { ...common, p50Ms: spread, p99Ms: spread, answered202: expect.any(Number) },
        oneWrite: common,
        ratio: spread,
      })
    const doubles = [
      // A list and a batch; at dynadot a read, the comparison before the write, and the write.
      { provider: 'cloudflare', delayMs: 50, calls: 2 },
      { provider: 'dynadot', delayMs: 300, calls: 3 },
    ]
    for (const { provider, delayMs, calls } of doubles) {
      const loads = section.loads.filter((load: { provider: string }) => load.provider === provider)
      expect(loads).toMatchObject([1, 16, 64].map(concurrent => ({ concurrent, delayMs })))
      const [alone, , many] = loads
      // The requests that the double was sent, and each of them takes its time.
      expect(alone.api.callsPerCommit.median).toBe(calls)
      for (const { oneWrite } of loads) {
        expect(oneWrite.callsPerCommit.median).toBe(calls)
        expect(oneWrite.perSecond.max).toBeLessThan(1_000 / (calls * delayMs))
      }
      expect(alone.api.perSecond.max).toBeLessThan(1_000 / (calls * delayMs))
      expect(many.api.callsPerCommit.median).toBeLessThan(1)
      expect(many.api.commits + many.api.answered202).toBeGreaterThanOrEqual(64)
    }
    expect(left).toEqual([])
  })

  it.each([
    ['reserve', /starting Postgres/],
    ['size', /writing 1000 rows/],
    ['start', /pnpm start, the first/],
    ['providers', /cloudflare: 1 concurrent/],
    ['lease-put', /warming up/],
  ])('is gone with all it started on Ctrl-C: %s at "%s"', async (section, moment) => {
    const { code, left } = await bench([section], moment)
    expect(code).toBe(130)
    expect(left).toEqual([])
  })

  it.each([
    [['leases'], /^bench: there is no section "leases".*\n$/],
    [['--page', '.', '--from', 'nowhere.json'], /^bench: nowhere.json cannot be read\n$/],
    [['--page', '.', '--from', main], /^bench: .* is not what --json prints\n$/],
  ])('refuses what it does not understand, in one line: %j', async (args, line) => {
    const { code, stdout, stderr } = await bench(args)
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toMatch(line)
  })
})
