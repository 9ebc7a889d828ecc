import type { ErrorCode } from '@pool/contract'
import {
  type BadRow,
  create,
  createWith,
  deployments,
  describeValue,
  invalidDeploymentRow,
  postTo,
  row,
  sshPublicKey,
  storageFields,
} from './row.ts'

// As in pool.ts: packages/contract has the table of each rule.

const json = [400, 'invalid-json'] as const
const noPath = [404, 'not-found'] as const

const credentials = '/api/v1/credentials'
/** The id of a deployment that does not exist. */
const id = '0a000000-0000-4000-8000-00000000000b'
const good = String(createWith({}).body)

/** Values of every JSON type except string, and blank strings. */
const notText: readonly unknown[] = [undefined, null, '', ' \u00a0', 5, 1e300, true, [], ['acme'], {}, { $ne: null }]

/** Properties of every JavaScript object. */
const inherited: readonly string[] = ['__proto__', 'constructor', 'hasOwnProperty', 'toString']

const regions: readonly unknown[] = [
  '../fsn1',
  'fsn1%2f..',
  'fsn1.evil.example',
  'fsn1\u0000',
  '\uff46sn1',
  // biome-ignore lint/suspicious/noTemplateCurlyInString: Terraform would evaluate this expression.
  '${file("x")}',
  '__proto__',
]

/** `long` has a valid length for every kind of key. */
const notSecrets = (long: string): readonly unknown[] => [
  ...notText,
  '<redacted>',
  'short',
  `${long} ${long}`,
  `${long}\r\nX-Amz-Acl: public-read`,
  `${long}\u0000`,
  `\u212a${long}`,
  `${long}\ud800`,
  long.repeat(1_500),
]

const emails: readonly string[] = [
  'Ops <ops@acme.example>',
  'ops@acme.example,root@acme.example',
  'ops@acme.example\r\nBcc: x@y.example',
  'ops@b\u00fccher.example',
  'ops\uff20acme.example',
  'ops@acme\u3002example',
  'ops@\u212aiosk.example',
  'ops@acme.example.',
  'root@localhost',
]

const providers: readonly unknown[] = [
  undefined,
  'local',
  { 0: 'local', length: 1 },
  [['local']],
  ['__proto__'],
  ['../local'],
  ['local\u0000'],
  ['local', 'constructor'],
  Array(8_000).fill('local'),
]

const sshKeys: readonly unknown[] = [
  '-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjE=\n-----END OPENSSH PRIVATE KEY-----',
  `# ${sshPublicKey}`,
  `${sshPublicKey} a\r\n${sshPublicKey} b`,
  sshPublicKey.replace('AAAA', '\uff21\uff21\uff21\uff21'),
  // sshd accepts no such separator.
  sshPublicKey.replace(' ', '\u00a0'),
  `${sshPublicKey} a\u0000`,
  `${sshPublicKey} \u001b[31m`,
  `${sshPublicKey} ${'a'.repeat(9_216)}`,
]

const fqdns: readonly unknown[] = [
  undefined,
  1e21,
  ['cloud.acme.example'],
  'cloud.acme.example..',
  'a.'.repeat(30_000),
  '\u212aiosk.acme.example',
  'cloud.acme\uff0eexample',
  'cloud.ac\u00adme.example',
  'cloud.\udc00.example',
  'cloud.acme.example\u0000',
  '../../cloud.acme.example',
  'pool.test',
  'a.b.POOL.Test.',
]

const pool = { sovereignDomainMode: 'pool', sovereignPoolDomain: 'pool.test', sovereignSubdomain: 'acme' }
const inPool = { ...pool, sovereignFQDN: undefined }

const pools: readonly unknown[] = [
  ...notText,
  'other.test',
  'pool.test.',
  'a.pool.test',
  'p\u043eol.test',
  'pool.test\u0000',
]
const labels: readonly unknown[] = [...notText, 'a.b', '\u212ael', 'a\u0000', '\ud800', '__proto__', 'admin', ' WWW ']

