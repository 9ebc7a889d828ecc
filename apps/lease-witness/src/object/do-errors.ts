import type { Unavailable } from '../lease-service.ts'

/** What the platform says of a call to a Durable Object that failed. */
interface Flags {
  /** The object's own code threw. */
  readonly remote?: unknown
  readonly retryable?: unknown
  readonly overloaded?: unknown
  readonly durableObjectReset?: unknown
}

/**
 * A failed call to an object. Undefined: its code threw, which is a defect of ours. Everything else is the platform's
 * doing and passes; whether a write was made is then unknown, so it is never sent a second time.
 */
export const objectFault = (error: unknown): Unavailable | undefined => {
  const flags: Flags = typeof error === 'object' && error !== null ? error : {}
  if (flags.overloaded === true) return { kind: 'overloaded' }
  const isPlatform = flags.retryable === true || flags.durableObjectReset === true || flags.remote !== true
  return isPlatform ? { kind: 'lease-unavailable' } : undefined
}
