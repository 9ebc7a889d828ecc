import { deploymentCommon } from '@pool/contract'
import { expect, test } from 'vitest'
import { toFieldText } from './field-text.ts'

test.each([
  ['sovereignSubdomain is required: one label.', 'The subdomain is required: one label.'],
  ['loadBalancerIP must be a unicast IPv4 address.', 'The address must be a unicast IPv4 address.'],
  ['The access key is required.', 'The access key is required.'],
])('%s', (message, text) => expect(toFieldText(message)).toBe(text))

test('every field of a deployment that a form can leave empty has a label', () => {
  const issues = deploymentCommon.safeParse({}).error?.issues ?? []
  expect(issues.length).toBeGreaterThan(0)
  for (const { message } of issues) expect(toFieldText(message)).toMatch(/^(?:The|A) /)
})
