import { describe, expect, it } from 'vitest'
import type { NameObservation } from '../../src/soak/checks/operations.ts'
import { findStaleReads } from '../../src/soak/checks/read-your-writes.ts'
import { activeOf, commitment, grant, type Operations, reading, release, reservedOf } from './operations.ts'

const taken = grant([0, 1], 'a')
const committed = commitment([2, 3], 'a')
const freed = release([20, 21], 'a')

const good: readonly (readonly [what: string, operations: Operations, reading: NameObservation])[] = [
  ['the owner', [taken], reading([2, 3], reservedOf('a'))],
  ['no owner before the response', [taken], reading([0.5, 3], null)],
  ['no owner after a possible expiry', [taken], reading([9, 11], null)],
  ['an active owner', [taken, committed], reading([4, 5], activeOf('a'))],
  ['a reservation during the commit', [taken, committed], reading([2.5, 3.5], reservedOf('a'))],
  ['an active name before the response to the commit', [taken, committed], reading([2.5, 2.8], activeOf('a'))],
  ['no owner during the release', [taken, committed, freed], reading([20.5, 20.6], null)],
  ['the owner during the release', [taken, committed, freed], reading([20.5, 22], activeOf('a'))],
  ['no owner after the release', [taken, committed, freed], reading([22, 23], null)],
  ['a new reservation by a late attempt', [{ ...taken, attempts: 2 }, freed], reading([22, 23], reservedOf('a'))],
  ['the owner in a complete list', [taken], reading([2, 3], reservedOf('a'), { isWhole: true })],
  ['another name', [taken], reading([2, 3], null, { name: 'globex' })],
]

const bad: readonly (readonly [what: string, fault: RegExp, operations: Operations, reading: NameObservation])[] = [
  ['a lost reservation', /get returned free/, [taken], reading([2, 3], null)],
  ['another owner', /returned reserved by owner of b/, [taken], reading([2, 3], reservedOf('b'))],
  [
    'a lost commit',
    /returned reserved by owner of a with address null/,
    [taken, committed],
    reading([4, 5], reservedOf('a')),
  ],
  [
    'a commit to another address',
    /instead of 10.0.0.1/,
    [taken, committed],
    reading([4, 5], activeOf('a', '10.9.9.9')),
  ],
  ['a lost active name, much later', /returned free/, [taken, committed], reading([99, 100], null)],
  ['an active name without a commit', /before any commit/, [taken, committed], reading([1.5, 1.8], activeOf('a'))],
  [
    'the owner after its release',
    /after an acknowledged release/,
    [taken, committed, freed],
    reading([22, 23], activeOf('a')),
  ],
  ['a complete list without the name', /returned free/, [taken, committed], reading([4, 5], null, { isWhole: true })],
]

describe('later reads', () => {
  it.each(good)('may show %s', (_, operations, one) => {
    expect(findStaleReads(operations, [one])).toEqual([])
  })

  it.each(bad)('caught: %s', (_, fault, operations, one) => {
    expect(findStaleReads(operations, [one]).join('\n')).toMatch(fault)
  })
})
