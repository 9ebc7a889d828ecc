import { describe, expect, test } from 'vitest'
import * as z from 'zod'
import { errorCodes, firstViolation, problem, rule } from './allocation-problem.ts'

const faultFor = (schema: z.ZodType, value: unknown) => {
  const { error } = schema.safeParse(value)
  return error && firstViolation(error)
}

describe('a fault travels in the message of a schema', () => {
  test.each(errorCodes)('%s comes back with its detail', code => {
    expect(faultFor(z.string(rule(code, 'Say what: and why.')), 5)).toEqual({ code, detail: 'Say what: and why.' })
  })

  test('the first fault in the order of the fields counts', () => {
    const schema = z.object({ a: z.string(rule('missing-token', 'A.')), b: z.string(rule('invalid-fqdn', 'B.')) })
    expect(faultFor(schema, {})).toEqual({ code: 'missing-token', detail: 'A.' })
    expect(faultFor(schema, { b: 5, a: 'x' })).toEqual({ code: 'invalid-fqdn', detail: 'B.' })
  })

  test.each([
    ['a message without a code', 'Too small'],
    ['a message with an unknown code', 'nonsense: Too small.'],
    ['a message that begins with a code and has no detail', 'conflict'],
    ['an empty message', ''],
    ['a property of every object', 'constructor: x'],
  ])('%s is invalid-format, and its text is not exposed', (_, message) => {
    const violation = faultFor(z.string(message), 5)
    expect(violation?.code).toBe('invalid-format')
    expect(violation?.detail).toMatch(/^The request /)
  })

  test('an error without issues is invalid-format', () => {
    expect(firstViolation(new z.ZodError([])).code).toBe('invalid-format')
  })
})

test('every code is written in small letters and hyphens, and is there once', () => {
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
