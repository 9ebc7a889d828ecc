import { describe, expect, it } from 'vitest'
import { createSecretWatch } from '../../src/soak/environment/secrets.ts'
import { createInvariantLog, invariants } from '../../src/soak/invariants.ts'
import { isClean, type SoakOutcome, toMeasured } from '../../src/soak/outcome.ts'
import { reportText } from '../../src/soak/report/text.ts'

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
const outcomeOf = (broken: readonly string[]): SoakOutcome => ({
  options: { minutes: 1, seed: 7, json: false },
  seconds: 61,
  notes: ['No deployments: lacks terraform'],
  faults: [{ name: 'Postgres hung', recoveriesMs: [100, 300, 2_000] }],
  traffic: [{ operation: 'reserve', requests: 10, ok: 5, refused: 3, unavailable: 1, unanswered: 1 }],
  measured: [{ title: 'memory', unit: 'MB', most: 400, start: 1, median: 2, end: 3, max: 4, faults: [] }],
  verdicts: [{ invariant: 'one owner a name', checks: 12, broken }],
})

describe('what a run came to', () => {
  it('is a table', () => {
    const text = reportText(machine, outcomeOf([]))
    expect(text).toContain('soak      1.0 minutes with 3 faults, seed 7\nnote      No deployments: lacks terraform')
    expect(text).toMatch(/^\| Postgres hung +\| +3 +\| +0\.30 +\| +2\.00 +\|$/m)
    expect(text).toMatch(/^\| reserve +\| +10 +\| +5 +\| +3 +\| +1 +\| +1 +\|$/m)
    expect(text).toMatch(/^\| memory, MB \|.*\| +400 \|$/m)
    expect(text).toMatch(/^\| one owner a name +\| +12 +\| +0 +\|$/m)
    expect(text.endsWith('No invariant was broken.')).toBe(true)
    expect(isClean(outcomeOf([]))).toBe(true)
  })

  it('ends with the evidence of what was broken', () => {
    const outcome = outcomeOf(['two owners: x', 'two owners: y'])
    expect(reportText(machine, outcome)).toMatch(/BROKEN one owner a name: two owners: x\nBROKEN .* y$/)
    expect(isClean(outcome)).toBe(false)
  })

  it('counts every look, and tells each breach once and at once', () => {
    const told: string[] = []
    const verdicts = createInvariantLog(line => told.push(line))
    verdicts.add('one owner a name', 3, [])
    verdicts.add('one owner a name', 4, ['x', 'y'])
    verdicts.add('one owner a name', 5, ['x'])
    expect(told).toEqual(['BROKEN one owner a name: x', 'BROKEN one owner a name: y'])
    expect(verdicts.all().map(({ invariant }) => invariant)).toEqual(invariants)
    expect(verdicts.all()[0]).toEqual({ invariant: 'one owner a name', checks: 12, broken: ['x', 'y'] })
  })

  it('holds each life of a process to the bound by itself', () => {
    const flat = (from: number, value: number) =>
      Array.from({ length: 130 }, (_, i) => ({ at: from + i * 1_000, value }))
    const bound = { most: 400, growth: { share: 0.25, extra: 20 } }
    const lives = new Map([
      ['1', flat(0, 100)],
      ['2', flat(200_000, 300)],
    ])
    expect(toMeasured({ title: 'memory', unit: 'MB', bound, lives })).toMatchObject({
      start: 100,
      end: 300,
      faults: [],
    })
    lives.set('3', flat(400_000, 401))
    expect(toMeasured({ title: 'memory', unit: 'MB', bound, lives }).faults).toEqual([
      'memory (3) reached 401, above 400',
    ])
  })

  it('finds a secret in a line, and does not repeat it', () => {
    const told: string[] = []
    const watch = createSecretWatch(fault => told.push(fault))
    watch.add('the key', 'marked-0123')
    watch.look('replica 0', 'nothing')
    watch.look('replica 1', 'url=http://x/?key=marked-0123&again=marked-0123')
    expect(watch.lines).toBe(2)
    expect(watch.faults).toEqual(['the key in the log of replica 1: url=http://x/?key=<the key>&again=<the key>'])
    expect(told).toEqual(watch.faults)
  })
})
