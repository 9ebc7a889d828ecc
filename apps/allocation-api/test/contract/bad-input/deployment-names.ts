import { type BadRow, createWith, describeValue, invalidDeploymentRow, storageFields } from './row.ts'

const notNames: readonly (readonly [rule: string, sovereignFQDN: unknown])[] = [
  ['absent', undefined],
  ['null is equivalent to an absent field', null],
  ['a number', 1e21],
  ['a list', ['cloud.acme.example']],
  ['empty', ''],
  ['the root', '.'],
  ['one label', 'localhost'],
  ['an empty label', 'cloud..acme.example'],
  ['a leading dot', '.acme.example'],
  ['two trailing dots', 'cloud.acme.example..'],
  ['254 characters', `${'a.'.repeat(123)}example1`],
  ['254 characters and a trailing dot', `${'a.'.repeat(123)}example1.`],
  ['60,000 labels', 'a.'.repeat(30_000)],
  ['a label of 64 characters', `${'a'.repeat(64)}.example`],
  ['an address', '203.0.113.10'],
  ['a wildcard', '*.acme.example'],
  ['an underscore', '_dmarc.acme.example'],
  ['an IDN', 'b\u00fccher.example'],
  ['an ideographic full stop', 'cloud\u3002acme\u3002example'],
  ['a full-width full stop', 'cloud.acme\uff0eexample'],
  ['KELVIN SIGN, whose lower case is k', '\u212aiosk.acme.example'],
  ['LATIN SMALL LETTER LONG S', 'cloud.\u017fhop.example'],
  ['Cyrillic a', 'cloud.\u0430cme.example'],
  ['a zero-width joiner', 'cloud.ac\u200dme.example'],
  ['a soft hyphen', 'cloud.ac\u00adme.example'],
  ['a right-to-left override', 'cloud.\u202eemca.example'],
  ['a lone surrogate', 'cloud.\udc00.example'],
  ['NUL', 'cloud.acme.example\u0000'],
  ['a line break inside', 'cloud.acme\n.example'],
  ['a URL', 'https://cloud.acme.example/'],
  ['a port', 'cloud.acme.example:443'],
  ['a path traversal', '../../cloud.acme.example'],
  ['a pool', 'pool.test'],
  ['a name of a pool', 'acme.pool.test'],
  ['a name of a pool in mixed case, with a trailing dot', 'a.b.POOL.Test.'],
]

const pool = { sovereignDomainMode: 'pool', sovereignPoolDomain: 'pool.test', sovereignSubdomain: 'acme' }
const inPool = (change: object) => createWith({ ...pool, sovereignFQDN: undefined, ...change })

const notPools: readonly unknown[] = [
  undefined,
  null,
  '',
  5,
  {},
  'other.test',
  'pool.test.',
  'a.pool.test',
  'test',
  '__proto__',
  'p\u043eol.test',
  'pool.test\u0000',
]

const notLabels: readonly unknown[] = [
  undefined,
  null,
  '',
  5,
  ['acme'],
  'a.b',
  '-a',
  '1a',
  'a-',
  'xn--bcher-kva',
  'ab--c',
  'b\u00fccher',
  '\u212ael',
  'a\u0000',
  '\ud800',
  '__proto__',
  'a'.repeat(64),
  'admin',
  ' WWW ',
]

/** With a bucket, the FQDN must fit into the 63 characters of an S3 bucket name. */
const tooLongForBucket = `${'a'.repeat(52)}.io`

export const deploymentNameRows: readonly BadRow[] = [
  ...[undefined, null, '', 'POOL', 'pool ', 5, {}, ['pool'], '__proto__', 'constructor', 'toString'].map(mode =>
    invalidDeploymentRow(
      `sovereignDomainMode: ${describeValue(mode)}`,
      createWith({ sovereignDomainMode: mode }),
      'sovereignDomainMode',
    ),
  ),
  ...notNames.map(([rule, sovereignFQDN]) =>
    invalidDeploymentRow(`sovereignFQDN: ${rule}`, createWith({ sovereignFQDN }), 'sovereignFQDN'),
  ),
  ...notPools.map(value =>
    invalidDeploymentRow(
      `sovereignPoolDomain: ${describeValue(value)}`,
      inPool({ sovereignPoolDomain: value }),
      'sovereignPoolDomain',
    ),
  ),
  ...notLabels.map(value =>
    invalidDeploymentRow(
      `sovereignSubdomain: ${describeValue(value)}`,
      inPool({ sovereignSubdomain: value }),
      'sovereignSubdomain',
    ),
  ),
  ...['other.pool.test', 'acme.pool.test..', 'acme', 5, '\u0000'].map(value =>
    invalidDeploymentRow(
      `in a pool, sovereignFQDN: ${describeValue(value)}`,
      inPool({ sovereignFQDN: value }),
      'sovereignFQDN',
    ),
  ),
  invalidDeploymentRow(
    'a derived bucket name that is too long',
    createWith({ ...storageFields, sovereignFQDN: tooLongForBucket }),
    'sovereignFQDN',
  ),
  invalidDeploymentRow(
    'a derived bucket name that is too long, in a pool',
    inPool({ ...storageFields, sovereignSubdomain: 'a'.repeat(50) }),
    'sovereignSubdomain',
  ),
]
