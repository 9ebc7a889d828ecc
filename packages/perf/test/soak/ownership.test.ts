import { describe, expect, it } from 'vitest'
import { findOwnershipViolations } from '../../src/soak/checks/ownership.ts'
import { commitment, grant, type Operations, rejection, release, renewal } from './operations.ts'

const good: readonly (readonly [what: string, operations: Operations])[] = [
  ['a grant after an expiry', [grant([0, 1], 'a'), grant([10, 11], 'b')]],
  ['a grant after a release', [grant([0, 1], 'a'), release([2, 3], 'a'), grant([1.9, 3], 'b')]],
  [
    'a release without a response',
    [grant([0, 1], 'a'), release([2, Number.POSITIVE_INFINITY], 'a', false), grant([4, 5], 'b')],
  ],
  ['a release without a token', [grant([0, 1], 'a'), release([2, 3], null), grant([3, 4], 'b')]],
  ['one reservation with two responses', [grant([0, 1], 'a'), grant([0, 1], 'a')]],
  ['another name', [grant([0, 1], 'a'), grant([1, 2], 'b', { name: 'globex' })]],
  ['a second commit', [grant([0, 1], 'a'), commitment([2, 3], 'a'), rejection([4, 5], 'commit', 'a', 409)]],
  [
    'a rejection after another client released the name',
    [grant([0, 1], 'a'), release([2, 3], null), rejection([3, 4], 'renew', 'a')],
  ],
]

const bad: readonly (readonly [what: string, fault: RegExp, operations: Operations])[] = [
  ['two owners at the same time', /two owners/, [grant([0, 1], 'a'), grant([5, 6], 'b')]],
  ['two owners, one renewed', /two owners/, [grant([0, 1], 'a'), renewal([8, 9], 'a', 18), grant([12, 13], 'b')]],
  ['two owners, one active', /two owners/, [grant([0, 1], 'a'), commitment([2, 3], 'a'), grant([90, 91], 'b')]],
  [
    'two owners with another short ownership in between',
    /owner of a owned .* owner of c owned/,
    [grant([0, 1], 'a'), commitment([1, 2], 'a'), grant([3, 4], 'b'), release([3.5, 5], 'b'), grant([20, 21], 'c')],
  ],
  ['a release before the grant', /two owners/, [release([-3, -2], null), grant([0, 1], 'a'), grant([4, 5], 'b')]],
  ['a release by another token', /two owners/, [grant([0, 1], 'a'), release([2, 3], 'x'), grant([4, 5], 'b')]],
  [
    'a token that was granted twice',
    /duplicate token/,
    [grant([0, 1], 'a'), grant([30, 31], 'a', { callId: 'other' })],
  ],
  [
    'an owner whose commit was rejected',
    /owner rejected: commit got 410/,
    [grant([0, 1], 'a'), rejection([2, 3], 'commit', 'a', 410)],
  ],
  [
    'an active owner whose release was rejected',
    /release got 404/,
    [grant([0, 1], 'a'), commitment([2, 3], 'a'), rejection([30, 31], 'release', 'a')],
  ],
]

describe('one owner per name', () => {
  it.each(good)('good: %s', (_, operations) => {
    expect(findOwnershipViolations(operations)).toEqual([])
    expect(findOwnershipViolations(operations.toReversed())).toEqual([])
  })

  it.each(bad)('caught: %s', (_, fault, operations) => {
    expect(findOwnershipViolations(operations).join('\n')).toMatch(fault)
    expect(findOwnershipViolations(operations.toReversed()).join('\n')).toMatch(fault)
  })
})
