import { describe, expect, test } from 'vitest'
import { type AttemptFailure, DEFAULT_RETRY_POLICY, mayHaveTakenEffect, parseRetryAfter, planRetry } from './retry.ts'

const noResponse: AttemptFailure = { kind: 'no-response' }
const response = (status: number, code?: string, retryAfterMs?: number): AttemptFailure => ({
  kind: 'response',
  status,
  ...(code === undefined ? {} : { code }),
  ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
})

const question = {
  rule: 'repeatable',
  failure: noResponse,
  attempts: 1,
  policy: DEFAULT_RETRY_POLICY,
  remainingMs: 60_000,
  random: 0.5,
} as const

describe('what is sent again', () => {
  test.each([
    ['no response', noResponse, { repeatable: true, 'under-key': true, 'if-rejected': false }],
    ['429', response(429, 'too-many-requests'), { repeatable: true, 'under-key': true, 'if-rejected': true }],
    ['502 of a proxy', response(502), { repeatable: true, 'under-key': true, 'if-rejected': false }],
    ['504 of a proxy', response(504), { repeatable: true, 'under-key': true, 'if-rejected': false }],
    [
      '503, outcome unknown',
      response(503, 'database-unavailable'),
      { repeatable: true, 'under-key': true, 'if-rejected': false },
    ],
    [
      '503 without an effect',
      response(503, 'database-read-only'),
      { repeatable: true, 'under-key': true, 'if-rejected': true },
    ],
    [
      '503 with an unknown code',
      response(503, 'later-code'),
      { repeatable: true, 'under-key': true, 'if-rejected': false },
    ],
    ['500', response(500, 'internal-error'), { repeatable: false, 'under-key': false, 'if-rejected': false }],
    ['400', response(400, 'invalid-json'), { repeatable: false, 'under-key': false, 'if-rejected': false }],
    ['404', response(404, 'not-found'), { repeatable: false, 'under-key': false, 'if-rejected': false }],
    ['409', response(409, 'conflict'), { repeatable: false, 'under-key': false, 'if-rejected': false }],
    ['an unexpected 200', response(200), { repeatable: false, 'under-key': false, 'if-rejected': false }],
  ] as const)('%s', (_, failure, expected) => {
    for (const [rule, isRepeated] of Object.entries(expected)) {
      const pause = planRetry({ ...question, rule: rule as keyof typeof expected, failure })
      expect({ rule, isRepeated: pause !== null }).toEqual({ rule, isRepeated })
    }
    expect(planRetry({ ...question, rule: 'never', failure })).toBe(null)
  })
})

describe('the pause', () => {
  test.each([
    ['first', 1, 0.5, undefined, 100],
    ['doubles', 3, 0.5, undefined, 400],
    ['has no minimum', 3, 0, undefined, 0],
    ['is limited', 4, 1, undefined, 1_000],
    ['is added to Retry-After', 1, 0.5, 5_000, 5_100],
  ] as const)('%s', (_, attempts, random, retryAfterMs, expected) => {
    const policy = { maxAttempts: 9, minBackoffMs: 200, maxBackoffMs: 1_000 }
    const failure = response(503, 'database-unavailable', retryAfterMs)
    expect(planRetry({ ...question, policy, failure, attempts, random })).toBe(expected)
  })

  test('is never longer than the time that is left', () => {
    const failure = response(429, 'too-many-attempts', 30_000)
    expect(planRetry({ ...question, failure, random: 0, remainingMs: 30_000 })).toBe(null)
    expect(planRetry({ ...question, failure, random: 0, remainingMs: 30_001 })).toBe(30_000)
  })

  test('ends with the last attempt', () => {
    const { maxAttempts } = DEFAULT_RETRY_POLICY
    expect(planRetry({ ...question, attempts: maxAttempts - 1 })).not.toBe(null)
    expect(planRetry({ ...question, attempts: maxAttempts })).toBe(null)
  })
})

test.each([
  ['no response', noResponse, true],
  ['500', response(500, 'internal-error'), true],
  ['503, outcome unknown', response(503, 'database-unavailable'), true],
  ['502 of a proxy', response(502), true],
  ['503 without an effect', response(503, 'database-read-only'), false],
  ['a witness that accepts no writes', response(503, 'draining'), false],
  ['429', response(429, 'too-many-requests'), false],
  ['409', response(409, 'conflict'), false],
] as const)('whether a request may have taken effect: %s', (_, failure, expected) => {
  expect(mayHaveTakenEffect(failure)).toBe(expected)
})

test.each([
  ['absent', null, undefined],
  ['seconds', '7', 7_000],
  ['zero', '0', 0],
  ['a date', 'Thu, 01 Jan 1970 00:01:00 GMT', 50_000],
  ['a date in the past', 'Thu, 01 Jan 1970 00:00:05 GMT', 0],
  ['a negative number', '-1x', undefined],
  ['text', 'soon', undefined],
])('Retry-After: %s', (_, header, expected) => {
  expect(parseRetryAfter(header, 10_000)).toBe(expected)
})
