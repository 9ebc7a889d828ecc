import { spawn } from 'node:child_process'
import { chmod, mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'

const main = fileURLToPath(new URL('../src/main.ts', import.meta.url))

/** Where the command makes its temporary folders: empty before and after. */
let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'bench-test-'))
  // The account that Postgres runs as when we are root passes through it.
  await chmod(folder, 0o755)
})
afterAll(() => rm(folder, { recursive: true }))

const bench = async (args: readonly string[], interruptAt?: RegExp) => {
  const child = spawn(process.execPath, [main, ...args], {
    env: { ...process.env, TMPDIR: folder },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let [stdout, stderr] = ['', '']
  child.stdout.on('data', piece => {
    stdout += piece
  })
  child.stderr.on('data', piece => {
    stderr += piece
    if (interruptAt?.test(stderr)) child.kill('SIGINT')
  })
  const code = await new Promise<number | null>(resolve => child.on('close', resolve))
  return { code, stdout, stderr }
}

const spread = { median: expect.any(Number), min: expect.any(Number), max: expect.any(Number) }
const ratio = { perSecond: spread, p50: spread, p99: spread }
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
  it('measures reserve and list, as JSON, and leaves nothing behind', async () => {
    const { code, stdout, stderr } = await bench([
      'reserve',
      'list',
      '--seconds',
      '0.2',
      '--rounds',
      '1',
      '--rows',
      '2000',
      '--json',
    ])
    expect(code, stderr).toBe(0)
    const { machine, options, valid, sections } = JSON.parse(stdout)
    expect(machine).toMatchObject({ node: process.version, postgres: expect.stringMatching(/^\d+/) })
    expect(options).toMatchObject({ seconds: 0.2, rounds: 1, rows: 2_000 })
    expect(valid).toBe(true)
    expect(sections).toMatchObject([
      { name: 'reserve', valid: true, faults: [] },
      { name: 'list', valid: true, faults: [], rows: 2_000, rounds: 1, firstByteMs: spread, totalMs: spread },
    ])
    const subjects = [subject('API', null), subject('SQL alone', ratio), subject('empty route', ratio)]
    expect(sections[0].loads).toEqual([1, 16, 64].map(connections => ({ connections, subjects })))
    expect(sections[1].bytes).toBeGreaterThan(2_000 * 100)
    expect(await readdir(folder)).toEqual([])
  })

  it('measures commits at the providers, in shared passes and one write a commit', async () => {
    const { code, stdout, stderr } = await bench(['providers', '--seconds=0.1', '--rounds=1', '--json'])
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
    expect(await readdir(folder)).toEqual([])
  })

  it('measures the lease witness, without Postgres', async () => {
    const lease = ['lease-get', 'lease-put', 'lease-renewals']
    const { code, stdout, stderr } = await bench([...lease, '--seconds=0.1', '--rounds=1', '--slots=32', '--json'])
    expect(code, stderr).toBe(0)
    expect(stderr).not.toContain('Postgres')
    const { machine, valid, sections } = JSON.parse(stdout)
    expect(machine).toMatchObject({ postgres: null, workerd: expect.stringMatching(/^\d+\.\d+/) })
    expect(valid).toBe(true)

    const target = { of: 'ops/s', target: expect.any(Number), ratio: spread, met: expect.any(Boolean) }
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
    expect(await readdir(folder)).toEqual([])
  })

  it.each([
    ['reserve', /starting Postgres/],
    ['reserve', /warming up/],
    ['providers', /cloudflare: 1 concurrent/],
    ['lease-put', /warming up/],
  ])('is gone with all it started on Ctrl-C: %s at "%s"', async (section, moment) => {
    const { code } = await bench([section], moment)
    expect(code).toBe(130)
    expect(await readdir(folder)).toEqual([])
  })

  it('refuses a section that it does not know, in one line', async () => {
    const { code, stdout, stderr } = await bench(['leases'])
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toMatch(/^bench: there is no section "leases".*\n$/)
  })
})
