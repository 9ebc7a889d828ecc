import { describe, expect, it } from 'vitest'
import type { NameObservation } from '../../src/soak/checks/operations.ts'
import { findStaleReads } from '../../src/soak/checks/read-your-writes.ts'
import {
  commitment,
  createActiveState,
  createReservedState,
  grant,
  type Operations,
  observation,
  release,
  update,
} from './operations.ts'

const reserved = grant([0, 1], 'a')
const committed = commitment([2, 3], 'a')
const committedLate = commitment([10, 12], 'a')
const updated = update([10, 12], 'a', '10.0.0.2')
const released = release([20, 21], 'a')

const validObservations: readonly (readonly [what: string, operations: Operations, reading: NameObservation])[] = [
  ['the owner', [reserved], observation([2, 3], createReservedState('a'))],
  ['no owner before the response', [reserved], observation([0.5, 3], null)],
  ['no owner after a possible expiry', [reserved], observation([9, 11], null)],
  ['an active owner', [reserved, committed], observation([4, 5], createActiveState('a'))],
  ['no owner after the expiry, during the commit', [reserved, committedLate], observation([10.8, 11], null)],
  ['a reservation during the commit', [reserved, committed], observation([2.5, 3.5], createReservedState('a'))],
  [
    'the former address during an update',
    [reserved, committed, updated],
    observation([11, 13], createActiveState('a')),
  ],
  ['no owner during the release', [reserved, committed, released], observation([20.5, 20.6], null)],
  ['no owner after the release', [reserved, committed, released], observation([22, 23], null)],
  ['the owner in a complete list', [reserved], observation([2, 3], createReservedState('a'), { isWhole: true })],
  ['another name', [reserved], observation([2, 3], null, { name: 'globex' })],
]

const staleObservations: readonly (readonly [
  what: string,
  fault: RegExp,
  operations: Operations,
  reading: NameObservation,
])[] = [
  ['no owner before the expiry', /returned free/, [reserved, committedLate], observation([9.5, 10], null)],
  ['no owner after a late commit', /returned free/, [reserved, committedLate], observation([12.1, 12.2], null)],
  ['a lost reservation', /get returned free/, [reserved], observation([2, 3], null)],
  ['another owner', /returned reserved by owner of b/, [reserved], observation([2, 3], createReservedState('b'))],
  [
    'a lost commit',
    /returned reserved by owner of a with address null/,
    [reserved, committed],
    observation([4, 5], createReservedState('a')),
  ],
  [
    'the former address after an update',
    /instead of 10.0.0.2/,
    [reserved, committed, updated],
    observation([13, 14], createActiveState('a')),
  ],
  [
    'an active name without a commit',
    /before any commit/,
    [reserved, committed],
    observation([1.5, 1.8], createActiveState('a')),
  ],
  [
    'the owner after its release',
    /after an acknowledged release/,
    [reserved, committed, released],
    observation([22, 23], createActiveState('a')),
  ],
  [
    'a complete list without the name',
    /returned free/,
    [reserved, committed],
    observation([4, 5], null, { isWhole: true }),
  ],
]

describe('later reads', () => {
  it.each(validObservations)('may return %s', (_, operations, observation) => {
    expect(findStaleReads(operations, [observation])).toEqual([])
  })

  it.each(staleObservations)('caught: %s', (_, fault, operations, observation) => {
    expect(findStaleReads(operations, [observation]).join('\n')).toMatch(fault)
  })
})
