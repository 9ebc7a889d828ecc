import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { firstLeaseViolation, leaseErrorCodes, leaseProblem, leaseRule } from './lease-problem.ts'

const faultFor = (schema: z.ZodType, value: unknown) => {
  const { error } = schema.safeParse(value)
  return error && firstLeaseViolation(error)
}

describe('a fault travels in the message of a schema', () => {
  test.each(leaseErrorCodes)('%s comes back with its detail', code => {
    expect(faultFor(z.string(leaseRule(code, 'Say what: and why.')), 5)).toEqual({
      code,
      detail: 'Say what: and why.',
    })
  })

  test.each([
    ['a message without a code', 'Too small'],
    ['a code of the other service', 'token-mismatch: No.'],
    ['a property of every object', 'constructor: x'],
    ['an empty message', ''],
  ])('%s is invalid-request, and its text is not exposed', (_, message) => {
    const violation = faultFor(z.string(message), 5)
    expect(violation?.code).toBe('invalid-request')
    expect(violation?.detail).toMatch(/^The request /)
  })

  test('an error without issues is invalid-request', () => {
    expect(firstLeaseViolation(new z.ZodError([])).code).toBe('invalid-request')
  })
})

test('every code is written in small letters and hyphens, and is there once', () => {
  for (const code of leaseErrorCodes) expect(code).toMatch(/^[a-z]+(-[a-z]+)*$/)
  expect(new Set(leaseErrorCodes).size).toBe(leaseErrorCodes.length)
})

describe('an error body', () => {
  test.each<readonly [rule: string, good: boolean, value: unknown]>([
    ['a code and a detail', true, { error: 'invalid-slot', detail: 'Too long.' }],
    ['detail may be absent', true, { error: 'unauthorized' }],
    ['a request id for an unexpected failure', true, { error: 'internal-error', requestId: 'x' }],
    ['an unknown code', false, { error: 'oops' }],
    ['no code', false, { detail: 'x' }],
    ['a detail that is not text', false, { error: 'invalid-slot', detail: {} }],
  ])('%s', (_, good, value) => {
    expect(leaseProblem.safeParse(value).success).toBe(good)
  })
})
