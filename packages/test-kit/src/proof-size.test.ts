import { describe, expect, test } from 'vitest'
import { isProof, proofScale, proofSize } from './proof-size.ts'

describe('proofSize', () => {
  test.skipIf(isProof)('is the everyday size in an ordinary run', () => {
    expect([proofSize(500), proofSize(500, 20)]).toEqual([1, 20])
  })
})

describe('proofScale', () => {
  test.each([
    [undefined, 1],
    ['', 1],
    ['0.25', 0.25],
    ['3', 3],
  ])('PROOF_SCALE=%s is %d', (text, scale) => {
    expect(proofScale({ PROOF_SCALE: text })).toBe(scale)
  })

  test.each(['0', '-1', '10%', 'full', '1e3', '101', ' 1'])('rejects PROOF_SCALE=%j', value => {
    expect(() => proofScale({ PROOF_SCALE: value })).toThrow(
      `PROOF_SCALE=${JSON.stringify(value)} is invalid. Set a fraction of the full size`,
    )
  })
})
