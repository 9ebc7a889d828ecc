import { globSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { longProofs, proofScale, proofSize } from './proof-size.ts'

afterEach(() => {
  vi.unstubAllEnvs()
})

describe('proofSize', () => {
  test.each([
    [undefined, 50_000, 5_000],
    ['', 50, 5],
    ['0.1', 70, 7],
    ['0.1', 1, 1],
    ['1', 500, 500],
    ['0.25', 100, 25],
    ['3', 500, 1_500],
  ])('PROOF_SCALE=%s makes %i into %i', (scale, full, expected) => {
    vi.stubEnv('PROOF_SCALE', scale)
    expect(proofSize(full)).toBe(expected)
  })

  test('is never less than the minimum', () => {
    vi.stubEnv('PROOF_SCALE', '0.1')
    expect(proofSize(12, 4)).toBe(4)
    expect(proofSize(120, 4)).toBe(12)
  })
})

describe('proofScale', () => {
  test.each(['0', '-1', '10%', 'full', '1e3', '101', ' 1'])('rejects PROOF_SCALE=%j', value => {
    expect(() => proofScale({ PROOF_SCALE: value })).toThrow(
      `PROOF_SCALE=${JSON.stringify(value)} is invalid. Set a fraction of the full size`,
    )
  })
})

test('each long proof is one test file', () => {
  const root = fileURLToPath(new URL('../../../', import.meta.url))
  const files = globSync('{apps,packages,tests,examples}/**/*.test.ts', { cwd: root, exclude: ['**/node_modules/**'] })
  const counts = longProofs.map(name => [name, files.filter(file => `/${file}`.endsWith(`/${name}.test.ts`)).length])
  expect(counts).toEqual(longProofs.map(name => [name, 1]))
})
