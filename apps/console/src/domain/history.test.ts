import type { DeploymentHistoryEntry, HistoryEntry, LeaseTransition } from '@pool/contract'
import { expect, test } from 'vitest'
import { describeActor, describeEvent, describeTransition, toEventTone, toRuns } from './history.ts'

const transition = (fields: Partial<LeaseTransition>): LeaseTransition => ({
  generation: 1,
  at: '2026-01-31T12:00:00.000Z',
  event: 'acquired',
  by: 'a',
  from: '',
  to: 'a',
  token: '',
  ...fields,
})

test.each<[Partial<LeaseTransition>, string]>([
  [{}, 'a acquired it'],
  [{ from: 'b' }, 'a acquired it after b'],
  [{ event: 'released', by: 'a', from: 'a', to: '' }, 'a released it'],
  [{ event: 'released', by: 'operator', from: 'a', to: '' }, 'operator released the lease of a'],
  [{ event: 'clock-set-back', to: '' }, 'The clock of the witness was set back; no holder has the whole TTL again'],
])('the transition %j', (fields, text) => expect(describeTransition(transition(fields))).toBe(text))

test.each([
  [undefined, 'Committed'],
  [1, 'Committed, after 1 renewal'],
  [2, 'Committed, after 2 renewals'],
])('%s renewals: %s', (renewalCount, text) =>
  expect(describeEvent({ event: 'committed', renewalCount } as HistoryEntry)).toBe(text),
)

test('an entry has an actor', () => {
  expect(describeActor({ actor: 'operator', address: '192.0.2.1' })).toBe('by an operator from 192.0.2.1')
  expect(describeActor({ actor: 'convergence' })).toBe('by the service')
})

test('the runs of a deployment are its requests, with their ends', () => {
  const events = [
    'failed',
    'created',
    'failed',
    'unlocked',
    'apply-requested',
    'cancelled',
    'failed',
    'destroy-requested',
  ]
  const entries = events.map((event, at) => ({ event, actor: 'operator', at: `2026-01-31T12:00:0${at}.000Z` }))
  const runs = toRuns(entries.toReversed() as DeploymentHistoryEntry[])
  expect(runs.map(({ operation, outcome, durationMs }) => [operation, outcome, durationMs])).toEqual([
    ['Destroy', 'in progress', undefined],
    ['Apply', 'failed', 2_000],
    ['Create', 'failed', 1_000],
  ])
  expect(runs[0]).toMatchObject({ by: 'by an operator', at: '2026-01-31T12:00:07.000Z' })
})

test('a failure is marked in the timeline', () => {
  expect(toEventTone('failing')).toBe('bad')
  expect(toEventTone('published')).toBe('ok')
  expect(toEventTone('released')).toBe('')
})
