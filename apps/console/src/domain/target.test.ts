import { expect, test } from 'vitest'
import { parseTarget } from './target.ts'

const none = { loadBalancerIP: null, loadBalancerIPv6: null, consoleLoadBalancerIP: null }
const digest = 'AB'.repeat(32)

test.each([
  ['203.0.113.10', { ...none, loadBalancerIP: '203.0.113.10' }],
  [
    '2001:DB8::1, console 203.0.113.9',
    { ...none, loadBalancerIPv6: '2001:db8::1', consoleLoadBalancerIP: '203.0.113.9' },
  ],
  ['LB.cloud.example.', { loadBalancerHostname: 'lb.cloud.example' }],
  [
    `ns2.cloud.example, ns1.cloud.example, DS 1 13 2 ${digest}`,
    {
      nameservers: ['ns1.cloud.example', 'ns2.cloud.example'],
      ds: [{ keyTag: 1, algorithm: 13, digestType: 2, digest }],
    },
  ],
  ['300.1.1.1', 'loadBalancerIP must be a unicast IPv4 address'],
  ['203.0.113.10, lb.cloud.example', 'exclude each other'],
  ['console 203.0.113.9 x', 'consoleLoadBalancerIP must be'],
])('%s', (text, expected) => {
  const parsed = parseTarget(text, { acceptsLoopback: false })
  if (typeof expected === 'string')
    expect(parsed).toMatchObject({ kind: 'invalid', detail: expect.stringContaining(expected) })
  else expect(parsed).toEqual({ kind: 'target', change: expected })
})
