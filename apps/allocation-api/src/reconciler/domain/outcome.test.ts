import { describe, expect, test } from 'vitest'
import type { ApplyResult } from '../../dns/domain/result.ts'
import type { RecordChange } from '../../dns/domain/rrset.ts'
import { type Outcome, toOutcome, toRetryDelayMs } from './outcome.ts'
import type { Plan } from './plan.ts'

const change: RecordChange = { kind: 'delete', name: 'acme.pool.test', type: 'A' }
const changes: Plan = { kind: 'changes', changes: [change], deletedRecords: [], isPartial: false }
const noChanges: Plan = { ...changes, changes: [] }
const partial: Plan = { ...changes, isPartial: true }
const conflict: Plan = { kind: 'conflict', reason: 'in the way' }

const applied: ApplyResult = { kind: 'applied', rejected: [] }
const rejecting = (name: string): ApplyResult => ({ kind: 'applied', rejected: [{ name, reason: 'no' }] })
const skipping = (name: string): ApplyResult => ({ kind: 'applied', rejected: [], skipped: [name] })
const down: ApplyResult = { kind: 'unavailable', reason: 'down', retryAfterMs: 7 }
const noZone: ApplyResult = { kind: 'unavailable', reason: 'no zone', scope: 'zone' }

const done: Outcome = { kind: 'applied', changes: [change] }
const failed = (cause: string, reason: string) => ({ kind: 'failed', cause, reason })

describe('the outcome of a name', () => {
  test.each<[what: string, plan: Plan, result: ApplyResult, outcome: object]>([
    ['applied', changes, applied, done],
    ['nothing to change', noChanges, applied, { kind: 'applied', changes: [] }],
    ['another name rejected', changes, rejecting('other.pool.test'), done],
    ['a name with the same suffix rejected', changes, rejecting('xacme.pool.test'), done],
    ['the zone rejected', changes, rejecting('pool.test'), done],
    [
      'rejected',
      changes,
      rejecting('acme.pool.test'),
      failed('rejected', 'The DNS provider rejected acme.pool.test: no'),
    ],
    [
      'a name below it rejected',
      changes,
      rejecting('*.acme.pool.test'),
      failed('rejected', 'The DNS provider rejected *.acme.pool.test: no'),
    ],
    ['skipped', changes, skipping('acme.pool.test'), { kind: 'skipped' }],
    ['a name below it skipped', changes, skipping('*.acme.pool.test'), { kind: 'skipped' }],
    ['only the first changes were made', partial, applied, { kind: 'skipped' }],
    [
      'one of the first changes rejected',
      partial,
      rejecting('acme.pool.test'),
      failed('rejected', 'The DNS provider rejected acme.pool.test: no'),
    ],
    ['another name skipped', changes, skipping('other.pool.test'), done],
    [
      'rejected and skipped',
      changes,
      { ...skipping('*.acme.pool.test'), ...rejecting('acme.pool.test') },
      failed('rejected', 'The DNS provider rejected acme.pool.test: no'),
    ],
    ['provider unavailable', changes, down, { ...failed('provider', 'down'), retryAfterMs: 7 }],
    ['zone unavailable', changes, noZone, failed('zone', 'no zone')],
    ['nothing to change, provider unavailable', noChanges, down, { ...failed('provider', 'down'), retryAfterMs: 7 }],
    ['conflict', conflict, applied, failed('foreign-record', 'in the way')],
    ['conflict, provider unavailable', conflict, down, failed('foreign-record', 'in the way')],
  ])('%s', (_, plan, result, outcome) => {
    expect(toOutcome('acme.pool.test', plan, result)).toEqual(outcome)
  })
})

describe('the delay until the next attempt', () => {
  const never = { attempts: 0, failure: null }
  const rejection = { kind: 'failed', cause: 'rejected', reason: 'no' } as const
  test.each([
    ['the first failure', never, rejection, 0.5, 500],
    ['the third failure with the same cause', { attempts: 2, failure: 'rejected' } as const, rejection, 0.5, 2_000],
    ['the first failure with a new cause', { attempts: 9, failure: 'provider' } as const, rejection, 0.5, 500],
    ['a longer Retry-After', never, { ...rejection, retryAfterMs: 900 }, 0.5, 900],
    ['a shorter Retry-After', never, { ...rejection, retryAfterMs: 100 }, 0.5, 500],
    [
      'the provider: the time until the circuit closes',
      never,
      { ...rejection, cause: 'provider', retryAfterMs: 900 },
      0,
      900,
    ],
    ['the provider: with jitter', never, { ...rejection, cause: 'provider', retryAfterMs: 900 }, 1, 1_150],
  ] as const)('%s', (_, previous, failure, random, ms) => {
    expect(toRetryDelayMs(previous, failure, random)).toBe(ms)
  })
})
