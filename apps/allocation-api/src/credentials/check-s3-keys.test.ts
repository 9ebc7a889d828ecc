import { describe, expect, test } from 'vitest'
import { classifyS3Response, type ListBucketsResponse, parseS3Response } from './check-s3-keys.ts'

const keys = { accessKey: 'AKIDACCESSKEY0001', secretKey: 'secretKeySecretKeySecretKey00001' }
const read = (text: string) => parseS3Response(Buffer.from(text), keys)
const xml = '<?xml version="1.0" encoding="UTF-8"?>'
const list = (id: string) =>
  `<ListAllMyBucketsResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Owner><ID>${id}</ID><DisplayName>D</DisplayName></Owner><Buckets><Bucket><Name>b</Name></Bucket></Buckets></ListAllMyBucketsResult>`
const other: ListBucketsResponse = { kind: 'other' }

/** Ten billion characters, if entities were replaced. */
const bomb = `<!DOCTYPE l [<!ENTITY a "aaaaaaaaaa">${[...'bcdefghij']
  .map((name, at) => `<!ENTITY ${name} "${`&${'abcdefghi'[at]};`.repeat(10)}">`)
  .join('')}]>`

describe('the body of a response', () => {
  test.each<readonly [what: string, text: string, answer: ListBucketsResponse]>([
    ['a listing', xml + list('user-1'), { kind: 'buckets', owner: 'user-1' }],
    ['a listing without declaration', list('anonymous'), { kind: 'buckets', owner: 'anonymous' }],
    ['an id that looks like a number is text', list('007'), { kind: 'buckets', owner: '007' }],
    [
      'an id with a comment and CDATA',
      list('anony<!-- - --><![CDATA[mous]]>'),
      { kind: 'buckets', owner: 'anonymous' },
    ],
    ['an empty id', list(''), { kind: 'buckets', owner: '' }],
    ['an error', `${xml}<Error><Code>AccessDenied</Code><Message/></Error>`, { kind: 'error', code: 'AccessDenied' }],
    ['an error behind a byte order mark', '\ufeff<Error><Code>X</Code></Error>', { kind: 'error', code: 'X' }],
    ['an empty body', '', other],
    ['text', 'ok', other],
    ['JSON', '{"ListAllMyBucketsResult":{"Owner":{"ID":"x"}}}', other],
    ['HTML', '<!doctype html><html><body>welcome</body></html>', other],
    ['XHTML', '<html><body>welcome</body></html>', other],
    ['another XML', '<ListBucketResult><Owner><ID>x</ID></Owner></ListBucketResult>', other],
    ['a listing inside another element', `<a>${list('x')}</a>`, other],
    ['two roots', `<a/>${list('x')}`, other],
    ['two listings', list('x') + list('y'), other],
    ['a listing without owner', '<ListAllMyBucketsResult/>', other],
    ['two owners', list('x</ID><ID>y'), other],
    ['a truncated listing', list('x').slice(0, 120), other],
    ['a listing truncated at its last tag', list('x').slice(0, -25), other],
    ['text after a listing', `${list('x')}garbage`, other],
    ['an error without code', '<Error><Message>m</Message></Error>', other],
    ['an element in a code', '<Error><Code><a>x</a></Code></Error>', other],
    ['a prototype name', '<__proto__><Code>x</Code></__proto__>', other],
    ['a listing with a document type', `${xml}<!DOCTYPE l>${list('x')}`, other],
    ['an entity bomb', xml + bomb + list('&j;'), other],
    ['an external entity', `<!DOCTYPE l [<!ENTITY f SYSTEM "file:///etc/passwd">]>${list('&f;')}`, other],
    ['entities are not expanded', list('&#x41;&amp;'), { kind: 'buckets', owner: '&#x41;&amp;' }],
    ['a hundred thousand levels', '<a>'.repeat(100_000), other],
  ])('%s', (_, text, answer) => expect(read(text)).toEqual(answer))

  test('bytes that are not UTF-8', () => {
    expect(parseS3Response(Buffer.from(list('\xff'), 'latin1'), keys)).toEqual(other)
  })
})

const error = (code: string): ListBucketsResponse => ({ kind: 'error', code })
const buckets = (owner: string): ListBucketsResponse => ({ kind: 'buckets', owner })

