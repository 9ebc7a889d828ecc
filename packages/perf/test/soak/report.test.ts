import { describe, expect, it } from 'vitest'
import { LogSecretScanner } from '../../src/soak/environment/log-secrets.ts'
import { InvariantChecker, invariants } from '../../src/soak/invariants.ts'
import { hasNoViolations, type SoakReport, toSoakText } from '../../src/soak/report.ts'
import { toResourceUsage } from '../../src/soak/resources.ts'

const machine = {
  date: '2026-01-01T00:00:00.000Z',
  cpu: 'a processor',
  cores: 2,
  memoryBytes: 2 ** 30,
  os: 'Linux',
  node: 'v24.0.0',
  postgres: '18',
  workerd: '1',
  loadBefore: 0,
  fsyncMs: 1,
}
const createReport = (broken: readonly string[]): SoakReport => ({
  options: { minutes: 1, seed: 7, json: false },
  seconds: 61,
  notes: ['No deployments: install terraform'],
  faults: [{ name: 'Postgres hung', recoveriesMs: [100, 300, 2_000] }],
  traffic: [{ operation: 'reserve', requests: 10, successful: 5, rejected: 3, unavailable: 1, unanswered: 1 }],
  resources: [{ title: 'memory', unit: 'MB', bound: 400, start: 1, median: 2, end: 3, max: 4, violations: [] }],
  invariants: [{ invariant: 'one owner per name', checks: 12, violations: broken }],
})

describe('the report', () => {
  it('has tables of faults, traffic, resources and invariants', () => {
    const text = toSoakText(machine, createReport([]))
    expect(text).toContain('soak      1.0 minutes with 3 faults, seed 7\nnote      No deployments: install terraform')
    expect(text).toMatch(/^\| Postgres hung +\| +3 +\| +0\.30 +\| +2\.00 +\|$/m)
    expect(text).toMatch(/^\| reserve +\| +10 +\| +5 +\| +3 +\| +1 +\| +1 +\|$/m)
    expect(text).toMatch(/^\| memory, MB \|.*\| +400 \|$/m)
    expect(text).toMatch(/^\| one owner per name +\| +12 +\| +0 +\|$/m)
    expect(text.endsWith('No invariant was violated.')).toBe(true)
    expect(hasNoViolations(createReport([]))).toBe(true)
  })

  it('ends with the violations', () => {
    const outcome = createReport(['two owners: x', 'two owners: y'])
    expect(toSoakText(machine, outcome)).toMatch(/VIOLATION one owner per name: two owners: x\nVIOLATION .* y$/)
    expect(hasNoViolations(outcome)).toBe(false)
  })

  it('counts every check and reports each violation once, immediately', () => {
    const reported: string[] = []
    const invariantChecker = new InvariantChecker(line => reported.push(line))
    invariantChecker.record('one owner per name', 3, [])
    invariantChecker.record('one owner per name', 4, ['x', 'y'])
    invariantChecker.record('one owner per name', 5, ['x'])
    expect(reported).toEqual(['VIOLATION one owner per name: x', 'VIOLATION one owner per name: y'])
    expect(invariantChecker.results.map(({ invariant }) => invariant)).toEqual(invariants)
    expect(invariantChecker.results[0]).toEqual({ invariant: 'one owner per name', checks: 12, violations: ['x', 'y'] })
  })

  it('checks the bound for each process separately', () => {
    const flat = (from: number, value: number) =>
      Array.from({ length: 130 }, (_, i) => ({ at: from + i * 1_000, value }))
    const bound = { max: 400, growth: { share: 0.25, extra: 20 } }
    const processes = new Map([
      ['1', flat(0, 100)],
      ['2', flat(200_000, 300)],
    ])
    expect(toResourceUsage({ title: 'memory', unit: 'MB', bound, processes: processes })).toMatchObject({
      start: 100,
      end: 300,
      violations: [],
    })
    processes.set('3', flat(400_000, 401))
    expect(toResourceUsage({ title: 'memory', unit: 'MB', bound, processes: processes }).violations).toEqual([
      'memory (3) reached 401, above 400',
    ])
  })

  it('finds a secret in a line and redacts it in the finding', () => {
    const reported: string[] = []
    const scanner = new LogSecretScanner(finding => reported.push(finding))
    scanner.add('the key', 'marked-0123')
    scanner.scan('replica 0', 'nothing')
    scanner.scan('replica 1', 'url=http://x/?key=marked-0123&again=marked-0123')
    expect(scanner.lineCount).toBe(2)
    expect(scanner.findings).toEqual(['the key in the log of replica 1: url=http://x/?key=<the key>&again=<the key>'])
    expect(reported).toEqual(scanner.findings)
  })
})
