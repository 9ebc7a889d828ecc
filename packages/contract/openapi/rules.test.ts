import { readFileSync } from 'node:fs'
import { Ajv2020 } from 'ajv/dist/2020.js'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type * as z from 'zod'
import * as contract from '../src/index.ts'
import { operations } from '../src/index.ts'
import { leaseOperations } from '../src/lease-operations.ts'
import { createOpenApiDocument } from './document.ts'
import { documentFiles } from './documents.ts'

/** The document's schema of a value in a request, compiled. */
const compile = (schema: z.ZodType) => {
  const { paths, components } = createOpenApiDocument({
    title: 'rules',
    description: '',
    operations: {
      probe: {
        id: 'probe',
        method: 'post',
        path: '/',
        tag: 'Health',
        summary: '',
        body: { schema, required: true },
        results: {},
        responses: {},
      },
    },
    headers: {},
    bearer: { name: 'token', description: '', isOptional: true },
  }) as {
    paths: { '/': { post: { requestBody: { content: { 'application/json': { schema: object } } } } } }
    components: object
  }
  const ajv = new Ajv2020({ strict: false, validateFormats: false })
  ajv.addSchema({ $id: 'document', components })
  const text = JSON.stringify(paths['/'].post.requestBody.content['application/json'].schema)
  return ajv.compile(JSON.parse(text.replaceAll('"#/components/', '"document#/components/')))
}

const { deploymentCommon, deploymentDomain, deploymentStorage } = contract
const [poolMode] = deploymentDomain.options

/** Texts that are one edit away from a valid one, or far from it. */
const nearly = (...valid: readonly string[]): fc.Arbitrary<string> => {
  const piece = fc.oneof(
    fc.constantFrom(
      ' ',
      '\t',
      '\n',
      '\u00a0',
      '\ufeff',
      '-',
      '--',
      '.',
      '..',
      'A',
      'z',
      '0',
      '255',
      'é',
      '\x00',
      '\x7f',
      '@',
      '_',
      '',
    ),
    fc.string({ unit: 'binary', maxLength: 3 }),
    fc.constantFrom('a'.repeat(61), 'a'.repeat(63), 'a'.repeat(64), '9'.repeat(130), 'b'.repeat(254)),
  )
  const edited = fc
    .tuple(fc.constantFrom(...valid), fc.nat(300), fc.nat(3), piece)
    .map(
      ([text, at, length, inserted]) =>
        text.slice(0, at % (text.length + 1)) + inserted + text.slice((at % (text.length + 1)) + length),
    )
  return fc.oneof(
    { weight: 6, arbitrary: edited },
    { weight: 1, arbitrary: fc.string() },
    { weight: 1, arbitrary: piece },
  )
}

const names = nearly('acme', 'a', 'ab-c', 'a1-2b', 'xn--a', 'ab--c', 'Acme ', 'a-b-c-d', `a${'b'.repeat(62)}`)
const domains = nearly(
  'acme.pool.test',
  'a.b',
  'a.1b',
  'a.1',
  'a.1-1',
  'cloud.acme.example.',
  'A-1.b.c',
  '1.2.3.4',
  '10.a',
)
const addresses = nearly(
  '203.0.113.10',
  '10.0.0.1',
  '127.0.0.1',
  '169.253.0.1',
  '169.254.0.1',
  '223.255.255.255',
  '224.0.0.1',
  '0.0.0.0',
  '1.2.3.04',
)

/** Whether the document expresses the whole rule: a value that it accepts is valid. */
type Coverage = 'whole' | 'part'

const fields: readonly (readonly [string, z.ZodType, fc.Arbitrary<unknown>, Coverage])[] = [
  ['subdomain', contract.subdomain, names, 'whole'],
  ['createdBy', contract.createdBy, nearly('me', 'é 💥', '\ud83d'), 'part'],
  ['loadBalancerIP', contract.createLoadBalancerIP(false), addresses, 'whole'],
  ['loadBalancerIP of a local pool', contract.createLoadBalancerIP(true), addresses, 'whole'],
  // At most 253 characters after the white space and the trailing dot are removed.
  ['fqdn', contract.fqdn, domains, 'part'],
  ['reservationToken', contract.reservationToken, fc.string(), 'whole'],
  ['Idempotency-Key', contract.idempotencyKey, nearly('key', '~!'), 'whole'],
  ['domain of a challenge', contract.domainChallengeRequest.shape.domain, domains, 'part'],
  // Visible characters, and directions of text.
  ['orgName', deploymentCommon.shape.orgName, nearly('Acme', 'Ä b', '\u202eAcme', '\u3164'), 'part'],
  [
    'orgEmail',
    deploymentCommon.shape.orgEmail,
    nearly('ops@acme.example', `${'a'.repeat(64)}@b.c`, "o'p.s+1@a.b"),
    'part',
  ],
  [
    'providers',
    deploymentCommon.shape.providers,
    fc.array(nearly('hetzner', 'local', 'Local'), { maxLength: 22 }),
    'part',
  ],
  ['region', deploymentCommon.shape.region, nearly('fsn1', 'eu-west-1', ' fsn1 '), 'whole'],
  // The key itself.
  [
    'sshPublicKey',
    deploymentCommon.shape.sshPublicKey,
    nearly('ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f me'),
    'part',
  ],
  ['sovereignPoolDomain', poolMode.shape.sovereignPoolDomain, nearly('pool.test', ' '), 'whole'],
  ['sovereignSubdomain', poolMode.shape.sovereignSubdomain, names, 'whole'],
  [
    'objectStorageAccessKey',
    deploymentStorage.shape.objectStorageAccessKey,
    nearly('A'.repeat(16), 'B'.repeat(128)),
    'whole',
  ],
  [
    'objectStorageSecretKey',
    deploymentStorage.shape.objectStorageSecretKey,
    nearly('a'.repeat(32), 'b'.repeat(256)),
    'whole',
  ],
  ['Last-Event-ID', contract.lastEventId, nearly('0', '2147483647', '2147483648', '1999999999', '214748', ''), 'whole'],
  ['slot', contract.slot, nearly('a/b', 'é', 'a'.repeat(506), '\ud83d'), 'part'],
  ['holder', contract.holder, nearly('region-a/0', 'a b'), 'whole'],
  ['X-Holder', contract.holderOrEmpty, nearly('region-a/0', ''), 'whole'],
]

