import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { findBreakingChanges } from './breaking-changes.ts'
import { documentFiles, toFileText } from './documents.ts'
import { referenceFile, updateReference } from './reference.ts'

describe.each(documentFiles)('the document of $service', ({ create, current, released }) => {
  test('has a file; `pnpm run openapi` writes it', () => {
    expect(readFileSync(current, 'utf8')).toBe(toFileText(create()))
  })

  test('does not break clients of the last release', () => {
    expect(findBreakingChanges(JSON.parse(readFileSync(released, 'utf8')), create())).toEqual([])
  })

  test('breaks nothing compared with itself', () => {
    expect(findBreakingChanges(create(), create())).toEqual([])
  })
})

test('docs/reference/api.md has the tables of the contract; `pnpm run openapi` writes them', () => {
  const page = readFileSync(referenceFile, 'utf8')
  expect(page).toBe(updateReference(page))
})

const [api = '', witness = ''] = documentFiles.map(({ create }) => JSON.stringify(create()))

// A document as the mutations below see it.
// biome-ignore lint/suspicious/noExplicitAny: the mutations reach into any part of the document
type Document = any
type Mutation = readonly [title: string, mutate: (document: Document) => void, finding: RegExp]

const findAfter = (text: string, mutate: (document: Document) => void): readonly string[] => {
  const before = JSON.parse(text)
  const after = JSON.parse(text)
  mutate(after)
  expect(JSON.stringify(after) === text, 'the mutation changes the document').toBe(false)
  return findBreakingChanges(before, after)
}

const pool = '/api/v1/pool/{domain}'
const reserve = (document: Document) => document.paths[`${pool}/reserve`].post
const list = (document: Document) => document.paths[`${pool}/list`].get
const schema = (document: Document, name: string) => document.components.schemas[name]

const apiMutations: readonly Mutation[] = [
  ['a schema is renamed', d => delete d.components.schemas.DnsState, /^schema DnsState: removed or renamed/],
  ['a path is removed', d => delete d.paths[`${pool}/check`], /^GET .*\/check: removed$/],
  [
    'an operation id is renamed',
    d => (reserve(d).operationId = 'reserve'),
    /operation id reserveName is removed or renamed/,
  ],
  [
    'a required parameter is new',
    d => list(d).parameters.push({ in: 'header', name: 'X-New', required: true, schema: { type: 'string' } }),
    /header X-New: is now required/,
  ],
  [
    'a parameter loses a value',
    d =>
      list(d)
        .parameters.find(({ name }: Document) => name === 'state')
        .schema.enum.pop(),
    /query state: the value active is no longer accepted/,
  ],
  [
    'the type of a parameter changes',
    d => (list(d).parameters.at(-1).schema.type = 'integer'),
    /the type string is no longer/,
  ],
  ['a parameter gets an enum', d => (list(d).parameters.at(-1).schema.enum = ['a']), /query cursor: new enum/],
  [
    'a minimum is raised',
    d => (list(d).parameters.find(({ name }: Document) => name === 'limit').schema.minimum = 10),
    /query limit: minimum is larger/,
  ],
  [
    'a maximum is lowered',
    d => (list(d).parameters.find(({ name }: Document) => name === 'limit').schema.maximum = 10),
    /query limit: maximum is smaller/,
  ],
  [
    'a field of a body becomes required',
    d => schema(d, 'ReserveRequest').required.push('createdBy'),
    /reserve body.createdBy: is now required/,
  ],
  [
    'a field of a body is removed',
    d => delete schema(d, 'ReserveRequest').properties.createdBy,
    /body.createdBy: removed/,
  ],
  ['a body is removed', d => delete reserve(d).requestBody, /reserve: the body is removed/],
  [
    'a body becomes required',
    d => (d.paths[`${pool}/release`].delete.requestBody.required = true),
    /the body is now required/,
  ],
  [
    'a pattern changes',
    d => (schema(d, 'ReserveRequest').properties.subdomain.pattern = '^a$'),
    /subdomain: new pattern/,
  ],
  [
    'a maximum length is new',
    d => (schema(d, 'RenewRequest').properties.reservationToken.maxLength = 99),
    /maxLength is smaller/,
  ],
  [
    'a request media type is removed',
    d => (d.paths['/api/v1/import'].post.requestBody.content = { 'application/json': { schema: {} } }),
    /import body: the media type application\/x-ndjson is removed/,
  ],
  ['a status is removed', d => delete reserve(d).responses[409], /reserve 409: removed/],
  [
    'a response loses its body',
    d => delete reserve(d).responses[201].content,
    /201: the media type application\/json is removed/,
  ],
  [
    'a field of a response is removed',
    d => delete schema(d, 'ReserveResponse').properties.expiresAt,
    /201.expiresAt: removed/,
  ],
  [
    'a field of a response may be absent',
    d =>
      (schema(d, 'ReserveResponse').required = schema(d, 'ReserveResponse').required.filter(
        (n: string) => n !== 'expiresAt',
      )),
    /201.expiresAt: may now be absent/,
  ],
  [
    'a field of a response gets another type',
    d => (schema(d, 'Problem').properties.detail.type = 'object'),
    /detail: new type object/,
  ],
  [
    'a response gets an alternative',
    d => schema(d, 'Allocation').oneOf.push({ type: 'string' }),
    /: more alternatives/,
  ],
  [
    'a response header is removed',
    d => delete reserve(d).responses[201].headers['X-Request-Id'],
    /201: the header X-Request-Id is removed/,
  ],
  ['a token is required', d => (d.security = [{ operator: [] }]), /\{\} no longer authorizes the request/],
]

