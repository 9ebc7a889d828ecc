import { describe, expect, it } from 'vitest'
import type { Reading } from '../../src/soak/checks/operations.ts'
import { readingFaults } from '../../src/soak/checks/read-your-writes.ts'
import { type Acts, activeOf, commitment, grant, reading, release, reservedOf } from './acts.ts'

const taken = grant([0, 1], 'a')
const committed = commitment([2, 3], 'a')
const freed = release([20, 21], 'a')

const good: readonly (readonly [what: string, acts: Acts, reading: Reading])[] = [
  ['its owner', [taken], reading([2, 3], reservedOf('a'))],
  ['nobody, before the answer', [taken], reading([0.5, 3], null)],
  ['nobody, when it may have expired', [taken], reading([9, 11], null)],
  ['an active owner', [taken, committed], reading([4, 5], activeOf('a'))],
  ['it still reserved, while it is committed', [taken, committed], reading([2.5, 3.5], reservedOf('a'))],
  ['it active before the answer to the commit', [taken, committed], reading([2.5, 2.8], activeOf('a'))],
  ['nobody, while it is released', [taken, committed, freed], reading([20.5, 20.6], null)],
  ['its owner, while it is released', [taken, committed, freed], reading([20.5, 22], activeOf('a'))],
  ['nobody after its release', [taken, committed, freed], reading([22, 23], null)],
  [
    'who reserved again by an attempt that came late',
    [{ ...taken, attempts: 2 }, freed],
    reading([22, 23], reservedOf('a')),
  ],
  ['in a whole list', [taken], reading([2, 3], reservedOf('a'), { isWhole: true })],
  ['another name', [taken], reading([2, 3], null, { name: 'globex' })],
]

const bad: readonly (readonly [what: string, fault: RegExp, acts: Acts, reading: Reading])[] = [
  ['a lost reservation', /get showed free/, [taken], reading([2, 3], null)],
  ['another owner', /showed reserved, of owner of b/, [taken], reading([2, 3], reservedOf('b'))],
  ['a lost commit', /showed reserved, of owner of a at null/, [taken, committed], reading([4, 5], reservedOf('a'))],
  [
    'a commit to another address',
    /committed to 10.0.0.1/,
    [taken, committed],
    reading([4, 5], activeOf('a', '10.9.9.9')),
  ],
  ['a lost active name, much later', /showed free/, [taken, committed], reading([99, 100], null)],
  ['an active name that nobody committed', /before any commit/, [taken, committed], reading([1.5, 1.8], activeOf('a'))],
  [
    'who had released it',
    /after the release was acknowledged/,
    [taken, committed, freed],
    reading([22, 23], activeOf('a')),
  ],
  ['a whole list without it', /showed free/, [taken, committed], reading([4, 5], null, { isWhole: true })],
]

describe('later reads', () => {
  it.each(good)('may show %s', (_, acts, one) => {
    expect(readingFaults(acts, [one])).toEqual([])
  })

  it.each(bad)('caught: %s', (_, fault, acts, one) => {
    expect(readingFaults(acts, [one]).join('\n')).toMatch(fault)
  })
})
