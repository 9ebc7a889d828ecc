import { checkOptions } from '../options.ts'
import { pause, systemTiming } from '../timing.ts'
import { DEFAULT_DURATIONS } from './domain/durations.ts'
import { ELECTOR_OPTIONS, type LeaderCallbacks, LeaseElector, type LeaseElectorOptions } from './elector.ts'
import type { CallResult, LeaseCalls } from './lease-calls.ts'
import type { LeadershipContext } from './tenure-context.ts'

export interface PreferenceElectorOptions extends LeaseElectorOptions {
  /** Whether this candidate leads whenever it runs. At most one candidate of a slot should. */
  readonly isPreferred: boolean
  /** The lease that the preferred candidate holds while it runs: `<slot>/preferred` by default. */
  readonly presenceSlot?: string
}

/** After this many acquisitions that it left to the preferred candidate, a candidate acquires nevertheless. */
const MAX_DEFERRALS = 3

const isHeld = (result: CallResult): boolean => result.kind === 'observed' && result.lease.remainingMs > 0

/** A candidate that leaves a vacant lease to the preferred one while that one runs. */
const deferring = (calls: LeaseCalls, presenceSlot: string): LeaseCalls => {
  let deferrals = 0
  return {
    ...calls,
    async acquire(slot, write, options) {
      const isPresent = isHeld(await calls.read(presenceSlot, options))
      deferrals = isPresent ? deferrals + 1 : 0
      if (isPresent && deferrals <= MAX_DEFERRALS) return { kind: 'failed', retryAfterMs: 0 }
      deferrals = 0
      return calls.acquire(slot, write, options)
    },
  }
}

/**
 * A candidate of an election in which one candidate is preferred. The preferred one holds a second lease while it runs. The
 * others hand over to it in an orderly way, and do not acquire the lease while it is about to.
 */
export class PreferenceElector extends LeaseElector {
  readonly #presence: LeaseElector | undefined

  constructor(options: PreferenceElectorOptions) {
    checkOptions('The elector', options, { ...ELECTOR_OPTIONS, isPreferred: 'flag', presenceSlot: 'any' })
    const { isPreferred, presenceSlot = `${options.slot}/preferred`, ...own } = options
    const { leases, callbacks, timing = systemTiming, retryPeriod = DEFAULT_DURATIONS.retryPeriod } = own
    if (isPreferred) {
      super(own)
      const ignored: LeaderCallbacks = { onStartedLeading: () => {}, onStoppedLeading: () => {} }
      this.#presence = new LeaseElector({ ...own, slot: presenceSlot, callbacks: ignored, releaseOnCancel: true })
      return
    }
    /** Hands over as soon as the preferred candidate runs. */
    const watch = async ({ signal }: LeadershipContext): Promise<void> => {
      for (;;) {
        await pause(timing, retryPeriod, signal).catch(() => {})
        if (signal.aborted) return
        if (isHeld(await leases.calls.read(presenceSlot, { signal }))) return handOver()
      }
    }
    super({
      ...own,
      leases: leases && { calls: deferring(leases.calls, presenceSlot) },
      callbacks: callbacks && {
        ...callbacks,
        onStartedLeading: context => {
          void watch(context)
          return callbacks.onStartedLeading(context)
        },
      },
    })
    const handOver = () => this.handOver()
  }

  override async run(signal: AbortSignal): Promise<void> {
    const stop = new AbortController()
    const abort = () => stop.abort()
    signal.addEventListener('abort', abort, { once: true })
    if (signal.aborted) abort()
    const presence = this.#presence?.run(stop.signal)
    try {
      await super.run(stop.signal)
    } finally {
      signal.removeEventListener('abort', abort)
      abort()
      await presence
    }
  }
}