describe('the document never rejects what validation accepts, and has the whole rule unless it says part', () => {
  test.each(fields)('%s', (_, schema, values, coverage) => {
    const validate = compile(schema)
    let accepted = 0
    fc.assert(
      fc.property(values, value => {
        const isValid = schema.safeParse(value).success
        const isDocumented = validate(value)
        if (isValid) accepted += 1
        if (isValid) expect(isDocumented, `documented: ${JSON.stringify(value)}`).toBe(true)
        else if (coverage === 'whole') expect(isDocumented, `not documented: ${JSON.stringify(value)}`).toBe(false)
      }),
      { numRuns: 1_500, seed: 1 },
    )
    expect(accepted, 'valid values among the generated ones').toBeGreaterThan(15)
  })
})

/** What every language can compile: no look-around, no Unicode classes, no \u escapes (RE2 has none of them). */
test('the patterns are portable', () => {
  const patterns = new Set<string>()
  const collect = (value: unknown): void => {
    if (typeof value !== 'object' || value === null) return
    for (const [key, inner] of Object.entries(value)) {
      if (key === 'pattern' && typeof inner === 'string') patterns.add(inner)
      collect(inner)
    }
  }
  for (const list of [operations, leaseOperations]) {
    collect(
      createOpenApiDocument({
        title: '',
        description: '',
        operations: list,
        headers: {},
        bearer: { name: 'token', description: '', isOptional: false },
      }),
    )
  }
  expect(patterns.size).toBeGreaterThan(15)
  for (const pattern of patterns) expect(pattern).not.toMatch(/\(\?[=!<]|\\[pPubBk]/)
})

test('a pattern takes time proportional to the text', () => {
  const blanks = ' '.repeat(60_000)
  const texts = [
    `a${blanks}\x01`,
    `${blanks}\x01`,
    `ssh-rsa ${blanks}a${blanks}\x01`,
    `a@${'a.'.repeat(30_000)}!`,
    `${'1-'.repeat(30_000)}!`,
    `1.${'-'.repeat(60_000)}!`,
  ]
  for (const [, schema] of fields) for (const text of texts) schema.safeParse(text)
})

describe('every field of every request and response', () => {
  const described = Object.entries({ ...operations, ...leaseOperations })
  const bodies = described.flatMap(([id, operation]) =>
    'body' in operation && operation.body?.schema ? [{ id, schema: operation.body.schema as z.ZodType }] : [],
  )

  test.each(bodies)('$id: a missing field is called required, and one with a wrong value is not', ({ schema }) => {
    // An issue without a code has a general text.
    const find = (value: object) => schema.safeParse(value).error?.issues.filter(issue => 'params' in issue) ?? []
    const missing = find({})
    for (const { message } of missing) expect(message).toMatch(/ is required\b|^The body must be /)
    const fields = missing.map(({ path: [field = ''] }) => String(field))
    for (const { message } of find(Object.fromEntries(fields.map(field => [field, 7])))) {
      expect(message).not.toMatch(/ is required: /)
    }
  })

  test.each(['allocation-api', 'lease-witness'])('%s: a token is text without a form', name => {
    const file = new URL(`../../../docs/reference/${name}.openapi.json`, import.meta.url)
    const forms: unknown[] = []
    JSON.parse(readFileSync(file, 'utf8'), (key, value) => {
      if (/Token$/.test(key) && typeof value === 'object' && (value.format || value.pattern)) forms.push({ key, value })
      return value
    })
    expect(forms).toEqual([])
  })

  test.each(documentFiles)(
    '$service: no schema has a name that a generator derives from an operation',
    ({ create }) => {
      const { paths, components } = create() as {
        paths: Record<string, Record<string, { operationId: string; requestBody?: object }>>
        components: { schemas: object }
      }
      const schemas = Object.keys(components.schemas).map(name => name.toLowerCase())
      const derived = Object.values(paths).flatMap(methods =>
        Object.values(methods).flatMap(({ operationId, requestBody }) => {
          const isInline = requestBody !== undefined && !JSON.stringify(requestBody).includes('"$ref"')
          const suffixes = 'Response Responses Params JSONBody JSONRequestBody Body WithResponse WithBody'.split(' ')
          return ['', ...suffixes, ...(isInline ? ['Request'] : [])].map(suffix => (operationId + suffix).toLowerCase())
        }),
      )
      expect(schemas.filter(name => derived.includes(name))).toEqual([])
      expect(new Set(schemas).size).toBe(schemas.length)
    },
  )
})
