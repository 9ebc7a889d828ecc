import { describe, expect, test } from 'vitest'
import * as z from 'zod'
import { errorCodes, firstViolation, problem, rule } from './allocation-problem.ts'

const validate = (schema: z.ZodType, value: unknown) => {
  const { error } = schema.safeParse(value)
  return error && firstViolation(error)
}

describe('a rule attaches its code and detail to a schema', () => {
  test.each(errorCodes)('%s is reported with its detail', code => {
    expect(validate(z.string(rule(code, 'The rule: the reason.')), 5)).toEqual({
      code,
      detail: 'The rule: the reason.',
    })
  })

  test('the first violation in the order of the fields is reported', () => {
    const schema = z.object({ a: z.string(rule('missing-token', 'A.')), b: z.string(rule('invalid-fqdn', 'B.')) })
    expect(validate(schema, {})).toEqual({ code: 'missing-token', detail: 'A.' })
    expect(validate(schema, { b: 5, a: 'x' })).toEqual({ code: 'invalid-fqdn', detail: 'B.' })
  })

  test.each([
    ['a message without a code', 'Too small'],
    ['a message with an unknown code', 'nonsense: Too small.'],
    ['a message that begins with a code and has no detail', 'conflict'],
    ['an empty message', ''],
    ['a property of every object', 'constructor: x'],
  ])('%s is invalid-format, and its text is not exposed', (_, message) => {
    const violation = validate(z.string(message), 5)
    expect(violation?.code).toBe('invalid-format')
    expect(violation?.detail).toMatch(/^The request /)
  })

  test('an error without issues is invalid-format', () => {
    expect(firstViolation(new z.ZodError([])).code).toBe('invalid-format')
  })
})

test('every code is unique and consists of lower-case words with hyphens', () => {
  for (const code of errorCodes) expect(code).toMatch(/^[a-z]+(-[a-z]+)*$/)
  expect(new Set(errorCodes).size).toBe(errorCodes.length)
})

describe('an error body', () => {
  test.each<readonly [rule: string, good: boolean, value: unknown]>([
    ['a code and a detail', true, { error: 'conflict', detail: 'The name is taken.' }],
    ['detail may be absent', true, { error: 'conflict' }],
    ['a request id for an unexpected failure', true, { error: 'internal-error', requestId: 'x' }],
    ['an unknown code', false, { error: 'oops' }],
    ['no code', false, { detail: 'x' }],
    ['a detail that is not text', false, { error: 'conflict', detail: {} }],
  ])('%s', (_, good, value) => {
    expect(problem.safeParse(value).success).toBe(good)
  })
})
