import { type Instant, msUntil } from './domain/elapsed-time.ts'
import { hasEnded, type StopReason, type Tenure } from './domain/election.ts'
import { type Guarded, type GuardedResource, guardResource } from './guard.ts'

/** A call was made after the end of the tenure. */
export class LeadershipLostError extends Error {
  override readonly name = 'LeadershipLostError'
  readonly slot: string
  readonly reason: StopReason

  constructor(slot: string, reason: StopReason) {
    super(`This candidate no longer leads ${slot} (${reason}). Stop the work of this tenure.`)
    this.slot = slot
    this.reason = reason
  }
}

/**
 * One tenure, from `onStartedLeading` to its end. Every member compares the deadline when it is called, so it is right even
 * directly after the process was frozen, before any timer has run.
 */
export interface LeadershipContext {
  readonly slot: string
  readonly identity: string
  /** Send it with every write to the protected resource, which must reject a lower one than the highest it has seen. */
  readonly fencingToken: number
  /** Aborted at the end of the tenure, with a LeadershipLostError. Read it again instead of storing `aborted`. */
  readonly signal: AbortSignal
  /** False from the deadline on. Once false, it stays false. */
  isLeader(): boolean
  /** Milliseconds until the deadline; 0: the tenure has ended. A renewal extends it. */
  remainingMs(): number
  /** Throws LeadershipLostError if the tenure has ended. */
  assertLeader(): void
  /** The methods of a resource, each with the check of `assertLeader` and the fencing token as its first argument. */
  guard<Resource extends GuardedResource>(resource: Resource): Guarded<Resource>
}

export class TenureContext implements LeadershipContext {
  readonly slot: string
  readonly identity: string
  readonly fencingToken: number
  readonly #now: () => Instant
  readonly #onEnd: () => void
  readonly #controller = new AbortController()
  #tenure: Tenure

  constructor(candidate: { slot: string; identity: string }, tenure: Tenure, now: () => Instant, onEnd: () => void) {
    this.slot = candidate.slot
    this.identity = candidate.identity
    this.fencingToken = tenure.fencingToken
    this.#tenure = tenure
    this.#now = now
    this.#onEnd = onEnd
  }

  get signal(): AbortSignal {
    this.isLeader()
    return this.#controller.signal
  }

  isLeader(): boolean {
    if (hasEnded(this.#tenure, this.#now())) this.end('renew-deadline')
    return !this.#controller.signal.aborted
  }

  remainingMs(): number {
    return this.isLeader() ? msUntil(this.#tenure.deadline, this.#now()) : 0
  }

  assertLeader(): void {
    if (!this.isLeader()) throw this.#controller.signal.reason
  }

  guard<Resource extends GuardedResource>(resource: Resource): Guarded<Resource> {
    return guardResource(resource, this)
  }

  /** After a renewal. */
  extend(tenure: Tenure): void {
    this.#tenure = tenure
  }

  end(reason: StopReason): void {
    if (this.#controller.signal.aborted) return
    this.#controller.abort(new LeadershipLostError(this.slot, reason))
    this.#onEnd()
  }
}