const rows: readonly (readonly [status: number, answer: ListBucketsResponse, kind: string, message: RegExp])[] = [
  [200, buckets('user-1'), 'accepted', /accepts/],
  [200, buckets('anonymous'), 'unavailable', /as anonymous/],
  [200, buckets(''), 'unavailable', /as anonymous/],
  [200, other, 'unavailable', /not an S3 response \(status 200\)/],
  [200, error('InvalidAccessKeyId'), 'unavailable', /not an S3 response/],
  [201, buckets('user-1'), 'unavailable', /not an S3 response/],
  [204, other, 'unavailable', /not an S3 response/],
  [403, error('InvalidAccessKeyId'), 'rejected', /does not know this access key.*\(InvalidAccessKeyId\)$/],
  [403, error('SignatureDoesNotMatch'), 'rejected', /secret key does not belong/],
  [403, error('AccessDenied'), 'rejected', /valid and restricted/],
  [403, error('UserSuspended'), 'rejected', /suspended/],
  [403, error('AccountProblem'), 'rejected', /account/],
  [400, error('ExpiredToken'), 'rejected', /expired/],
  [400, error('InvalidToken'), 'rejected', /temporary/],
  [403, error('InvalidSecurity'), 'rejected', /not valid/],
  [401, other, 'rejected', /rejects/],
  [403, other, 'rejected', /rejects/],
  [403, error('SomethingNew<b>'), 'rejected', /^The object storage rejects these credentials\.$/],
  [403, buckets('user-1'), 'rejected', /rejects/],
  [403, error('RequestTimeTooSkewed'), 'unavailable', /clock.*credentials were not checked/s],
  [400, error('RequestTimeTooSkewed'), 'unavailable', /clock/],
  [400, error('AuthorizationHeaderMalformed'), 'unavailable', /rejects the request \(AuthorizationHeaderMalformed\)/],
  [400, error('InvalidArgument'), 'unavailable', /rejects the request \(InvalidArgument\)/],
  [400, other, 'unavailable', /not an S3 response \(status 400\)/],
  [404, error('NoSuchUser'), 'unavailable', /rejects the request \(NoSuchUser\)/],
  [405, error('not a code'), 'unavailable', /not an S3 response \(status 405\)/],
  [403, error('QuotaExceeded'), 'rejected', /rejects these credentials \(QuotaExceeded\)/],
  [400, error('constructor'), 'unavailable', /rejects the request \(constructor\)/],
  [404, other, 'unavailable', /not an S3 response/],
  [301, error('PermanentRedirect'), 'unavailable', /redirect \(status 301, PermanentRedirect\)/],
  [307, error('InvalidAccessKeyId'), 'unavailable', /redirect/],
  [304, other, 'unavailable', /redirect/],
  [429, error('InvalidAccessKeyId'), 'unavailable', /limiting the request rate/],
  [503, error('SlowDown'), 'unavailable', /limiting the request rate/],
  [500, error('AccessDenied'), 'unavailable', /failed \(status 500, AccessDenied\)/],
  [502, other, 'unavailable', /failed \(status 502\)/],
  [599, other, 'unavailable', /failed/],
]

describe('the result of a ListBuckets response', () => {
  test.each(rows)('%i %j: %s', (status, answer, kind, message) => {
    const result = classifyS3Response(status, answer)
    expect(result.kind).toBe(kind)
    expect(result.message).toMatch(message)
  })
})

test('each rejection has a distinct text', () => {
  const rejections = rows.filter(([, { kind }, result]) => kind === 'error' && result === 'rejected')
  const texts = rejections.map(([status, answer]) => classifyS3Response(status, answer).message)
  expect(new Set(texts).size).toBe(10)
})

test.each([
  ['the access key', keys.accessKey],
  ['the secret key', keys.secretKey],
  ['a key in a longer code', `Bad${keys.accessKey}`],
  ['a part of a key', keys.secretKey.slice(0, 8)],
])('a code that is %s is not quoted', (_, code) => {
  expect(read(`<Error><Code>${code}</Code></Error>`)).toEqual({ kind: 'other' })
})

test('no text quotes an unknown code or an owner', () => {
  const marked = [error('mark-code'), buckets('mark-owner')]
  const messages = [200, 301, 400, 403, 429, 500].flatMap(status =>
    marked.map(answer => classifyS3Response(status, answer).message),
  )
  expect(messages.join()).not.toContain('mark')
})
