import { expect, it } from 'vitest'
import { findCoolOffViolations } from '../../src/soak/checks/cool-off.ts'
import { commitment, grant, lift, type Operations, rejection, release } from './operations.ts'

const COOL_OFF_MS = 10_000
/** Cool-off from 21 to 30 s. */
const held = [grant([0, 1], 'a'), commitment([2, 3], 'a')]
const released = [...held, release([20, 21], 'a')]
const other = grant([24, 25], 'b')
const takenBack = grant([24, 25], 'b', { formerToken: 'a' })
const rejected = rejection([24, 25], 'take-back', 'a', 409)

it.each<readonly [string, Operations]>([
  ['the former holder takes the name back', [...released, takenBack]],
  ['another client gets it later', [...released, grant([30, 31], 'b')]],
  ['a name that was never active', [grant([0, 1], 'a'), release([2, 3], 'a'), grant([4, 5], 'b')]],
  ['an operator lifted the cool-off', [...released, lift([22, 23]), other]],
  ['a release without a response', [...held, release([20, 21], 'a', false), other]],
  ['a release of what was taken back', [...released, takenBack, release([26, 27], null), grant([28, 29], 'c')]],
  ['the rejection of a take-back after a success', [...released, takenBack, rejected]],
  ['the rejection of a late take-back', [...released, rejection([29, 31], 'take-back', 'a', 409)]],
])('accepted: %s', (_, operations) => {
  expect(findCoolOffViolations(operations, COOL_OFF_MS)).toEqual([])
})

it.each<readonly [string, Operations, RegExp]>([
  ['another client gets the name', [...released, other], /owner of b got a name .* in the cool-off of acme/],
  ['a token of another name', [...released, { ...other, formerToken: 'x' }], /owner of b got a name/],
  ['the former holder is rejected', [...released, rejected], /take-back rejected/],
  ['after a release by an operator', [...held, release([20, 21], null), other], /owner of b got a name/],
])('caught: %s', (_, operations, violation) => {
  expect(findCoolOffViolations(operations, COOL_OFF_MS).join('\n')).toMatch(violation)
})
