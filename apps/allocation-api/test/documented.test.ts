import { readFileSync } from 'node:fs'
import { operations } from '@pool/contract'
import { describe, expect, test } from 'vitest'
import { readConfig } from '../src/config.ts'
import { providerKinds, readProvider } from '../src/dns/registry.ts'

const read = (path: string): string => readFileSync(new URL(`../../../${path}`, import.meta.url), 'utf8')
const example = read('.env.example')
const readme = read('README.md')

/** Every variable that the configuration asks for. */
const variables = (): string[] => {
  const asked = new Set<string>()
  const env = (kind: string) =>
    new Proxy<Record<string, string>>(
      {},
      {
        get(_, name) {
          asked.add(String(name))
          return name === 'DNSPROVIDER_KIND' ? kind : undefined
        },
      },
    )
  readConfig(env(''))
  for (const kind of providerKinds) readProvider(env(kind))
  return [...asked].sort()
}

describe('the environment is documented', () => {
  test.each(variables())('%s stands in .env.example and in the README', variable => {
    expect(example).toMatch(new RegExp(`^${variable}=`, 'm'))
    expect(readme).toContain(`\`${variable}\``)
  })

  test('the values of .env.example are the defaults', () => {
    const env = Object.fromEntries(
      example
        .split('\n')
        .filter(line => line && !line.startsWith('#'))
        .map(line => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]),
    )
    const defaults = readConfig({ PDM_DATABASE_URL: env.PDM_DATABASE_URL })
    expect(readConfig(env)).toEqual(defaults)
    expect(readProvider(env)).toMatchObject({ provider: { kind: 'local' } })
    expect(defaults).toHaveProperty('config')
    // Of the store's tests, and of the lease witness.
    const { PDM_TEST_DSN: _, BEARER_TOKENS_CSV: _tokens, LOG_LEVEL: _level, ...known } = env
    expect(Object.keys(known).sort()).toEqual(variables())
  })
})

test.each(operations.map(({ method, path }) => [method.toUpperCase(), path]))(
  'the README has %s %s',
  (method, path) => {
    const named = readme.split('\n').filter(line => line.startsWith('|') && line.includes('`'))
    const stem = path.replace('/docs/{asset}', '/docs')
    expect(named.some(line => line.includes(stem) && (line.includes(`${method} `) || method === 'GET'))).toBe(true)
  },
)
