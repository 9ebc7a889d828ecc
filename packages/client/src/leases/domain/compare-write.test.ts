import { expect, test } from 'vitest'
import { compareWrite, type SentWrite, type WriteComparison } from './compare-write.ts'

test.each<[SentWrite['kind'], string, number, WriteComparison, boolean?]>([
  ['acquire', 'a', 6, 'applied'],
  ['acquire', 'a', 7, 'applied'],
  ['acquire', 'a', 6, 'possible', false],
  ['acquire', 'a', 5, 'unapplied', false],
  ['renew', 'a', 6, 'possible', false],
  ['renew', 'b', 6, 'superseded', false],
  ['release', '', 6, 'applied', false],
  ['acquire', '', 5, 'unapplied'],
  ['acquire', 'a', 5, 'unapplied'],
  ['acquire', 'b', 6, 'superseded'],
  ['acquire', '', 6, 'superseded'],
  ['renew', 'a', 6, 'applied'],
  ['renew', 'a', 5, 'unapplied'],
  ['renew', 'b', 6, 'superseded'],
  ['release', '', 6, 'applied'],
  ['release', 'b', 7, 'applied'],
  ['release', 'a', 5, 'unapplied'],
  ['release', 'a', 6, 'superseded'],
])('%s of generation 5 by a, then the lease is "%s" %i: %s', (kind, holder, generation, expected, isUnique = true) => {
  const current = { holder, generation, acquiredAt: '', expiresAt: '' }
  expect(compareWrite({ kind, holder: 'a', isUnique, generation: 5 }, current)).toBe(expected)
})
