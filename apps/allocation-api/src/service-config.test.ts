import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { toFileVariable } from '@pool/runtime/service/env'
import { afterAll, expect, test } from 'vitest'
import { findConfigWarnings, findSecrets, readServiceConfig, SECRET_VARIABLES } from './service-config.ts'

const folder = mkdtempSync(join(tmpdir(), 'service-config-'))
afterAll(() => rmSync(folder, { recursive: true }))

const values: Record<(typeof SECRET_VARIABLES)[number], string> = {
  PDM_DATABASE_URL: 'postgres://u:mark@h/d',
  PDM_OPERATOR_TOKENS: 'mark-a-0123456789,mark-b-0123456789',
  PDM_WITNESS_TOKEN: 'mark-w',
  DNSPROVIDER_POWERDNS_API_KEY: 'mark-key',
  DNSPROVIDER_CLOUDFLARE_API_TOKEN: 'mark-token',
  DNSPROVIDER_DYNADOT_API_KEY: 'mark-key',
  DNSPROVIDER_RFC2136_TSIG_SECRET: 'bWFyaw==',
  OTEL_EXPORTER_OTLP_HEADERS: 'api-key=mark',
  OTEL_EXPORTER_OTLP_TRACES_HEADERS: 'api-key=mark',
}
const providerOf: Readonly<Record<string, Record<string, string>>> = {
  PDM_WITNESS_TOKEN: { PDM_WITNESS_URL: 'http://witness.test' },
  DNSPROVIDER_POWERDNS_API_KEY: { DNSPROVIDER_KIND: 'powerdns', DNSPROVIDER_POWERDNS_URL: 'http://dns.test' },
  DNSPROVIDER_CLOUDFLARE_API_TOKEN: { DNSPROVIDER_KIND: 'cloudflare' },
  DNSPROVIDER_DYNADOT_API_KEY: { DNSPROVIDER_KIND: 'dynadot' },
  DNSPROVIDER_RFC2136_TSIG_SECRET: {
    DNSPROVIDER_KIND: 'rfc2136',
    DNSPROVIDER_RFC2136_HOST: 'dns.test',
    DNSPROVIDER_RFC2136_TSIG_NAME: 'key.test',
  },
  OTEL_EXPORTER_OTLP_HEADERS: { OTEL_EXPORTER_OTLP_ENDPOINT: 'https://otel.test' },
  OTEL_EXPORTER_OTLP_TRACES_HEADERS: { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'https://otel.test' },
}
const base = { PDM_DATABASE_URL: 'postgres://h/d' }

test.each(SECRET_VARIABLES)('%s can come from a file', variable => {
  const path = join(folder, variable)
  writeFileSync(path, `${values[variable]}\n`)
  const { PDM_DATABASE_URL: _, ...others } = base
  const env = { ...(variable === 'PDM_DATABASE_URL' ? others : base), ...providerOf[variable] }
  const fromFile = readServiceConfig({ ...env, [toFileVariable(variable)]: path })
  const fromEnvironment = readServiceConfig({ ...env, [variable]: values[variable] })
  expect(fromFile).toHaveProperty('config')
  // The functions of the provider are different objects.
  expect(JSON.stringify(fromFile)).toBe(JSON.stringify(fromEnvironment))
  expect('config' in fromFile && fromFile.config.env).toEqual('config' in fromEnvironment && fromEnvironment.config.env)
})

test.each(SECRET_VARIABLES)('%s and its file are an error, and so is a file that cannot be read', variable => {
  const env = { ...base, ...providerOf[variable] }
  const path = join(folder, 'no-such-file')
  const fileVariable = toFileVariable(variable)
  expect(readServiceConfig({ ...env, [variable]: values[variable], [fileVariable]: path })).toEqual({
    issues: [{ variable: fileVariable, detail: expect.stringContaining(`together with ${variable}`) }],
  })
  const without = { ...env, [variable]: '' }
  expect(readServiceConfig({ ...without, [fileVariable]: path })).toEqual({
    issues: [{ variable: fileVariable, detail: expect.stringMatching(/no-such-file.*ENOENT/) }],
  })
})

