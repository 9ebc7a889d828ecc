import { describe, expect, test } from 'vitest'
import { parseDuration } from './env.ts'
import { findUnknownVariables } from './unknown-variables.ts'

describe('durations in the syntax of Go', () => {
  test.each([
    ['90s', 90_000],
    ['10m', 600_000],
    ['1h30m', 5_400_000],
    ['24h', 86_400_000],
    ['1h2m3s4ms', 3_723_004],
    ['0s', 0],
    ['250ms', 250],
    ['1.5h', 5_400_000],
    ['.5s', 500],
    ['1.s', 1_000],
    ['1500us', 1.5],
    ['1500\u00b5s', 1.5],
    ['1500\u03bcs', 1.5],
    ['1000000ns', 1],
    ['30m1h', 5_400_000],
    ['1m1m', 120_000],
    ['007s', 7_000],
    // Zero alone needs no unit, and a leading plus is allowed.
    ['0', 0],
    ['+90s', 90_000],
  ])('%s is %d ms', (text, ms) => {
    expect(parseDuration(text) ?? Number.NaN).toBeCloseTo(ms, 6)
  })

  test.each([
    [''],
    ['10'],
    ['s'],
    ['.s'],
    ['10 s'],
    [' 10s'],
    ['10s '],
    ['10S'],
    ['10M'],
    ['1d'],
    ['1w'],
    ['10sec'],
    ['10minutes'],
    ['1h30'],
    ['1h-30m'],
    ['1,5h'],
    ['1e3s'],
    ['0x10s'],
    ['1..5s'],
    ['P1D'],
    ['10s\n'],
    ['\u0661s'],
    ['Infinitys'],
    ['NaN'],
  ])('%j is not a duration', text => {
    expect(parseDuration(text)).toBeNull()
  })
})

const known = {
  prefixes: ['PDM_', 'DNSPROVIDER_'],
  names: [
    'PORT',
    'PDM_DATABASE_URL',
    'PDM_DATABASE_URL_FILE',
    'DNSPROVIDER_MANAGED_DOMAINS',
    'PROVIDER_TOKEN_URLS',
    'TOKEN_POLICIES',
    'WITNESS_PORT',
    'OTEL_TRACES_EXPORTER',
  ],
}

test.each<readonly [variable: string, nearest: string | null]>([
  ['DNSPROVIDER_MANGED_DOMAINS', 'DNSPROVIDER_MANAGED_DOMAINS'],
  ['DNS_PROVIDER_MANAGED_DOMAINS', 'DNSPROVIDER_MANAGED_DOMAINS'],
  ['DNSPROVIDER_MANAGED_DOMIANS', 'DNSPROVIDER_MANAGED_DOMAINS'],
  ['PMD_DATABASE_URL', 'PDM_DATABASE_URL'],
  ['PDM_DATABASE_URL_FIEL', 'PDM_DATABASE_URL_FILE'],
  ['PDM_DB_URL', 'PDM_DATABASE_URL'],
  ['PROVIDER_TOKENS_URL', 'PROVIDER_TOKEN_URLS'],
  ['TOKEN_POLICY', 'TOKEN_POLICIES'],
  ['PDM_X', null],
  ['PDM_SOMETHING_ELSE_ENTIRELY', null],
])('%s is unknown; nearest: %s', (variable, nearest) => {
  expect(findUnknownVariables({ [variable]: 'x' }, known)).toEqual([
    {
      variable,
      detail: expect.stringMatching(nearest === null ? /correct its name$/ : `; did you mean ${nearest}\\?$`),
    },
  ])
})

test.each([
  'PORT',
  'PDM_DATABASE_URL',
  'PATH',
  'POST',
  'DATABASE_URL',
  'TOKEN_URLS',
  'POLICIES',
  'OTEL_LOGS_EXPORTER',
  'WITNESS_URL',
  'pdm_x',
  'XPDM_',
])('%s is not reported', variable => {
  expect(findUnknownVariables({ [variable]: 'x' }, known)).toEqual([])
})

test('a blank variable counts as unset', () => {
  expect(findUnknownVariables({ PDM_X: ' ', PDM_Y: undefined }, known)).toEqual([])
})

test('the variables with which Kubernetes describes a Service are not reported', () => {
  const env = {
    PDM_DB_SERVICE_HOST: '10.0.0.1',
    PDM_DB_SERVICE_PORT: '5432',
    PDM_DB_SERVICE_PORT_SQL: '5432',
    PDM_DB_PORT: 'tcp://10.0.0.1:5432',
    PDM_DB_PORT_5432_TCP_ADDR: '10.0.0.1',
    PDM_DB_PORTS: 'x',
  }
  expect(findUnknownVariables(env, known)).toMatchObject([{ variable: 'PDM_DB_PORTS' }])
})
