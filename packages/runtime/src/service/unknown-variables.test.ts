import { expect, test } from 'vitest'
import { findUnknownVariables } from './unknown-variables.ts'

const known = {
  prefixes: ['PDM_', 'DNSPROVIDER_'],
  names: ['PORT', 'PDM_DATABASE_URL', 'PDM_DATABASE_URL_FILE', 'DNSPROVIDER_MANAGED_DOMAINS', 'PROVIDER_TOKEN_URLS'],
}

test.each<readonly [variable: string, nearest: string | null]>([
  ['DNSPROVIDER_MANGED_DOMAINS', 'DNSPROVIDER_MANAGED_DOMAINS'],
  ['DNS_PROVIDER_MANAGED_DOMAINS', 'DNSPROVIDER_MANAGED_DOMAINS'],
  ['DNSPROVIDER_MANAGED_DOMIANS', 'DNSPROVIDER_MANAGED_DOMAINS'],
  ['PMD_DATABASE_URL', 'PDM_DATABASE_URL'],
  ['PDM_DATABASE_URL_FIEL', 'PDM_DATABASE_URL_FILE'],
  ['PDM_DB_URL', 'PDM_DATABASE_URL'],
  ['PROVIDER_TOKENS_URL', 'PROVIDER_TOKEN_URLS'],
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

test.each(['PORT', 'PDM_DATABASE_URL', 'PATH', 'POST', 'DATABASE_URL', 'TOKEN_URLS', 'pdm_x', 'XPDM_'])(
  '%s is not reported',
  variable => {
    expect(findUnknownVariables({ [variable]: 'x' }, known)).toEqual([])
  },
)

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