test.each(['10s', '48h'])('a TTL that Cloudflare rejects at each commit ends the start: %s', ttl => {
  const cloudflare = { ...base, DNSPROVIDER_KIND: 'cloudflare', DNSPROVIDER_CLOUDFLARE_API_TOKEN: 'mark-token' }
  const issue = { variable: 'DNSPROVIDER_RECORD_TTL', detail: 'must be from 30s to 86400s with cloudflare' }
  const pool = { DNSPROVIDER_MANAGED_DOMAINS: 'pool.test' }
  expect(readServiceConfig({ ...cloudflare, ...pool, DNSPROVIDER_RECORD_TTL: ttl })).toEqual({ issues: [issue] })
  expect(readServiceConfig({ ...base, ...pool, DNSPROVIDER_RECORD_TTL: ttl })).toHaveProperty('config')
})

test('a domain at Dynadot has one pool: a write replaces the whole domain', () => {
  const dynadot = { ...base, DNSPROVIDER_KIND: 'dynadot', DNSPROVIDER_DYNADOT_API_KEY: 'mark-key' }
  const detail = 'must have one pool in the domain example.test with dynadot'
  const issues = [{ variable: 'DNSPROVIDER_ZONES', detail }]
  const one = { ...dynadot, DNSPROVIDER_ZONES: 'a.example.test=example.test' }
  const read = (domains: string, env: Record<string, string> = one) =>
    readServiceConfig({ ...env, DNSPROVIDER_MANAGED_DOMAINS: domains })
  expect(read('a.example.test')).toHaveProperty('config')
  expect(read('a.example.test,example.test')).toEqual({ issues })
  const two = { ...one, DNSPROVIDER_ZONES: `${one.DNSPROVIDER_ZONES},b.example.test=example.test` }
  expect(read('a.example.test', two)).toEqual({ issues })
  expect(read('a.example.test', { ...two, DNSPROVIDER_KIND: 'local' })).toHaveProperty('config')
})

test('one result lists the issues of files and of values', () => {
  const result = readServiceConfig({ PDM_DATABASE_URL_FILE: '/no/such/file', PORT: 'x', DNSPROVIDER_KIND: 'x' })
  expect('issues' in result && result.issues.map(({ variable }) => variable)).toEqual([
    'PDM_DATABASE_URL_FILE',
    'PORT',
    'DNSPROVIDER_KIND',
  ])
})

const none = { operator: null, trustedProxies: [] }
const toOperator = (...tokens: string[]) => ({ ...none, operator: { port: 8081, tokens } })

test('a misspelt variable, with the nearest correct name and without its value', () => {
  const env = {
    PDM_DATABASE_URL: 'x',
    DNSPROVIDER_MANGED_DOMAINS: 'mark',
    PDM_OPERATOR_TOKENS_FIL: '/mark',
    PATH: '/bin',
  }
  expect(findConfigWarnings(env, none)).toEqual([
    {
      variable: 'DNSPROVIDER_MANGED_DOMAINS',
      detail: 'is not a variable of this service; did you mean DNSPROVIDER_MANAGED_DOMAINS?',
    },
    {
      variable: 'PDM_OPERATOR_TOKENS_FIL',
      detail: 'is not a variable of this service; did you mean PDM_OPERATOR_TOKENS_FILE?',
    },
  ])
})

test('an operator token of fewer than 32 characters', () => {
  const long = 'a'.repeat(32)
  expect(findConfigWarnings({}, toOperator(long))).toEqual([])
  const warnings = findConfigWarnings({}, toOperator(long, 'mark'))
  expect(warnings).toMatchObject([
    { variable: 'PDM_OPERATOR_TOKENS', detail: expect.stringMatching(/fewer than 32 characters.*openssl rand/) },
  ])
  expect(JSON.stringify(warnings)).not.toContain('mark')
})