const witnessMutations: readonly Mutation[] = [
  [
    'the renewal of many loses a result',
    d => delete schema(d, 'RenewalGranted').properties.remainingMs,
    /results\[\]\(0\).remainingMs: removed/,
  ],
  [
    'an operation without a token needs one',
    d => delete d.paths['/healthz'].get.security,
    /\/healthz: \{\} no longer authorizes the request/,
  ],
]

describe('a breaking change is found', () => {
  test.each(apiMutations)('%s', (_, mutate, finding) => {
    expect(findAfter(api, mutate)).toContainEqual(expect.stringMatching(finding))
  })
  test.each(witnessMutations)('%s', (_, mutate, finding) => {
    expect(findAfter(witness, mutate)).toContainEqual(expect.stringMatching(finding))
  })
})

describe('a compatible change is accepted', () => {
  test.each<readonly [string, (document: Document) => void]>([
    ['a new operation', d => (d.paths['/api/v2/new'] = { get: { operationId: 'getNew', responses: {} } })],
    [
      'a new optional parameter',
      d => list(d).parameters.push({ in: 'query', name: 'sort', schema: { type: 'string' } }),
    ],
    ['a new optional field of a body', d => (schema(d, 'ReserveRequest').properties.note = { type: 'string' })],
    ['a new field of a response', d => (schema(d, 'ReserveResponse').properties.note = { type: 'string' })],
    ['a new status', d => (reserve(d).responses[418] = { description: 'A teapot.' })],
    ['a new error code', d => schema(d, 'ErrorCode').enum.push('new-code')],
    ['a new value of a request', d => schema(d, 'ResumeRequest').properties.trust.enum.push('both')],
    ['a rule less', d => delete schema(d, 'ReserveRequest').properties.subdomain.pattern],
    ['a field of a body that is no longer required', d => schema(d, 'RenewRequest').required.pop()],
    ['another text', d => (reserve(d).summary = 'Reserves.')],
    ['a larger maximum', d => (schema(d, 'OrphansRequest').properties.subdomains.maxItems = 2_000)],
  ])('%s', (_, mutate) => {
    expect(findAfter(api, mutate)).toEqual([])
  })
})
