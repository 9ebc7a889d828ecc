import { globSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { EnvReader, toFileVariable } from '@pool/runtime/service/env'
import { describe, expect, test } from 'vitest'
import { readConfig } from '../../src/config/config.ts'
import { readProvider } from '../../src/dns/registry.ts'
import { SECRET_VARIABLES, VARIABLES } from '../../src/service-config.ts'

/** The secrets of the witness, which is another app: its own tests compare them with its configuration. */
const WITNESS_SECRETS = ['WITNESS_DATABASE_URL', 'WITNESS_LISTEN_URL', 'BEARER_TOKENS_CSV', 'TOKEN_POLICIES']

const toPath = (path: string): string => fileURLToPath(new URL(`../../../../${path}`, import.meta.url))
const read = (path: string): string => readFileSync(toPath(path), 'utf8')
const configuration = read('docs/reference/configuration.md')

/** The texts between backquotes. */
const extractCodeSpans = (text: string): string[] => Array.from(text.matchAll(/`([^`]+)`/g), ([, inner]) => inner ?? '')

/** Names of variables. Names without one of these prefixes count only in quotes, because constants look the same. */
const names = /\b(?:PDM|DNSPROVIDER|OBJECT_STORAGE|OTEL)_[A-Z0-9_]*[A-Z0-9]\b|'(?:PORT|PROVIDER_[A-Z_]+)'/g

interface Variables {
  readonly names: readonly string[]
  /** In the order of the names; empty if a variable has none. */
  readonly defaults: readonly string[]
  readonly text: string
}

/** A section of docs/reference/configuration.md. */
const readSection = (title: string): string => configuration.split(`\n## ${title}\n`)[1]?.split('\n## ', 1)[0] ?? ''

/** The rows of the tables in a section. */
const readRows = (section: string): readonly Variables[] =>
  Array.from(
    readSection(section).matchAll(/^\| (`[A-Z].*?) \| (.*?) \| (.*) \|$/gm),
    ([, first = '', second = '', text = '']) => ({
      names: extractCodeSpans(first),
      defaults: (second.match(/`[^`]+`|none|required/g) ?? []).map(value => /^`(.*)`$/.exec(value)?.[1] ?? ''),
      text,
    }),
  )
const rows = readRows('Allocation API')

/** Comment lines of at most 120 characters, or of one word. */
const toComment = (text: string): string =>
  Array.from(
    text
      .replaceAll(/ \(\[[^\]]*\]\([^)]*\)\)/g, '')
      .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1')
      .matchAll(/(.{1,118}|\S+)(?: |$)/g),
    ([, line]) => `# ${line}`,
  ).join('\n')

const toExample = ({ names: variables, defaults, text }: Variables): string =>
  [toComment(text), ...variables.map((name, index) => `${name}=${defaults[index] ?? ''}`)].join('\n')

const EXAMPLE = `# Every variable of the allocation API, then those of the lease witness, from docs/reference/configuration.md. Copy what you
# need. An unset or blank variable has the value shown.
# A secret can come from a file: set <VARIABLE>_FILE to its path instead.
# Durations are written as in Go: 90s, 10m, 1h30m. Lists are separated by commas or white space.
`

describe('the environment is documented', () => {
  test('every variable that the code names is one that the configuration reads', () => {
    const sources = globSync('**/*.ts', { cwd: toPath('apps/allocation-api/src') })
    const named = sources
      .filter(path => !path.endsWith('.test.ts'))
      .flatMap(path => read(`apps/allocation-api/src/${path}`).match(names) ?? [])
    const unique = new Set(named.map(name => name.replaceAll("'", '')))
    // The variables of the tests are known, so that they are not reported as misspelt.
    for (const name of ['PDM_TEST_DSN', 'PDM_TEST_SETTINGS']) unique.delete(name)
    expect([...unique].sort()).toEqual(VARIABLES.toSorted())
  })

  test('docs/reference/configuration.md has every variable', () => {
    expect(rows.flatMap(row => row.names).toSorted()).toEqual(VARIABLES.toSorted())
  })

  test('docs/reference/configuration.md names the file variable of each secret of both services, and no other', () => {
    const named = extractCodeSpans(readSection('Secrets from files')).filter(text => /^[A-Z0-9_]+_FILE$/.test(text))
    const secrets = [...SECRET_VARIABLES, ...WITNESS_SECRETS].map(toFileVariable)
    expect(named.toSorted()).toEqual(secrets.toSorted())
  })

  test.each([...SECRET_VARIABLES, ...WITNESS_SECRETS])(
    'docs/reference/configuration.md marks the secret %s',
    secret => {
      const row = [...rows, ...readRows('Lease witness')].find(candidate => candidate.names.includes(secret))
      expect(row?.text).toMatch(/\bsecret\b/i)
    },
  )

  test('the defaults in docs/reference/configuration.md are those of the service', () => {
    const documented = rows.flatMap(row => row.names.map((name, index) => [name, row.defaults[index]]))
    const url = { PDM_DATABASE_URL: 'postgres://db.test/pdm' }
    const env = new EnvReader({ ...Object.fromEntries(documented), ...url })
    expect(readConfig(env)).toEqual(readConfig(new EnvReader(url)))
    expect(readProvider(env)).toMatchObject({ kind: 'local' })
    expect(env.issues).toEqual([])
    expect(rows.filter(row => row.defaults.length < row.names.length)).toEqual([])
  })

  // Written by: npx -y pnpm@12 test docs-in-sync --update
  test('.env.example has the tables of docs/reference/configuration.md', async () => {
    const witness = readRows('Lease witness').map(toExample)
    const text = [EXAMPLE, ...rows.map(toExample), '# --- Lease witness ---', ...witness].join('\n')
    await expect(`${text}\n`).toMatchFileSnapshot(toPath('.env.example'))
  })
})
