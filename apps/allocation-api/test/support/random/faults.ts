import type { DynadotCommand, DynadotFault } from '@pool/test-kit/dns/dynadot-double.ts'

/** Weighted faults of a call of the provider port, the same for every provider. */
export const readFaults = [
  [70, 'none'],
  [4, 'no effect'],
  [4, 'response lost'],
  [2, 'too many requests'],
  [2, 'zone'],
  [15, 'stale'],
] as const

export const applyFaults = [
  [45, 'none'],
  [6, 'no effect'],
  [10, 'response lost'],
  [12, 'late'],
  [3, 'too many requests'],
  [2, 'zone'],
  [8, 'partial'],
  [6, 'rejected'],
] as const

/** Weighted faults of an HTTP request, for a provider with an HTTP API. */
export const httpFaults = {
  get_dns: [
    [80, undefined],
    [12, 'stale'],
    [2, 'no response, no effect'],
    [1, 'truncated body'],
    [1, 'missing settings'],
    [1, 'busy'],
    [1, { status: 500 }],
  ],
  set_dns2: [
    [60, undefined],
    [4, 'no response, no effect'],
    [10, 'no response, with effect'],
    [10, 'late'],
    [3, 'truncated body'],
    [2, 'busy'],
    [2, { status: 500 }],
    [1, { status: 429, retryAfter: '3' }],
    [3, { error: 'too many cooks' }],
  ],
} as const satisfies Record<DynadotCommand, readonly (readonly [number, DynadotFault | 'late' | undefined])[]>
