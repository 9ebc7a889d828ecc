import { describe, expect, it } from 'vitest'
import { ownershipFaults } from '../../src/soak/checks/ownership.ts'
import { type Acts, at, commitment, denial, grant, release, renewal } from './acts.ts'

const good: readonly (readonly [what: string, acts: Acts])[] = [
  ['one after the other has expired', [grant([0, 1], 'a'), grant([10, 11], 'b')]],
  ['one after the other was released', [grant([0, 1], 'a'), release([2, 3], 'a'), grant([1.9, 3], 'b')]],
  [
    'an active one that was released',
    [grant([0, 1], 'a'), commitment([2, 3], 'a'), release([40, 41], 'a'), grant([40, 42], 'b')],
  ],
  [
    'a release that was not answered',
    [grant([0, 1], 'a'), release([2, Number.POSITIVE_INFINITY], 'a', false), grant([4, 5], 'b')],
  ],
  ['a release without a token, by anybody', [grant([0, 1], 'a'), release([2, 3], null), grant([3, 4], 'b')]],
  [
    'a release without a token that was under way at the grant',
    [grant([0, 3], 'a'), release([0, 2], null), grant([1, 4], 'b')],
  ],
  ['one reservation that was told twice', [grant([0, 1], 'a'), grant([0, 1], 'a')]],
  ['another name', [grant([0, 1], 'a'), grant([1, 2], 'b', { name: 'globex' })]],
  ['a refusal after the expiry', [grant([0, 1], 'a'), denial([11, 12], 'commit', 'a', 410)]],
  ['a refusal that may have come after the expiry', [grant([0, 1], 'a'), denial([9, 11], 'commit', 'a', 410)]],
  ['a second commit', [grant([0, 1], 'a'), commitment([2, 3], 'a'), denial([4, 5], 'commit', 'a', 409)]],
  [
    'a refusal after somebody else released it',
    [grant([0, 1], 'a'), release([2, 3], null), denial([3, 4], 'renew', 'a')],
  ],
]

const bad: readonly (readonly [what: string, fault: RegExp, acts: Acts])[] = [
  ['two owners at once', /two owners/, [grant([0, 1], 'a'), grant([5, 6], 'b')]],
  ['two owners, one renewed', /two owners/, [grant([0, 1], 'a'), renewal([8, 9], 'a', 18), grant([12, 13], 'b')]],
  [
    'two owners, one active for ever',
    /two owners/,
    [grant([0, 1], 'a'), commitment([2, 3], 'a'), grant([90, 91], 'b')],
  ],
  ['two owners, one before the release', /two owners/, [grant([0, 1], 'a'), release([6, 7], 'a'), grant([5, 6], 'b')]],
  [
    'two owners with a short one in between',
    /owner of a had .* owner of c had/,
    [grant([0, 1], 'a'), commitment([1, 2], 'a'), grant([3, 4], 'b'), release([3.5, 5], 'b'), grant([20, 21], 'c')],
  ],
  ['a release by another token', /two owners/, [grant([0, 1], 'a'), release([2, 3], 'x'), grant([4, 5], 'b')]],
  [
    'a release without a token that was over before',
    /two owners/,
    [release([-3, -2], null), grant([0, 1], 'a'), grant([4, 5], 'b')],
  ],
  [
    'a token that two were given',
    /one token twice/,
    [grant([0, 1], 'a'), grant([30, 31], 'a', { intention: 'other' })],
  ],
  [
    'an owner that was refused',
    /an owner was refused: commit answered 410/,
    [grant([0, 1], 'a'), denial([2, 3], 'commit', 'a', 410)],
  ],
  [
    'an active owner whose release was refused',
    /release answered 404/,
    [grant([0, 1], 'a'), commitment([2, 3], 'a'), denial([30, 31], 'release', 'a')],
  ],
]

describe('one owner a name', () => {
  it.each(good)('good: %s', (_, acts) => {
    expect(ownershipFaults(acts)).toEqual([])
    expect(ownershipFaults(acts.toReversed())).toEqual([])
  })

  it.each(bad)('caught: %s', (_, fault, acts) => {
    expect(ownershipFaults(acts).join('\n')).toMatch(fault)
    expect(ownershipFaults(acts.toReversed()).join('\n')).toMatch(fault)
  })

  it('says who, and when', () => {
    const [fault] = ownershipFaults([grant([0, 1], 'a'), grant([5, 6], 'b')])
    expect(fault).toBe(
      `two owners: owner of a had acme from ${new Date(at(0.5)).toISOString()} to ${new Date(at(10.5)).toISOString()} at least; ` +
        `owner of b had acme from ${new Date(at(5.5)).toISOString()} to ${new Date(at(15.5)).toISOString()} at least`,
    )
  })
})