test('the variables of the tests are no mistake', () => {
  expect(findConfigWarnings({ PDM_TEST_DSN: 'postgres://x', PDM_TEST_SETTINGS: '{}' }, none)).toEqual([])
})

test('a network of trusted proxies that contains every address', () => {
  const toProxies = (prefix: number) => ({
    ...none,
    trustedProxies: [{ address: '::', prefix, family: 'ipv6' as const }],
  })
  expect(findConfigWarnings({}, toProxies(1))).toEqual([])
  expect(findConfigWarnings({}, toProxies(0))).toMatchObject([
    { variable: 'PDM_TRUSTED_PROXIES', detail: expect.stringContaining('list the networks of your proxies only') },
  ])
})

const database = 'postgres://u:mark@127.0.0.1/d'
test.each<readonly [env: Record<string, string>, variables: readonly string[]]>([
  [{ PDM_WITNESS_URL: 'http://192.0.2.2', PDM_WITNESS_TOKEN: 'mark' }, ['PDM_WITNESS_URL']],
  [{ PDM_WITNESS_URL: 'http://127.0.0.1:8787', PDM_WITNESS_TOKEN: 'mark' }, []],
  [{ PDM_WITNESS_URL: 'https://witness.test', PDM_WITNESS_TOKEN: 'mark' }, []],
  [
    { DNSPROVIDER_POWERDNS_URL: 'http://192.0.2.1:8081', DNSPROVIDER_POWERDNS_API_KEY: 'mark' },
    ['DNSPROVIDER_POWERDNS_URL'],
  ],
  [{ DNSPROVIDER_POWERDNS_URL: 'http://localhost:8081', DNSPROVIDER_POWERDNS_API_KEY: 'mark' }, []],
  [
    { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://otel.test:4318', OTEL_EXPORTER_OTLP_HEADERS: 'a=mark' },
    ['OTEL_EXPORTER_OTLP_ENDPOINT'],
  ],
  [
    { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://otel.test', OTEL_EXPORTER_OTLP_TRACES_HEADERS: 'a=mark' },
    ['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT'],
  ],
  [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://otel.test:4318' }, []],
  [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://u:mark@otel.test:4318' }, ['OTEL_EXPORTER_OTLP_ENDPOINT']],
  [{ PDM_DATABASE_URL: 'postgres://u:mark@192.0.2.3/d' }, ['PDM_DATABASE_URL']],
  [{ PDM_DATABASE_URL: 'postgres://u:mark@127.0.0.1,db.test/d' }, ['PDM_DATABASE_URL']],
  [{ PDM_DATABASE_URL: 'postgres://u:mark@db.test/d?sslmode=require' }, []],
  [{ PDM_DATABASE_URL: 'postgres://u:mark@[::1]/d' }, []],
])('credentials without TLS to another machine: %o', (env, variables) => {
  const found = findConfigWarnings({ PDM_DATABASE_URL: database, ...env }, none)
  expect(found.map(({ variable }) => variable)).toEqual(variables)
  expect(JSON.stringify(found)).not.toContain('mark')
})

test('PDM_REQUIRE_TLS makes them an error', () => {
  const env = { PDM_DATABASE_URL: database, PDM_WITNESS_URL: 'http://192.0.2.2', PDM_WITNESS_TOKEN: 'mark' }
  expect(readServiceConfig(env)).toHaveProperty('config')
  expect(readServiceConfig({ ...env, PDM_REQUIRE_TLS: 'true' })).toMatchObject({
    issues: [{ variable: 'PDM_WITNESS_URL' }],
  })
})

test.each(SECRET_VARIABLES)('the value of %s, and each part of it that is a secret, is masked everywhere', variable => {
  const env = { [variable]: variable === 'PDM_DATABASE_URL' ? 'postgres://user:pass%2Fword@h/d' : 'first-one, second' }
  const parts = variable === 'PDM_DATABASE_URL' ? ['pass%2Fword', 'pass/word'] : ['first-one', 'second']
  expect(findSecrets(env)).toEqual(expect.arrayContaining(parts))
})
