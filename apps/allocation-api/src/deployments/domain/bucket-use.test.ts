import { expect, test } from 'vitest'
import { type ClaimOwnership, decideBucket, explainFailure } from './bucket-use.ts'

const claims: readonly ClaimOwnership[] = ['none', 'own', 'former', 'other']
const found = ['owned', 'foreign', 'absent'] as const
const decide = (claim: ClaimOwnership, lookup: (typeof found)[number], adopts: boolean) => {
  const verdict = decideBucket({ bucket: 'b', claim, found: lookup, adopts })
  return verdict.kind === 'usable' ? verdict.use : verdict.kind
}

test.each(found.flatMap(lookup => [true, false].map(adopts => [lookup, adopts] as const)))(
  'a bucket that is %s, adopted: %s',
  (lookup, adopts) => {
    const expected = { owned: adopts ? 'adopted' : 'bucket-exists', foreign: 'bucket-conflict', absent: 'new' }[lookup]
    expect(claims.map(claim => decide(claim, lookup, adopts))).toEqual([
      expected,
      expected,
      expected,
      'bucket-conflict',
    ])
  },
)

test.each([
  '[FATAL] bucket already exists! (b): <nil>',
  'creating S3 Bucket (b): BucketAlreadyExists',
  'BucketAlreadyOwnedByYou: Your previous request to create the named bucket succeeded',
])('%s gets words of the service', reason => {
  expect(explainFailure(reason, 'b')).toMatch(/^The bucket b exists already.*adoptBucket: true/)
  expect(explainFailure(reason, null)).toBe(reason)
  expect(explainFailure('The cloud is full.', 'b')).toBe('The cloud is full.')
})
