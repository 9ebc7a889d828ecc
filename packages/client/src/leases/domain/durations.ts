import { LEASE_TTL } from '@pool/contract/lease'

/** The durations of an election in milliseconds, with the names and the meaning of client-go's LeaderElectionConfig. */
export interface ElectionDurations {
  /** The lease expires this long after the last renewal: the time without a leader after a crash. */
  readonly leaseDuration: number
  /** A leader stops this long after it sent its last successful renewal. */
  readonly renewDeadline: number
  /** The time between two renewals, and between two attempts after a failure. */
  readonly retryPeriod: number
}

/** A leader has three attempts that fail quickly, or two without a response, and a third of the lease for its last work. */
export const DEFAULT_DURATIONS: ElectionDurations = { leaseDuration: 30_000, renewDeadline: 20_000, retryPeriod: 5_000 }

/** A pause after a failure is at most retryPeriod times 1 + this, as in client-go. */
export const JITTER_FACTOR = 1.2

/** Throws RangeError with the rule that is violated: those of client-go, and the range of a TTL. */
export const validateDurations = ({ leaseDuration, renewDeadline, retryPeriod }: ElectionDurations): void => {
  const minMs = LEASE_TTL.min * 1_000
  const maxMs = LEASE_TTL.max * 1_000
  if (!(leaseDuration >= minMs && leaseDuration <= maxMs))
    throw new RangeError(`leaseDuration is ${leaseDuration}; set a number of milliseconds from ${minMs} to ${maxMs}.`)
  if (!(retryPeriod > 0)) throw new RangeError(`retryPeriod is ${retryPeriod}; set a number greater than 0.`)
  if (!(leaseDuration > renewDeadline))
    throw new RangeError(
      `leaseDuration (${leaseDuration}) must be greater than renewDeadline (${renewDeadline}); increase leaseDuration, or decrease renewDeadline and retryPeriod.`,
    )
  if (!(renewDeadline > JITTER_FACTOR * retryPeriod))
    throw new RangeError(
      `renewDeadline (${renewDeadline}) must be greater than ${JITTER_FACTOR} × retryPeriod (${retryPeriod}); decrease retryPeriod.`,
    )
}
