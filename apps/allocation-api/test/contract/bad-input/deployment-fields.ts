import { type BadRow, create, createWith, faultyRow, shown, storageFields } from './row.ts'
import { badSshKeys } from './ssh-keys.ts'

type Rows = readonly (readonly [rule: string, value: unknown])[]

/** Values of every JSON type but text, and the text of nothing. */
const notText: readonly unknown[] = [undefined, null, '', ' \u00a0', 5, 1e300, true, [], ['acme'], {}, { $ne: null }]

/** Every object of JavaScript has them. */
const inherited: readonly string[] = ['__proto__', 'constructor', 'hasOwnProperty', 'toString']

const names: Rows = [
  ['101 characters', 'a'.repeat(101)],
  ['sixty thousand characters', 'a'.repeat(60_000)],
  ['NUL', 'Ac\u0000me'],
  ['a line break', 'Acme\r\nX: y'],
  ['a line separator', 'Ac\u2028me'],
  ['a terminal escape', '\u001b[31mAcme'],
  ['text that is turned around', '\u202eemca'],
  ['text that is isolated and turned', 'a\u2067emca\u2069'],
  ['a lone surrogate', '\ud83d Acme'],
  ['nothing to be seen: zero-width spaces', '\u200b\u200b'],
  ['nothing to be seen: a Hangul filler, which is a letter', '\u3164'],
  ['nothing to be seen: half-width and Jamo fillers', '\uffa0\u115f\u1160'],
  ['nothing to be seen: a blank Braille pattern, which is a symbol', '\u2800'],
  ['nothing to be seen: a mark without a letter', '\u0301'],
  ['nothing to be seen: tags', '\u{e0041}\u{e0042}'],
]

const addresses: Rows = [
  ['no @', 'acme.example'],
  ['a name before it', 'Ops <ops@acme.example>'],
  ['two', 'ops@acme.example,root@acme.example'],
  ['a header behind it', 'ops@acme.example\r\nBcc: x@y.example'],
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
  // biome-ignore lint/suspicious/noTemplateCurlyInString: what Terraform would take for an expression.
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

const each = (field: string, values: readonly unknown[], change: object = {}): readonly BadRow[] =>
  values.map(value => faultyRow(`${field}: ${shown(value)}`, createWith({ ...change, [field]: value }), field))

const named = (field: string, rows: Rows): readonly BadRow[] =>
  rows.map(([rule, value]) => faultyRow(`${field}: ${rule}`, createWith({ [field]: value }), field))

const all = ['orgName', 'orgEmail', 'sovereignDomainMode', 'providers', 'region', 'sshPublicKey']
const good = String(createWith({}).body)

export const deploymentFieldRows: readonly BadRow[] = [
  ...['null', 'true', '1e999', '"acme"', '[]', `[${good}]`].map(body =>
    faultyRow(`a body is an object: ${shown(body)}`, create(body), ''),
  ),
  ...[
    '{}',
    `{"__proto__":${good}}`,
    `{"constructor":{"prototype":${good}}}`,
    `{"deployment":${good}}`,
    good.toUpperCase(),
  ].map(body =>
    faultyRow(`every missing field is reported, in the documented order: ${shown(body)}`, create(body), ...all),
  ),
  faultyRow(
    'of two equal keys the last counts, as everywhere in JSON',
    create(good.replace(/}$/, ',"region":"."}')),
    'region',
  ),
  ...['orgName', 'orgEmail', 'region', 'sshPublicKey'].flatMap(field => each(field, notText)),
  ...named('orgName', names),
  ...named('orgEmail', addresses),
  ...each('providers', providers),
  ...each('region', regions),
  ...named('sshPublicKey', badSshKeys),
  ...each('objectStorageRegion', [...notText, ...regions, ...inherited, 'fsn2'], storageFields),
  ...each('objectStorageAccessKey', keys, storageFields),
  ...each('objectStorageSecretKey', keys, storageFields),
  faultyRow(
    'the storage is judged with its provider in capitals, and among faulty ones',
    createWith({ providers: [' HETZNER', 5] }),
    'providers',
    'objectStorageRegion',
    'objectStorageAccessKey',
    'objectStorageSecretKey',
  ),
]
