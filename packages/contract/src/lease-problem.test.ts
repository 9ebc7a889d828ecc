import { describe, expect, test } from 'vitest'
import * as z from 'zod'
import { firstLeaseViolation, leaseErrorCodes, leaseProblem, leaseRule } from './lease-problem.ts'

const validate = (schema: z.ZodType, value: unknown) => {
  const { error } = schema.safeParse(value)
  return error && firstLeaseViolation(error)
}

describe('a rule attaches its code and detail to a schema', () => {
  test.each(leaseErrorCodes)('%s is reported with its detail', code => {
    expect(validate(z.string(leaseRule(code, 'The rule: the reason.')), 5)).toEqual({
      code,
      detail: 'The rule: the reason.',
    })
  })

  test.each([
    ['a message without a code', 'Too small'],
    ['a code of the other service', 'token-mismatch: No.'],
    ['a property of every object', 'constructor: x'],
    ['an empty message', ''],
  ])('%s is invalid-request, and its text is not exposed', (_, message) => {
    const violation = validate(z.string(message), 5)
    expect(violation?.code).toBe('invalid-request')
    expect(violation?.detail).toMatch(/^The request /)
  })

  test('an error without issues is invalid-request', () => {
    expect(firstLeaseViolation(new z.ZodError([])).code).toBe('invalid-request')
  })
})

test('every code is unique and consists of lower-case words with hyphens', () => {
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