/** Rows of requests that are valid but for one field. `base`: other values of a valid request. */
const withEachValue = (field: string, values: readonly unknown[], base: object = {}): readonly BadRow[] =>
  values.map(value =>
    invalidDeploymentRow(`${field}: ${describeValue(value)}`, createWith({ ...base, [field]: value }), field),
  )

const all = ['orgName', 'orgEmail', 'sovereignDomainMode', 'providers', 'region', 'sshPublicKey']

export const deploymentRows: readonly BadRow[] = [
  ...['null', 'true', '1e999', '"acme"', '[]', `[${good}]`].map(text =>
    invalidDeploymentRow(`a body must be an object: ${describeValue(text)}`, create(text), ''),
  ),
  ...['{}', `{"__proto__":${good}}`, `{"constructor":{"prototype":${good}}}`, good.toUpperCase()].map(text =>
    invalidDeploymentRow(
      `every missing field is reported, in the documented order: ${describeValue(text)}`,
      create(text),
      ...all,
    ),
  ),
  invalidDeploymentRow('the last of two equal keys counts', create(good.replace(/}$/, ',"region":"."}')), 'region'),
  ...withEachValue('orgName', [...notText, 'a'.repeat(60_000), 'Ac\u0000me', '\ud83d Acme', '\u0301', '\u200b\u200b']),
  ...withEachValue('orgEmail', [...notText, ...emails]),
  ...withEachValue('providers', providers),
  ...withEachValue('region', [...notText, ...regions]),
  ...withEachValue('sshPublicKey', [...notText, ...sshKeys]),
  ...withEachValue('objectStorageRegion', [...notText, ...regions, ...inherited, 'fsn2'], storageFields),
  ...withEachValue('objectStorageAccessKey', notSecrets('k'.repeat(40)), storageFields),
  ...withEachValue('objectStorageSecretKey', notSecrets('k'.repeat(40)), storageFields),
  ...withEachValue('sovereignDomainMode', [...notText, 'POOL', ...inherited]),
  ...withEachValue('sovereignFQDN', fqdns),
  ...withEachValue('sovereignPoolDomain', pools, inPool),
  ...withEachValue('sovereignSubdomain', labels, inPool),
  ...withEachValue('sovereignFQDN', ['other.pool.test', 'acme.pool.test..', 5, '\u0000'], pool),
]

const ids: readonly string[] = ['x', `${id}%00`, `${id}%20`, '..%2f..%2fetc%2fpasswd', '%ff', id, id.toUpperCase()]

/** Latin-1, because a header has one byte for each character. */
const lastEventIds: readonly string[] = [
  '+1',
  '0x10',
  'Infinity',
  '1 2',
  '\xb2',
  '\xef\xbc\x91',
  '__proto__',
  "1' or true --",
]

const queries: readonly (readonly [code: ErrorCode, queries: readonly string[]])[] = [
  ['invalid-state', ['status=', 'status=READY', 'status=ready,failed', 'status=__proto__', 'status=%00', 'status=%ff']],
  ['invalid-limit', ['limit=0', 'limit=x&limit=1']],
  [
    'invalid-cursor',
    [
      'cursor=',
      'cursor=!',
      ...['0', '-1', '01', '1e3', '99999999999999999', "1' or true --", '1\u0000', '__proto__'].map(
        position => `cursor=${Buffer.from(position).toString('base64url')}`,
      ),
      `cursor=${'QUFB'.repeat(2_000)}`,
    ],
  ],
]

const paths: readonly string[] = [
  `${deployments}/`,
  '/api/v1/deployment',
  '/api/v1/Deployments',
  `${deployments}/${id}/`,
  `${deployments}/${id}/log`,
  `${deployments}/${id}/logs/`,
  `${deployments}/${id}/logs/1`,
  `${deployments}//logs`,
  credentials,
  `${credentials}/object-storage`,
  `${credentials}/validate/`,
  `${credentials}/object-storage/validate/x`,
  `${credentials}/constructor/validate`,
]

