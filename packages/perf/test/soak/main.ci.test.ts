import { fileURLToPath } from 'node:url'
import { isProof } from '@pool/test-kit/proof-size.ts'
import { describe, expect, it } from 'vitest'
import { invariants } from '../../src/soak/invariants.ts'
import { runCommand } from '../shared/run-command.ts'

const main = fileURLToPath(new URL('../../src/soak/main.ts', import.meta.url))

const soak = (args: readonly string[], interruptAt?: RegExp) => runCommand(main, args, interruptAt)

describe('the command', () => {
  // It starts everything: with the proofs, as the soak itself runs by command.
  it.runIf(isProof)('runs for a few seconds without a violation and leaves nothing behind', async () => {
    // A seed whose first faults are short, and hit the API, the database, the zone and the witness.
    const { code, stdout, stderr, left } = await soak(['--minutes', '0.1', '--seed', '84528', '--json'])
    expect({ code, stderr }).toEqual({ code: 0, stderr: expect.not.stringContaining('VIOLATION') })
    const { valid, machine, options, faults, traffic, resources, invariants: results } = JSON.parse(stdout)
    expect(valid).toBe(true)
    expect(machine).toMatchObject({ node: process.version, postgres: expect.stringMatching(/^\d+/) })
    expect(options).toMatchObject({ minutes: 0.1 })
    expect(faults.length).toBeGreaterThanOrEqual(2)
    for (const { recoveriesMs } of faults) expect(recoveriesMs).toEqual([expect.any(Number)])
    const operations = traffic
      .filter(({ successful }: { successful: number }) => successful > 0)
      .map(({ operation }: { operation: string }) => operation)
    // A slow machine gets no further in this time.
    for (const one of ['reserve', 'commit', 'get', 'lease acquire', 'lease renew', 'lease read'])
      expect(operations).toContain(one)
    expect(resources).toContainEqual(expect.objectContaining({ title: 'connections of all replicas', violations: [] }))
    expect(results.map(({ invariant }: { invariant: string }) => invariant)).toEqual(invariants)
    const checked = results.filter(({ checks }: { checks: number }) => checks > 0)
    expect(checked.length).toBeGreaterThanOrEqual(10)
    expect(left).toEqual([])
  })

  it('stops everything that it started on Ctrl-C during the start', async () => {
    const { code, left } = await soak([], /starting all services/)
    expect(code).toBe(130)
    expect(left).toEqual([])
  })

  it('rejects an unknown option in one line', async () => {
    const { code, stdout, stderr } = await soak(['--hours', '1'])
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toBe("soak: Unknown option '--hours'\n")
  })
})
