import type { ErrorCode } from '@pool/contract'
import { type BadRow, describeValue, postTo, row } from './row.ts'

const path = '/api/v1/credentials'
const keys = { region: 'fsn1', accessKey: 'access-key-0123456789', secretKey: 'secret-key-of-thirty-two-characters' }
const token = { provider: 'hetzner', token: 'token-of-a-provider' }

const bad = (call: string, code: ErrorCode, body: unknown, rule: string): BadRow =>
  row(`${call}: ${rule}`, [400, code], postTo(`${path}/${call}`, body))

const withEachValue = (call: string, code: ErrorCode, good: object, field: string, values: readonly unknown[]) =>
  values.map(value => bad(call, code, { ...good, [field]: value }, `${field} is rejected: ${describeValue(value)}`))

const invalidKeys = (code: ErrorCode, field: string, values: readonly unknown[]) =>
  withEachValue('object-storage/validate', code, keys, field, values)
const invalidToken = (code: ErrorCode, field: string, values: readonly unknown[]) =>
  withEachValue('validate', code, token, field, values)

const notText: readonly unknown[] = [5, 1e300, true, [], ['fsn1'], {}]
const inherited: readonly string[] = ['__proto__', 'constructor', 'toString']
/** `long` has a valid length for every kind of key. */
const notSecrets = (long: string): readonly unknown[] => [
  undefined,
  null,
  '',
  ' \r\n',
  ...notText,
  '<redacted>',
  `${long} ${long}`,
  `${long}\r\nHost: evil.example`,
  `${long}\u0000`,
  `${long}\u00e9`,
  `\u212a${long}`,
  `${long}\ud800`,
  long.repeat(1_500),
]
const notRegions: readonly unknown[] = [
  ...notText,
  ...inherited,
  'FSN1',
  'fsn2',
  'fsn1,nbg1',
  'fsn1.evil.example/',
  'x@fsn1',
  'fsn1#',
  'fsn1%00',
  'fsn1\u0000',
  '\uff46sn1',
  '../fsn1',
  'fsn1\u3002evil',
]

/** JSON, but not an object with the required fields. */
const notRequestObjects = (good: object): readonly string[] => {
  const text = JSON.stringify(good)
  return ['null', 'true', '1e999', '"x"', '[]', `[${text}]`, '{}', `{"__proto__":${text}}`, text.toUpperCase()]
}

/** No provider is called for these, so no response reveals whether the credentials are valid. */
export const credentialRows: readonly BadRow[] = [
  ...notRequestObjects(keys).map(body =>
    bad('object-storage/validate', 'missing-region', body, `not a request object: ${body}`),
  ),
  ...invalidKeys('missing-region', 'region', [undefined, null, '', ' \u00a0']),
  ...invalidKeys('invalid-region', 'region', notRegions),
  ...invalidKeys('invalid-access-key', 'accessKey', [...notSecrets('k'.repeat(20)), 'k'.repeat(15), 'k'.repeat(129)]),
  ...invalidKeys('invalid-secret-key', 'secretKey', [...notSecrets('s'.repeat(40)), 's'.repeat(31), 's'.repeat(257)]),
  ...invalidKeys('unsupported-provider', 'provider', [...notText, ...inherited, 'aws', 'het\u017fner', 'hetzner.evil']),
  ...notRequestObjects(token).map(body =>
    bad('validate', 'unsupported-provider', body, `not a request object: ${body}`),
  ),
  ...invalidToken('unsupported-provider', 'provider', [
    undefined,
    null,
    '',
    ...notText,
    ...inherited,
    'aws',
    'hetzner\u0000',
  ]),
  ...invalidToken('invalid-token', 'token', [...notSecrets('t'.repeat(30)), 't'.repeat(4_097)]),
]
