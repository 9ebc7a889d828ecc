import { AllocationClient } from '@pool/client/allocation'

type Listener = () => void
const listeners = new Set<Listener>()

/** Calls `listener` whenever the service rejects the session. Returns a function that ends this. */
export const onSessionEnd = (listener: Listener): (() => void) => {
  listeners.add(listener)
  return () => void listeners.delete(listener)
}

/**
 * The client of the page. The cookie of the session authenticates it, which scripts cannot read. A page shows an error
 * sooner than a program gives up, and offers to try again.
 */
export const client = new AllocationClient({
  baseUrl: location.origin,
  retry: { maxAttempts: 3, minBackoffMs: 200, maxBackoffMs: 2_000 },
  hooks: {
    onAttemptEnd: ({ status, operation }) => {
      if (status === 401 && operation !== 'startSession') {
        for (const listener of listeners) listener()
      }
    },
  },
})
