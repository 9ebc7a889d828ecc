import { expect, test } from 'vitest'
import { findConfigWarnings } from './warnings.ts'

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
  expect(findConfigWarnings({ PDM_TEST_DSN: 'postgres://x' }, none)).toEqual([])
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