export const deploymentRequestRows: readonly BadRow[] = [
  ...[deployments, `${credentials}/object-storage/validate`, `${credentials}/validate`].flatMap(path => [
    ...['', '{}{}', 'orgName=Acme', Buffer.from('{"orgName":"\xff"}', 'latin1')].map(text =>
      row(`${path}: a body must be JSON in UTF-8: ${describeValue(text)}`, json, postTo(path, text)),
    ),
    row(`${path}: no body and no Content-Length`, json, { method: 'POST', path }),
  ]),
  ...paths.map(path => row(`an unknown path is 404: ${path}`, noPath, { path })),
  ...ids.flatMap(unknownId => [
    row(`no such deployment: GET ${describeValue(unknownId)}`, noPath, { path: `${deployments}/${unknownId}` }),
    row(`no such deployment: DELETE ${describeValue(unknownId)}`, noPath, {
      method: 'DELETE',
      path: `${deployments}/${unknownId}`,
    }),
    row(`no such deployment: logs of ${describeValue(unknownId)}`, noPath, {
      path: `${deployments}/${unknownId}/logs`,
    }),
  ]),
  ...[...lastEventIds.map(value => [value]), ['1', '2']].map(values =>
    row(`Last-Event-ID is the id of an event: ${describeValue(values)}`, [422, 'invalid-cursor'], {
      path: `${deployments}/${id}/logs`,
      headers: values.map(value => `Last-Event-ID: ${value}`),
    }),
  ),
  ...queries.flatMap(([code, texts]) =>
    texts.map(query =>
      row(`deployments: ${code}: ${describeValue(query)}`, [422, code], { path: `${deployments}?${query}` }),
    ),
  ),
]

const keys = { region: 'fsn1', accessKey: 'access-key-0123456789', secretKey: 'secret-key-of-thirty-two-characters' }
const token = { provider: 'hetzner', token: 'token-of-a-provider' }

/** Of both checks of credentials: a valid request, and the invalid values of each field. */
const checks: readonly (readonly [
  check: string,
  valid: object,
  field: string,
  code: ErrorCode,
  values: readonly unknown[],
])[] = [
  ['object-storage/validate', keys, 'region', 'missing-region', [undefined, null, '', ' \u00a0']],
  ['object-storage/validate', keys, 'region', 'invalid-region', [5, {}, 'x@fsn1', 'fsn1#', ...regions, ...inherited]],
  ['object-storage/validate', keys, 'accessKey', 'invalid-access-key', notSecrets('k'.repeat(20))],
  ['object-storage/validate', keys, 'secretKey', 'invalid-secret-key', notSecrets('s'.repeat(40))],
  [
    'object-storage/validate',
    keys,
    'provider',
    'unsupported-provider',
    [5, [], ...inherited, 'het\u017fner', 'hetzner.evil'],
  ],
  ['validate', token, 'provider', 'unsupported-provider', [...notText, ...inherited, 'hetzner\u0000']],
  ['validate', token, 'token', 'invalid-token', notSecrets('t'.repeat(30)).filter(value => value !== 'short')],
]

/** No provider is called for these, so no response reveals whether the credentials are valid. */
export const credentialRows: readonly BadRow[] = [
  ...checks.flatMap(([check, valid, field, code, values]) =>
    values.map(value =>
      row(
        `${check}: ${field} is rejected: ${describeValue(value)}`,
        [400, code],
        postTo(`${credentials}/${check}`, { ...valid, [field]: value }),
      ),
    ),
  ),
  ...['null', '1e999', '[]', '{}', `{"__proto__":${JSON.stringify(keys)}}`, `[${JSON.stringify(token)}]`].flatMap(
    text => [
      row(
        `object-storage/validate: not a request object: ${text}`,
        [400, 'missing-region'],
        postTo(`${credentials}/object-storage/validate`, text),
      ),
      row(
        `validate: not a request object: ${text}`,
        [400, 'unsupported-provider'],
        postTo(`${credentials}/validate`, text),
      ),
    ],
  ),
]
