import { expect, test } from 'vitest'
import type { Runtime } from './artifacts.ts'
import { productVariables } from './product-variables.ts'
import { findIgnoredNames, OWN_VARIABLES } from './variables.ts'

const find = (runtime: Runtime, ...names: readonly string[]) =>
  findIgnoredNames(Object.fromEntries(names.map(name => [name, 'x'])), runtime, productVariables)

test.each<readonly [runtime: Runtime, variable: string, advice: string]>([
  ['allocation-api', 'PDM_RESERVATON_TTL', 'did you mean PDM_RESERVATION_TTL?'],
  ['allocation-api', 'RESERVATION_TTL', 'did you mean PDM_RESERVATION_TTL?'],
  ['allocation-api', 'LOG_LEVEL', 'did you mean PDM_LOG_LEVEL?'],
  ['allocation-api', 'MAX_WAIT_SECONDS', 'remove it'],
  ['lease-witness', 'WITNESS_DRAIN_DELEY', 'did you mean WITNESS_DRAIN_DELAY?'],
  ['lease-witness', 'MAX_WAIT', 'did you mean MAX_WAIT_SECONDS?'],
  ['lease-witness', 'DRAIN', 'remove it'],
  ['worker', 'MAX_WAIT_SECOND', 'did you mean MAX_WAIT_SECONDS?'],
  ['worker', 'TOKEN_POLICIES_FILE', 'did you mean TOKEN_POLICIES?'],
  ['worker', 'WITNESS_DRAIN_DELAY', 'remove it'],
  ['worker', 'NODE_OPTIONS', 'remove it'],
])('%s: %s', (runtime, variable, advice) => {
  expect(find(runtime, variable)).toEqual([expect.stringMatching(`^${variable} is not .*${advice.replace('?', '.')}`)])
})

test('a variable that the package sets names what to use instead', () => {
  for (const runtime of Object.keys(OWN_VARIABLES) as Runtime[]) {
    for (const [name, advice] of Object.entries(OWN_VARIABLES[runtime])) {
      expect(find(runtime, name)).toEqual([`${name} is set by this package; ${advice}`])
      expect(find(runtime, `${name}_FILE`)).toEqual([`${name}_FILE is set by this package; ${advice}`])
    }
  }
})

test('every other variable of a service can be set, and those of Node and of Terraform', () => {
  for (const runtime of Object.keys(OWN_VARIABLES) as Runtime[]) {
    const isFree = (name: string) => !(name.replace(/_FILE$/, '') in OWN_VARIABLES[runtime])
    const names = productVariables[runtime].filter(isFree)
    expect(names).toContain(runtime === 'allocation-api' ? 'PDM_NAME_COOL_OFF' : 'MAX_WAIT_SECONDS')
    expect(find(runtime, ...names)).toEqual([])
  }
  expect(find('allocation-api', 'NODE_OPTIONS', 'TZ', 'TF_PLUGIN_CACHE_DIR', 'https_proxy')).toEqual([])
  const passed = { PDM_TERRAFORM_PASS_ENV: 'HCLOUD_ENDPOINT', HCLOUD_ENDPOINT: 'x' }
  expect(findIgnoredNames(passed, 'allocation-api', productVariables)).toEqual([])
})
