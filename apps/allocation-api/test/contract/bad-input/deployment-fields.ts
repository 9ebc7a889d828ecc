import { type BadRow, create, createWith, describeValue, invalidDeploymentRow, storageFields } from './row.ts'
import { invalidSshKeys } from './ssh-keys.ts'

type Rows = readonly (readonly [rule: string, value: unknown])[]

/** Values of every JSON type except string, and blank strings. */
const notText: readonly unknown[] = [undefined, null, '', ' \u00a0', 5, 1e300, true, [], ['acme'], {}, { $ne: null }]

/** Properties of every JavaScript object. */
const inherited: readonly string[] = ['__proto__', 'constructor', 'hasOwnProperty', 'toString']

const names: Rows = [
  ['101 characters', 'a'.repeat(101)],
  ['60,000 characters', 'a'.repeat(60_000)],
  ['NUL', 'Ac\u0000me'],
  ['a line break', 'Acme\r\nX: y'],
  ['a line separator', 'Ac\u2028me'],
  ['a terminal escape', '\u001b[31mAcme'],
  ['a right-to-left override', '\u202eemca'],
  ['a right-to-left isolate', 'a\u2067emca\u2069'],
  ['a lone surrogate', '\ud83d Acme'],
  ['invisible: zero-width spaces', '\u200b\u200b'],
  ['invisible: a Hangul filler, which is a letter', '\u3164'],
  ['invisible: half-width and Jamo fillers', '\uffa0\u115f\u1160'],
  ['invisible: a blank Braille pattern, which is a symbol', '\u2800'],
  ['invisible: a mark without a letter', '\u0301'],
  ['invisible: tags', '\u{e0041}\u{e0042}'],
]

const addresses: Rows = [
  ['no @', 'acme.example'],
  ['a display name', 'Ops <ops@acme.example>'],
  ['two addresses', 'ops@acme.example,root@acme.example'],
  ['a header injection', 'ops@acme.example\r\nBcc: x@y.example'],
  ['an IDN', 'ops@b\u00fccher.example'],
  ['a full-width @', 'ops\uff20acme.example'],
  ['an ideographic full stop', 'ops@acme\u3002example'],
  ['KELVIN SIGN', 'ops@\u212aiosk.example'],
  ['a trailing dot', 'ops@acme.example.'],
  ['65 characters before the @', `${'a'.repeat(65)}@acme.example`],
  ['255 characters', `ops@${'a.'.repeat(122)}example`],
  ['quoted', '"ops"@acme.example'],
  ['an address literal', 'ops@[203.0.113.10]'],
  ['a host of one label', 'root@localhost'],
  ['NUL', 'ops\u0000@acme.example'],
]

const providers: readonly unknown[] = [
  undefined,
  null,
  'local',
  [],
  {},
  { 0: 'local', length: 1 },
  [null],
  [['local']],
  ['local', 5],
  ['__proto__'],
  ['../local'],
  ['local\u0000'],
  ['l\u00f6cal'],
  ['a'.repeat(64)],
  ['local', 'local'],
  ['local', ' LOCAL '],
  Array.from({ length: 21 }, (_, at) => `p${at}`),
  Array(8_000).fill('local'),
  ['heztner'],
  ['local', 'constructor'],
]

const regions: readonly unknown[] = [
  '..',
  '../fsn1',
  'fsn1/..',
  'fsn1%2f..',
  'FSN1',
  'fsn1.evil.example',
  'fsn1\nnbg1',
  'fsn1\u0000',
  '\uff46sn1',
  'fsn1"',
  // biome-ignore lint/suspicious/noTemplateCurlyInString: Terraform would evaluate this expression.
  '${file("x")}',
  'a'.repeat(64),
  ...inherited.filter(name => name !== 'constructor'),
]

const keys: readonly unknown[] = [
  ...notText,
  '<redacted>',
  'short',
  'k'.repeat(257),
  `k k${'k'.repeat(40)}`,
  `${'k'.repeat(40)}\r\nX-Amz-Acl: public-read`,
  `\u212a${'k'.repeat(40)}`,
  `${'k'.repeat(40)}\u0000`,
  `${'k'.repeat(40)}\ud800`,
]

const withEachValue = (field: string, values: readonly unknown[], change: object = {}): readonly BadRow[] =>
  values.map(value =>
    invalidDeploymentRow(`${field}: ${describeValue(value)}`, createWith({ ...change, [field]: value }), field),
  )

const named = (field: string, rows: Rows): readonly BadRow[] =>
  rows.map(([rule, value]) => invalidDeploymentRow(`${field}: ${rule}`, createWith({ [field]: value }), field))

const all = ['orgName', 'orgEmail', 'sovereignDomainMode', 'providers', 'region', 'sshPublicKey']
const good = String(createWith({}).body)

export const deploymentFieldRows: readonly BadRow[] = [
  ...['null', 'true', '1e999', '"acme"', '[]', `[${good}]`].map(body =>
    invalidDeploymentRow(`a body must be an object: ${describeValue(body)}`, create(body), ''),
  ),
  ...[
    '{}',
    `{"__proto__":${good}}`,
    `{"constructor":{"prototype":${good}}}`,
    `{"deployment":${good}}`,
    good.toUpperCase(),
  ].map(body =>
    invalidDeploymentRow(
      `every missing field is reported, in the documented order: ${describeValue(body)}`,
      create(body),
      ...all,
    ),
  ),
  invalidDeploymentRow('the last of two equal keys counts', create(good.replace(/}$/, ',"region":"."}')), 'region'),
  ...['orgName', 'orgEmail', 'region', 'sshPublicKey'].flatMap(field => withEachValue(field, notText)),
  ...named('orgName', names),
  ...named('orgEmail', addresses),
  ...withEachValue('providers', providers),
  ...withEachValue('region', regions),
  ...named('sshPublicKey', invalidSshKeys),
  ...withEachValue('objectStorageRegion', [...notText, ...regions, ...inherited, 'fsn2'], storageFields),
  ...withEachValue('objectStorageAccessKey', keys, storageFields),
  ...withEachValue('objectStorageSecretKey', keys, storageFields),
  invalidDeploymentRow(
    'storage fields are validated with an upper-case provider beside an invalid one',
    createWith({ providers: [' HETZNER', 5] }),
    'providers',
    'objectStorageRegion',
    'objectStorageAccessKey',
    'objectStorageSecretKey',
  ),
]
