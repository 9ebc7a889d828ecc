import { guard, StaleFencingTokenError } from '@pool/client/leases'
import type { InvariantChecker } from '../invariants.ts'

/** Milliseconds. */
export interface TenureDurations {
  readonly leaseDuration: number
  readonly renewDeadline: number
}

/** A candidate of the election of a slot. */
export interface Candidate {
  readonly slot: string
  readonly identity: string
  isLeader(): boolean
}

/**
 * Checks what the electors of this process report. All of them share its event loop, so the order of their calls is that of
 * the events, and two of them that report leadership in one round do so at the same time.
 */
export class LeadershipChecker {
  readonly #durations: TenureDurations
  readonly #invariants: InvariantChecker
  readonly #candidates: Candidate[] = []
  /** The candidate that leads a slot, by its callbacks. */
  readonly #open = new Map<string, Candidate>()
  readonly #highestStarted = new Map<string, number>()
  readonly #highestWritten = new Map<string, number>()
  readonly #resources = new Map<string, { readonly write: (token: number) => void }>()
  /** The end of each tenure by slot and holder, from the requests and responses on the wire. */
  readonly #deadlines = new Map<string, number>()
  rejectedLateWrites = 0
  tenures = 0

  constructor(durations: TenureDurations, invariants: InvariantChecker) {
    this.#durations = durations
    this.#invariants = invariants
  }

  add(candidate: Candidate): void {
    this.#candidates.push(candidate)
  }

  started(candidate: Candidate, { fencingToken }: { readonly fencingToken: number }): void {
    this.tenures += 1
    const { slot, identity } = candidate
    const violations: string[] = []
    const other = this.#open.get(slot)
    if (other) violations.push(`${slot}: ${identity} started before ${other.identity} stopped`)
    const highest = this.#highestStarted.get(slot) ?? 0
    if (fencingToken <= highest)
      violations.push(`${slot}: ${identity} started with token ${fencingToken} after ${highest}`)
    this.#highestStarted.set(slot, Math.max(highest, fencingToken))
    this.#open.set(slot, candidate)
    this.#invariants.record('one leader per slot', 1, violations)
  }

  stopped(candidate: Candidate): void {
    const { slot, identity } = candidate
    const violations = candidate.isLeader() ? [`${slot}: ${identity} is still leader in onStoppedLeading`] : []
    if (this.#open.get(slot) === candidate) this.#open.delete(slot)
    else violations.push(`${slot}: ${identity} stopped without a start`)
    this.#invariants.record('one leader per slot', 1, violations)
  }

  /** A lease as a response showed it; `sentAt` is the time of the request by `performance.now`. */
  observe(slot: string, lease: { readonly holder: string }, remainingMs: number, sentAt: number): void {
    const { leaseDuration, renewDeadline } = this.#durations
    const deadline = sentAt + Math.min(remainingMs, leaseDuration) - (leaseDuration - renewDeadline)
    const key = `${slot} ${lease.holder}`
    this.#deadlines.set(key, Math.max(deadline, this.#deadlines.get(key) ?? 0))
  }

  /** Asks every candidate. */
  sample(): void {
    const leaders = new Map<string, string>()
    const violations: string[] = []
    for (const candidate of this.#candidates) {
      const { slot, identity } = candidate
      const calledAt = performance.now()
      if (!candidate.isLeader()) continue
      const other = leaders.get(slot)
      if (other !== undefined) violations.push(`${slot}: ${other} and ${identity} report leadership`)
      leaders.set(slot, identity)
      const deadline = this.#deadlines.get(`${slot} ${identity}`) ?? 0
      if (calledAt > deadline) violations.push(`${slot}: ${identity} reports leadership after its deadline`)
      if (this.#open.get(slot) !== candidate)
        violations.push(`${slot}: ${identity} reports leadership outside of a tenure`)
    }
    this.#invariants.record('one leader per slot', leaders.size, violations)
  }

  /** A write to the resource of a slot, which checks the token. A late one is of a tenure after which another has written. */
  write(slot: string, token: number): void {
    const resource = this.#resources.get(slot) ?? guard({ write: () => {} })
    this.#resources.set(slot, resource)
    const highest = this.#highestWritten.get(slot) ?? 0
    const isLate = token < highest
    this.#highestWritten.set(slot, Math.max(highest, token))
    const isAccepted = this.#isAccepted(resource, token)
    const violations =
      isAccepted === isLate ? [`${slot}: token ${token} ${isAccepted ? 'accepted' : 'rejected'} after ${highest}`] : []
    if (isLate && !isAccepted) this.rejectedLateWrites += 1
    this.#invariants.record('no write of a former leader', 1, violations)
  }

  #isAccepted(resource: { readonly write: (token: number) => void }, token: number): boolean {
    try {
      resource.write(token)
      return true
    } catch (error) {
      if (error instanceof StaleFencingTokenError) return false
      throw error
    }
  }
}
