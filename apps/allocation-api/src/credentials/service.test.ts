import { expect, test } from 'vitest'
import { toRateLimitKey } from './service.ts'

test.each([
  ['203.0.113.10', '203.0.113.10'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
  ['2001:db8:1:2::6', '2001:db8:1:2::/64'],
  ['2001:db8:1::6', '2001:db8:1:0::/64'],
  ['2001:db8::3:4:5:6', '2001:db8:0:0::/64'],
  ['2001:db8::2:3:4:5:6', '2001:db8:0:2::/64'],
  ['::1', '0:0:0:0::/64'],
  ['::', '0:0:0:0::/64'],
  ['2001:db8:1:2::', '2001:db8:1:2::/64'],
  ['fe80::1%eth0', 'fe80:0:0:0::/64'],
  ['64:ff9b::203.0.113.10', '64:ff9b:0:0::/64'],
  [null, 'unknown'],
])('%s shares the limit of %s', (address, key) => expect(toRateLimitKey(address)).toBe(key))
