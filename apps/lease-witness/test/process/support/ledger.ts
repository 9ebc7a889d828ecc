import type { Lease } from '@pool/contract/lease'

/** More writes than any test makes between two looks at a slot: an object that lost its storage leaps further, on purpose. */
const MOST_WRITES = 100_000

/** What a witness has told of its slots, by the clients who were told; what it tells next must not contradict it. */
export class Ledger {
  /** The highest generation that anybody was told of, a slot each. */
  readonly #highest = new Map<string, number>()
  readonly #states = new Map<string, string>()
  readonly faults: string[] = []

  /** What an answer to a request that is sent now must not be behind. */
  floorOf(slot: string): number {
    return this.#highest.get(slot) ?? 0
  }

  /** A state that was told; `floor` as it was when the question was sent. */
  told(slot: string, lease: Lease, floor: number): void {
    const { generation } = lease
    if (generation < floor) this.faults.push(`${slot} went back from ${floor} to ${generation}`)
    if (generation > floor + MOST_WRITES) this.faults.push(`${slot} leapt from ${floor} to ${generation}`)
    const key = `${slot} ${generation}`
    const state = JSON.stringify(lease)
    const before = this.#states.get(key)
    if (before !== undefined && before !== state) this.faults.push(`${slot} was ${before} and ${state}`)
    this.#states.set(key, state)
    if (generation > this.floorOf(slot)) this.#highest.set(slot, generation)
  }

  /** The state of a generation, when anybody was told of it. */
  at(slot: string, generation: number): Lease | undefined {
    const state = this.#states.get(`${slot} ${generation}`)
    return state === undefined ? undefined : JSON.parse(state)
  }
}

export const NEVER_WRITTEN: Lease = { holder: '', acquiredAt: '', expiresAt: '', generation: 0 }

export const released = (generation: number): Lease => ({ ...NEVER_WRITTEN, generation })
