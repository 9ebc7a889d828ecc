import { expect, test } from 'vitest'
import { classifyResponse } from './api.ts'

const failure = (code: number, more: object = {}) => ({
  success: false,
  errors: [{ code, message: 'Invalid', ...more }],
})

test.each([
  [200, { success: true, result: [] }, { kind: 'done' }],
  [200, undefined, { kind: 'unavailable' }],
  [302, undefined, { kind: 'unavailable' }],
  [500, '<html>', { kind: 'unavailable', reason: expect.stringContaining('500') }],
  [503, failure(10_001), { kind: 'unavailable', reason: expect.stringContaining('Invalid') }],
  [429, undefined, { kind: 'unavailable', reason: expect.stringContaining('rate') }],
  [400, failure(971), { kind: 'unavailable', reason: expect.stringContaining('rate') }],
  [400, failure(10_100), { kind: 'unavailable', reason: expect.stringContaining('rate') }],
  [403, failure(9109), { kind: 'doubt', unavailable: { reason: expect.stringContaining('API token') } }],
  [400, failure(10_000), { kind: 'doubt', unavailable: { reason: expect.stringContaining('API token') } }],
  [400, failure(6003, { error_chain: [{ code: 6111, message: 'x' }] }), { kind: 'doubt' }],
  [404, failure(7003), { kind: 'doubt' }],
  [404, failure(5), { kind: 'doubt' }],
  [400, failure(7003), { kind: 'doubt' }],
  [400, failure(1001), { kind: 'doubt' }],
  [403, failure(1), { kind: 'doubt' }],
  [403, failure(81_053), { kind: 'declined', code: 81_053 }],
  [404, failure(81_044), { kind: 'declined', code: 81_044 }],
  [400, failure(81_053), { kind: 'declined', code: 81_053, reason: 'Invalid (81053)' }],
  [400, failure(1004, { error_chain: [{ code: 9005, message: 'Bad' }] }), { kind: 'declined', code: 9005 }],
  [400, failure(9005, { source: { pointer: '/posts/3/content' } }), { kind: 'declined', culprit: ['posts', 3] }],
])('HTTP status %i with %j', (status, body, expected) => {
  expect(classifyResponse({ status, body }, [])).toMatchObject(expected)
})

test.each([
  [81_045, 'The record quota has been exceeded.', 'room'],
  [1, 'Record quota exceeded.', 'room'],
  [9300, 'DNS record has 1 tags, exceeding the quota of 0.', 'record'],
  [1038, 'x', 'zone'],
  [81_053, 'x', 'record'],
  [81_058, 'x', 'record'],
  [9005, 'x', 'record'],
  [9021, 'x', 'record'],
  [1212, 'x', 'unknown'],
] as const)('a refusal with the code %i and the text "%s" is about: %s', (code, message, scope) => {
  const plain = classifyResponse({ status: 400, body: failure(code, { message }) }, [])
  const chained = failure(1004, { message: 'DNS Validation Error', error_chain: [{ code, message }] })
  expect(plain).toMatchObject({ kind: 'declined', scope })
  if (scope !== 'unknown') expect(classifyResponse({ status: 400, body: chained }, [])).toMatchObject({ scope })
})

test.each([
  ['a stale zone', 403, 9109],
  ['a rejection', 400, 9005],
  ['an outage', 500, 1],
])('secrets are redacted: %s', (_, status, code) => {
  const classified = classifyResponse({ status, body: failure(code, { message: 'Not t0ken!' }) }, ['t0ken'])
  expect(JSON.stringify(classified)).toContain('Not <redacted>!')
  expect(JSON.stringify(classified)).not.toContain('t0ken')
})
