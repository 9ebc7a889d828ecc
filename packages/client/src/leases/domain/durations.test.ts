import { expect, test } from 'vitest'
import { DEFAULT_DURATIONS, validateDurations } from './durations.ts'

test('the defaults are valid, and those of client-go', () => {
  expect(() => validateDurations(DEFAULT_DURATIONS)).not.toThrow()
  expect(() => validateDurations({ leaseDuration: 15_000, renewDeadline: 10_000, retryPeriod: 2_000 })).not.toThrow()
})

test.each<[string, Partial<typeof DEFAULT_DURATIONS>, RegExp]>([
  [
    'a lease shorter than the shortest TTL',
    { leaseDuration: 999, renewDeadline: 500, retryPeriod: 100 },
    /^leaseDuration is 999; /,
  ],
  ['a lease longer than the longest TTL', { leaseDuration: 86_400_001 }, /^leaseDuration is 86400001; /],
  ['no number', { leaseDuration: Number.NaN }, /^leaseDuration is NaN; /],
  [
    'a deadline as long as the lease',
    { leaseDuration: 10_000 },
    /^leaseDuration \(10000\) must be greater than renewDeadline .*; increase leaseDuration, or decrease renewDeadline and/,
  ],
  [
    'a period that leaves no second attempt',
    { retryPeriod: 16_667 },
    /^renewDeadline \(20000\) must be greater than 1.2 × /,
  ],
  ['no pause', { retryPeriod: 0 }, /^retryPeriod is 0; /],
])('%s is invalid', (_, changed, message) => {
  expect(() => validateDurations({ ...DEFAULT_DURATIONS, ...changed })).toThrow(message)
})
