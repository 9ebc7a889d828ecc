import { expect, test } from 'vitest'
import { type BusySession, describeEvidence, wasMachineStalled } from '../../src/soak/checks/evidence.ts'

const session = (pid: number, forMs: number, rest: Partial<BusySession> = {}): BusySession => ({
  pid,
  application: 'allocation-api write',
  state: 'active',
  wait: null,
  forMs,
  query: 'update t',
  blockers: null,
  ...rest,
})
const call = { start: 1_000, end: 4_000 }
const fault = (name: 'Postgres hung' | 'tables locked', startedAt: number, endedAt: number) => ({
  fault: { name, replica: 1, durationMs: 0, strength: 0, afterMs: 0 },
  startedAt,
  endedAt,
})

test('the evidence has the cause, the longest wait of each session with what held it, and the last faults', () => {
  const held = { wait: 'Lock transactionid', blockers: '7 (psql) idle in transaction: lock table t' }
  const samples = [
    { start: 500, end: 600, sessions: [session(1, 900)] },
    { start: 1_500, end: 1_510, sessions: [session(2, 500, held), session(3, 400)] },
    { start: 3_900, end: 3_950, sessions: [session(2, 2_900, held)] },
    { start: 5_000, end: 5_001, sessions: [session(4, 900)] },
  ]
  const injected = [fault('Postgres hung', 0, 400), fault('tables locked', 900, Number.POSITIVE_INFINITY)]
  expect(describeEvidence(call, { cause: '55P03', samples, injected })).toBe(
    'cause in the log: 55P03; sessions of the database: 2 (allocation-api write) active for 2900 ms, waits for Lock transactionid, which is held by 7 (psql) idle in transaction: lock table t: update t | 3 (allocation-api write) active for 400 ms, runs: update t; last faults: Postgres hung (replica 1) ended 600 ms before, tables locked (replica 1) not ended',
  )
})

test('the evidence says that no session was busy, or that the database responded to no sample', () => {
  const idle = { start: 1_000, end: 1_001, sessions: [] }
  const late = { start: 1_000, end: 2_500, sessions: [] }
  const failed = { start: 3_000, end: 3_100, sessions: null }
  const describe = (samples: Parameters<typeof describeEvidence>[1]['samples']) =>
    describeEvidence(call, { cause: undefined, samples, injected: [] })
  expect(describe([])).toBe('cause in the log: none; sessions of the database: not sampled; last faults: none')
  expect(describe([idle])).toContain('sessions of the database: none was busy; last')
  expect(describe([idle, late, failed])).toContain('none was busy; 2 of 3 samples had no response in time; last')
})

test.each<readonly [string, boolean, readonly (readonly [start: number, end: number])[]]>([
  ['a second of one slow sample', true, [[2_000, 3_100]]],
  [
    'a second of two slow samples',
    true,
    [
      [0, 1_600],
      [3_500, 5_000],
    ],
  ],
  [
    'samples that took less than a second',
    false,
    [
      [1_000, 1_900],
      [1_900, 2_800],
      [2_800, 3_700],
    ],
  ],
])('the machine was stalled: %s: %s', (_, isStalled, spans) => {
  const samples = spans.map(([start, end]) => ({ start, end, sessions: [] }))
  expect(wasMachineStalled(call, samples)).toBe(isStalled)
  expect(
    wasMachineStalled(
      call,
      samples.map(sample => ({ ...sample, sessions: null })),
    ),
  ).toBe(false)
})
