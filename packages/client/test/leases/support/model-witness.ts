import type { ObservedLease } from '../../../src/leases/domain/election.ts'
import type { CallResult } from '../../../src/leases/lease-calls.ts'

interface Waiter {
  readonly respond: (result: CallResult) => void
}

/** The compare-and-set of the lease witness for one slot, by the clock of the caller. */
export class ModelWitness {
  holder = ''
  expiresAt = 0
  generation = 0
  #tenure = 0
  readonly #waiters = new Set<Waiter>()

  isHeld(now: number): boolean {
    return this.holder !== '' && now < this.expiresAt
  }

  observe(now: number): ObservedLease {
    const remainingMs = this.holder === '' ? 0 : Math.max(0, this.expiresAt - now)
    return { holder: this.holder, acquiredAt: `tenure ${this.#tenure}`, generation: this.generation, remainingMs }
  }

  read(now: number): CallResult {
    return { kind: 'observed', lease: this.observe(now), waited: false }
  }

  write(
    kind: 'acquire' | 'renew' | 'release',
    holder: string,
    generation: number,
    ttlMs: number,
    now: number,
  ): CallResult {
    const isOwn = this.holder === holder
    const isPermitted =
      kind === 'acquire' ? isOwn || !this.isHeld(now) : isOwn && (kind === 'release' || this.isHeld(now))
    if (generation !== this.generation || !isPermitted)
      return { kind: 'observed', lease: this.observe(now), waited: true }
    this.generation += 1
    if (kind === 'release') {
      this.holder = ''
      this.notify(now)
    } else {
      if (!isOwn || !this.isHeld(now)) this.#tenure += 1
      this.holder = holder
      this.expiresAt = now + ttlMs
    }
    return { kind: 'granted', lease: this.observe(now) }
  }

  /** Calls `respond` at once if the slot is vacant, or at the next `notify`. Returns a function that ends the wait. */
  wait(now: number, respond: (result: CallResult) => void): () => void {
    const waiter: Waiter = { respond }
    if (this.isHeld(now)) this.#waiters.add(waiter)
    else respond({ kind: 'observed', lease: this.observe(now), waited: true })
    return () => {
      if (this.#waiters.delete(waiter)) respond({ kind: 'observed', lease: this.observe(now), waited: true })
    }
  }

  /** Ends the waits if the slot is vacant. */
  notify(now: number): void {
    if (this.isHeld(now)) return
    for (const { respond } of this.#waiters) respond({ kind: 'observed', lease: this.observe(now), waited: true })
    this.#waiters.clear()
  }
}
