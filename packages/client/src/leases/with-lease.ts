import { checkOptions } from '../options.ts'
import { CANDIDATE_OPTIONS, LeaseElector, type LeaseElectorOptions } from './elector.ts'
import { type LeadershipContext, LeadershipLostError } from './tenure-context.ts'

export interface WithLeaseOptions extends Omit<LeaseElectorOptions, 'slot' | 'callbacks' | 'releaseOnCancel'> {
  /** Ends the wait for the lease, or the work. */
  readonly signal?: AbortSignal
}

/**
 * Waits for the lease, calls `work` once while this process holds it, and releases it. `work` must stop when
 * `context.signal` is aborted. Resolves with the result of `work`. Rejects with its error; with LeadershipLostError if the
 * lease was lost before it finished; with the reason of the signal.
 */
export const withLease = async <Result>(
  slot: string,
  work: (context: LeadershipContext) => Promise<Result>,
  options: WithLeaseOptions,
): Promise<Result> => {
  checkOptions('withLease', options, { ...CANDIDATE_OPTIONS, signal: 'signal' })
  if (typeof work !== 'function') throw new TypeError('withLease: the second argument must be a function, the work.')
  const { signal, ...rest } = options
  signal?.throwIfAborted()
  const stop = new AbortController()
  const abort = () => stop.abort()
  signal?.addEventListener('abort', abort, { once: true })
  let result: { readonly value: Result } | undefined
  let lost: LeadershipLostError | undefined
  const elector = new LeaseElector({
    ...rest,
    slot,
    callbacks: {
      onStartedLeading: async context => {
        try {
          const value = await work(context)
          // A result after the end of the tenure can be the result of two processes.
          context.assertLeader()
          result = { value }
        } finally {
          stop.abort()
        }
      },
      onStoppedLeading: reason => {
        if (reason !== 'cancelled') lost = new LeadershipLostError(slot, reason)
        stop.abort()
      },
    },
  })
  try {
    await elector.run(stop.signal)
  } finally {
    signal?.removeEventListener('abort', abort)
  }
  if (result) return result.value
  signal?.throwIfAborted()
  throw lost ?? new LeadershipLostError(slot, 'cancelled')
}
