import { globSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { toFileVariable } from '@pool/node-service/env'
import { describe, expect, test } from 'vitest'
import { readConfig } from '../../src/config/config.ts'
import { SECRET_VARIABLES, VARIABLES } from '../../src/config/variables.ts'
import { providerKinds, readProvider } from '../../src/dns/registry.ts'

/** The secrets of the witness, which is another app: its own tests compare them with its configuration. */
const WITNESS_SECRETS = ['WITNESS_DATABASE_URL', 'WITNESS_LISTEN_URL', 'BEARER_TOKENS_CSV', 'TOKEN_POLICIES']

const read = (path: string): string => readFileSync(new URL(`../../../../${path}`, import.meta.url), 'utf8')
const example = read('.env.example')
const configuration = read('docs/reference/configuration.md')

/** The texts between backquotes. */
const extractCodeSpans = (text: string): string[] => Array.from(text.matchAll(/`([^`]+)`/g), ([, inner]) => inner ?? '')

const parseAssignments = (text: string): Record<string, string> =>
  Object.fromEntries(Array.from(text.matchAll(/^([A-Z][A-Z0-9_]*)=(.*)$/gm), ([, name, value]) => [name, value]))

/** Names of variables. Names without one of these prefixes count only in quotes, because constants look the same. */
const names = /\b(?:PDM|DNSPROVIDER|OBJECT_STORAGE|OTEL)_[A-Z0-9_]*[A-Z0-9]\b|'(?:PORT|PROVIDER_[A-Z_]+)'/g

/** The table of the API's variables: the names in each row, and their documented defaults. */
const rows = configuration
  .slice(configuration.indexOf('## Allocation API'), configuration.indexOf('## Lease witness'))
  .split('\n')
  .filter(line => line.startsWith('| `'))
  .map(line => {
    const [, names = '', defaults = ''] = line.split('|')
    return { names: extractCodeSpans(names), defaults }
  })

/** Every variable that the configuration reads. */
const variables = (): string[] => {
  const readNames = new Set<string>()
  const env = (kind: string) =>
    new Proxy<Record<string, string>>(
      {},
      {
        get(_, name) {
          readNames.add(String(name))
          return name === 'DNSPROVIDER_KIND' ? kind : undefined
        },
      },
    )
  readConfig(env(''))
  for (const kind of providerKinds) readProvider(env(kind))
  return [...readNames].sort()
}

describe('the environment is documented', () => {
  test('every variable that the code names is one that the configuration reads', () => {
    const sources = globSync('**/*.ts', { cwd: fileURLToPath(new URL('../../src', import.meta.url)) })
    const named = sources
      .filter(path => !path.endsWith('.test.ts'))
      .flatMap(path => read(`apps/allocation-api/src/${path}`).match(names) ?? [])
    const unique = new Set(named.map(name => name.replaceAll("'", '')))
    // The variable of the tests is known, so that it is not reported as misspelt.
    unique.delete('PDM_TEST_DSN')
    expect([...unique].sort()).toEqual(variables())
  })

  test('the list of variables has every variable that the configuration reads', () => {
    expect(VARIABLES.toSorted()).toEqual(variables())
  })

  test('docs/reference/configuration.md names the file variable of each secret of both services, and no other', () => {
    const named = extractCodeSpans(configuration).filter(text => /^[A-Z0-9_]+_FILE$/.test(text))
    const secrets = [...SECRET_VARIABLES, ...WITNESS_SECRETS].map(toFileVariable)
    expect(named.filter(name => name !== 'OBJECT_STORAGE_CA_FILE').toSorted()).toEqual(secrets.toSorted())
  })

  test('.env.example marks each secret', () => {
    // A block of comments belongs to the variables up to the next block.
    const blocks = example.split(/(?<=^[A-Z].*)\n(?=#)/m)
    const marked = blocks
      .filter(block => /\bSecret\b/.test(block))
      .flatMap(block => Object.keys(parseAssignments(block)))
    for (const secret of [...SECRET_VARIABLES, ...WITNESS_SECRETS]) expect(marked).toContain(secret)
  })

  test('every variable is in .env.example and in docs/reference/configuration.md, in the same order', () => {
    const inExample = Object.keys(parseAssignments(example.slice(0, example.indexOf('# --- Tests'))))
    expect(inExample.toSorted()).toEqual(variables())
    expect(rows.flatMap(({ names }) => names)).toEqual(inExample)
  })

  test.each(rows)('docs/reference/configuration.md has the defaults of $names', ({ names, defaults }) => {
    const given = names
      .map(name => parseAssignments(example)[name] ?? '')
      .filter(value => value && !/^(?:https?|postgres):/.test(value))
    const documented = extractCodeSpans(defaults)
    expect(given.filter(value => !documented.includes(value))).toEqual([])
    expect(documented.length > 0 || /none|required/.test(defaults)).toBe(true)
  })

  test('the values of .env.example are the defaults', () => {
    const env = parseAssignments(example)
    const defaults = readConfig({ PDM_DATABASE_URL: env.PDM_DATABASE_URL })
    expect(readConfig(env)).toEqual(defaults)
    expect(readProvider(env)).toMatchObject({ provider: { kind: 'local' } })
    expect(defaults).toHaveProperty('config')
    // The variables after these are for the repository tests and the lease witness.
    const others = Object.keys(parseAssignments(example.slice(example.indexOf('# --- Tests'))))
    expect(others).toEqual([
      'PDM_TEST_DSN',
      'BEARER_TOKENS_CSV',
      'TOKEN_POLICIES',
      'MAX_REQUESTS_PER_MINUTE',
      'MAX_WAIT_SECONDS',
      'LOG_LEVEL',
      'WITNESS_DATABASE_URL',
      'WITNESS_LISTEN_URL',
      'WITNESS_ALLOW_LOST_WRITES',
      'WITNESS_DATABASE_POOL_SIZE',
      'WITNESS_DATABASE_TIMEOUT',
      'WITNESS_DRAIN_DELAY',
    ])
  })
})
