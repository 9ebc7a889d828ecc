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

  it.each([/starting Postgres/, /warming up/])('is gone with all it started on Ctrl-C at "%s"', async moment => {
    const { code } = await bench(['reserve'], moment)
    expect(code).toBe(130)
    expect(await readdir(folder)).toEqual([])
  })

  it('refuses a section that it does not know, in one line', async () => {
    const { code, stdout, stderr } = await bench(['leases'])
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toMatch(/^bench: there is no section "leases".*\n$/)
  })
})
