import { expect, test } from 'vitest'
import { createBucketLookup, parseBucketNames } from './find-bucket.ts'

const list = (buckets: string) =>
  `<?xml version="1.0"?><ListAllMyBucketsResult><Owner><ID>o</ID></Owner>${buckets}</ListAllMyBucketsResult>`
const named = (...names: string[]) =>
  list(`<Buckets>${names.map(name => `<Bucket><Name>${name}</Name></Bucket>`).join('')}</Buckets>`)
const error = (code: string) => `<Error><Code>${code}</Code></Error>`

test.each([
  [named(), []],
  [named('one'), ['one']],
  [named('one', '007'), ['one', '007']],
  [list('<Buckets/>'), []],
  [list(''), []],
  ['garbage', []],
])('the names in %s', (text, names) => expect(parseBucketNames(Buffer.from(text))).toEqual(names))

const location = '<LocationConstraint>fsn1</LocationConstraint>'
const keys = { region: 'fsn1', accessKey: 'a'.repeat(16), secretKey: 's'.repeat(32) } as const

test.each([
  ['absent', [404, error('NoSuchBucket')], [200, named('b')]],
  ['owned', [200, location], [200, named('a', 'b')]],
  ['owned', [403, error('AccessDenied')], [200, named('b')]],
  ['foreign', [403, error('AccessDenied')], [200, named('bb')]],
  ['foreign', [200, location], [200, named()]],
  ['unavailable', [404, '<html/>'], [200, named('b')]],
  ['unavailable', [403, error('SignatureDoesNotMatch')], [200, named('b')]],
  ['unavailable', [301, error('PermanentRedirect')], [200, named('b')]],
  ['unavailable', [500, ''], [200, named('b')]],
  ['unavailable', [200, location], [503, error('SlowDown')]],
  ['unavailable', [200, location], [403, error('AccessDenied')]],
] satisfies [string, [number, string], [number, string]][])('%s: %j, then %j', async (kind, ...answers) => {
  const paths: string[] = []
  const findBucket = createBucketLookup({
    domain: 'storage.test',
    now: Date.now,
    get: async url => {
      const [status, body] = answers[paths.length] ?? [500, '']
      paths.push(`${url.pathname}${url.search}`)
      return { kind: 'response', status, body: Buffer.from(body) }
    },
  })
  expect(await findBucket(keys, 'b')).toMatchObject({ kind })
  expect(['/b?location', '/']).toEqual(expect.arrayContaining(paths))
})
