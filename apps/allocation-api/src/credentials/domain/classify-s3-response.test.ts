import { describe, expect, test } from 'vitest'
import { type ListAnswer, verdictOf } from './classify-s3-response.ts'

const error = (code: string): ListAnswer => ({ kind: 'error', code })
const listing = (owner: string): ListAnswer => ({ kind: 'listing', owner })
const other: ListAnswer = { kind: 'other' }

const rows: readonly (readonly [status: number, answer: ListAnswer, kind: string, message: RegExp])[] = [
  [200, listing('user-1'), 'accepted', /accepts/],
  [200, listing('anonymous'), 'unavailable', /as if nobody had signed/],
  [200, listing(''), 'unavailable', /as if nobody had signed/],
  [200, other, 'unavailable', /as S3 does \(status 200\)/],
  [200, error('InvalidAccessKeyId'), 'unavailable', /as S3 does/],
  [201, listing('user-1'), 'unavailable', /as S3 does/],
  [204, other, 'unavailable', /as S3 does/],
  [403, error('InvalidAccessKeyId'), 'rejected', /does not know this access key.*\(InvalidAccessKeyId\)$/],
  [403, error('SignatureDoesNotMatch'), 'rejected', /secret key does not belong/],
  [403, error('AccessDenied'), 'rejected', /good and restricted/],
  [403, error('UserSuspended'), 'rejected', /suspended/],
  [403, error('AccountProblem'), 'rejected', /account/],
  [400, error('ExpiredToken'), 'rejected', /expired/],
  [400, error('InvalidToken'), 'rejected', /temporary/],
  [403, error('InvalidSecurity'), 'rejected', /not valid/],
  [401, other, 'rejected', /refuses/],
  [403, other, 'rejected', /refuses/],
  [403, error('SomethingNew<b>'), 'rejected', /^The object storage refuses these keys\.$/],
  [403, listing('user-1'), 'rejected', /refuses/],
  [403, error('RequestTimeTooSkewed'), 'unavailable', /clock.*keys are not at fault/s],
  [400, error('RequestTimeTooSkewed'), 'unavailable', /clock/],
  [400, error('AuthorizationHeaderMalformed'), 'unavailable', /as S3 does \(status 400\)/],
  [400, error('constructor'), 'unavailable', /as S3 does/],
  [404, other, 'unavailable', /as S3 does/],
  [301, error('PermanentRedirect'), 'unavailable', /redirect/],
  [307, error('InvalidAccessKeyId'), 'unavailable', /redirect/],
  [304, other, 'unavailable', /redirect/],
  [429, error('InvalidAccessKeyId'), 'unavailable', /fewer requests/],
  [503, error('SlowDown'), 'unavailable', /fewer requests/],
  [500, error('AccessDenied'), 'unavailable', /failed \(status 500\)/],
  [502, other, 'unavailable', /failed \(status 502\)/],
  [599, other, 'unavailable', /failed/],
]

describe('what an answer to ListBuckets says of the keys', () => {
  test.each(rows)('%i %j: %s', (status, answer, kind, message) => {
    const verdict = verdictOf(status, answer)
    expect(verdict.kind).toBe(kind)
    expect(verdict.message).toMatch(message)
  })
})

test('each refusal has a text of its own', () => {
  const refusals = rows.filter(([, { kind }, verdict]) => kind === 'error' && verdict === 'rejected')
  const texts = refusals.map(([status, answer]) => verdictOf(status, answer).message)
  expect(new Set(texts).size).toBe(9)
})

test('no text quotes a code that is not in our list, nor an owner', () => {
  const marked = [error('mark-code'), listing('mark-owner')]
  const said = [200, 301, 400, 403, 429, 500].flatMap(status => marked.map(answer => verdictOf(status, answer).message))
  expect(said.join()).not.toContain('mark')
})
