import { execFile } from 'node:child_process'
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { reportProof } from '@pool/test-kit/proof-size.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'

/** More than the slowest mutant needs. The seed is fixed, so that a run finds what the last one found. */
const MAX_SCHEDULES = 2_000
const PACKAGE = resolve(import.meta.dirname, '../..')

interface Mutant {
  readonly rule: string
  readonly file: string
  /** Occurs at least once in the file. Every occurrence is replaced. */
  readonly from: string
  readonly to: string
}

const ELECTION = 'domain/election.ts'
const ELAPSED = 'domain/elapsed-time.ts'

/** Electors that lack one rule. */
const mutants: readonly Mutant[] = [
  {
    rule: 'the deadline counts from the response',
    file: ELECTION,
    from: 'toTimes(rules, lease, sentAt)',
    to: 'toTimes(rules, lease, now)',
  },
  {
    rule: 'no margin between the deadline and the expiry',
    file: ELECTION,
    from: 'remainingMs - (rules.leaseDuration - rules.renewDeadline)',
    to: 'remainingMs',
  },
  {
    rule: 'the wall clock alone',
    file: ELAPSED,
    from: 'Math.max(monotonicMs, wallMs)',
    to: 'wallMs',
  },
  {
    rule: 'a wall clock that goes back',
    file: ELAPSED,
    from: 'last = { reading, instant: advance(last, reading) }',
    to: 'last = { reading, instant: { monotonicMs: reading.wallMs, wallMs: reading.wallMs } }',
  },
  {
    rule: 'the monotonic clock alone',
    file: ELAPSED,
    from: 'Math.max(monotonicMs, wallMs)',
    to: 'monotonicMs',
  },
  {
    rule: 'no comparison at a call, only timers',
    file: 'tenure-context.ts',
    from: "if (hasEnded(this.#tenure, this.#now())) this.end('renew-deadline')",
    to: '',
  },
  {
    rule: 'a guard that ignores the deadline',
    file: 'guard.ts',
    from: 'tenure.assertLeader()',
    to: '',
  },
  {
    rule: 'a release before onStoppedLeading',
    file: 'elector.ts',
    from: 'const work = this.#context ? [this.#work',
    to: 'await this.#release(tenure.generation); const work = this.#context ? [this.#work',
  },
  {
    rule: 'every lease of the same name counts as its own',
    file: ELECTION,
    from: 'holder === identity && (isUnique || acquiredAt === ownTenure)',
    to: 'holder === identity',
  },
  {
    rule: 'an identity that two electors share counts as unique',
    file: 'elector.ts',
    from: 'isUnique: false }',
    to: 'isUnique: true }',
  },
  {
    rule: 'an acquisition without a response counts as granted',
    file: ELECTION,
    from: '  const failures = state.failures + 1\n',
    to: "  const failures = state.failures + 1\n  if (sent.kind === 'acquire' && result.kind === 'unknown')\n    result = { kind: 'granted', lease: { holder: rules.identity, acquiredAt: '', generation: sent.generation + 1, remainingMs: rules.leaseDuration } }\n",
  },
]

let folder: string

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'elector-mutants-'))
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** Copies the client with one replacement, and searches for a schedule that shows it. */
const searchViolation = async (name: string, mutant: Mutant | undefined) => {
  const copy = join(folder, name)
  for (const part of ['src', 'test/leases/support', 'package.json']) {
    cpSync(join(PACKAGE, part), join(copy, part), { recursive: true })
  }
  symlinkSync(join(PACKAGE, 'node_modules'), join(copy, 'node_modules'))
  if (mutant) {
    const path = join(copy, 'src/leases', mutant.file)
    const text = readFileSync(path, 'utf8')
    expect(text, `${mutant.file} has changed: adapt the mutant`).toContain(mutant.from)
    writeFileSync(path, text.replaceAll(mutant.from, mutant.to))
  }
  const script = join(copy, 'test/leases/support/run-model.ts')
  const { stdout } = await promisify(execFile)(process.execPath, [script, String(MAX_SCHEDULES)])
  const found: { schedules: number; violation: string | null } = JSON.parse(stdout)
  return found
}

test('the elector without a replacement has no violation', async () => {
  expect(await searchViolation('original', undefined)).toEqual({ schedules: MAX_SCHEDULES, violation: null })
})

test.each(mutants.map((mutant, index) => [mutant.rule, index, mutant] as const))(
  'the model finds: %s',
  async (rule, index, mutant) => {
    const { schedules, violation } = await searchViolation(`mutant-${index}`, mutant)
    reportProof(`mutant: ${rule}: schedule ${schedules}, ${violation}`)
    expect(violation).not.toBeNull()
  },
)
