import { spawn } from 'node:child_process'
import { chmod, mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { invariants } from '../src/verdicts.ts'

const main = fileURLToPath(new URL('../src/main.ts', import.meta.url))

/** Where the command makes its temporary folders: empty before and after. */
let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'soak-test-'))
  // The account that Postgres runs as when we are root passes through it.
  await chmod(folder, 0o755)
})
afterAll(() => rm(folder, { recursive: true }))

const soak = async (args: readonly string[], interruptAt?: RegExp) => {
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

describe('the command', () => {
  it('soaks for a few seconds, breaks nothing, and leaves nothing behind', async () => {
    // A seed whose first faults are short, and hit the API, the database, the zone and the witness.
    const { code, stdout, stderr } = await soak(['--minutes', '0.1', '--seed', '13508', '--json'])
    expect({ code, stderr }).toEqual({ code: 0, stderr: expect.not.stringContaining('BROKEN') })
    const { valid, machine, options, faults, traffic, measured, verdicts } = JSON.parse(stdout)
    expect(valid).toBe(true)
    expect(machine).toMatchObject({ node: process.version, postgres: expect.stringMatching(/^\d+/) })
    expect(options).toMatchObject({ minutes: 0.1 })
    expect(faults.length).toBeGreaterThanOrEqual(2)
    for (const { recoveriesMs } of faults) expect(recoveriesMs).toEqual([expect.any(Number)])
    const operations = traffic
      .filter(({ ok }: { ok: number }) => ok > 0)
      .map(({ operation }: { operation: string }) => operation)
    for (const one of ['reserve', 'commit', 'release', 'get', 'lease acquire', 'lease renew', 'lease read'])
      expect(operations).toContain(one)
    expect(measured).toContainEqual(expect.objectContaining({ title: 'connections of all replicas', faults: [] }))
    expect(verdicts.map(({ invariant }: { invariant: string }) => invariant)).toEqual(invariants)
    const looked = verdicts.filter(({ checks }: { checks: number }) => checks > 0)
    expect(looked.length).toBeGreaterThanOrEqual(10)
    expect(await readdir(folder)).toEqual([])
  })

  it('is gone with all it started on Ctrl-C, while it starts', async () => {
    const { code } = await soak([], /starting everything/)
    expect(code).toBe(130)
    expect(await readdir(folder)).toEqual([])
  })

  it('refuses an option that it does not know, in one line', async () => {
    const { code, stdout, stderr } = await soak(['--hours', '1'])
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toBe('soak: there is no option --hours\n')
  })
})
