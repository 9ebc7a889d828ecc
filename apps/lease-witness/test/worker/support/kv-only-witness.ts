import type { Lease } from '@pool/contract/lease'
import { parseLeaseRecord } from '../../../src/kv-copy/domain/records.ts'
import { decide, type LeaseState, type LeaseWrite, toWireLease } from '../../../src/lease/lease.ts'

/**
 * A witness that keeps its leases in Workers KV only, as the system from which and to which operators migrate: it reads the
 * record, decides, and writes it back.
 */
export class KvOnlyWitness {
  readonly #kv: KVNamespace
  readonly #toKey: (slot: string) => string

  /** `encode`: how its clients encode slots, because it does not decode paths. */
  constructor(kv: KVNamespace, encode: (slot: string) => string = slot => slot) {
    this.#kv = kv
    this.#toKey = slot => `lease:${encode(slot)}`
  }

  async read(slot: string): Promise<Lease> {
    return toWireLease(await this.#load(slot))
  }

  /** The new generation; undefined: rejected. */
  async write(slot: string, write: LeaseWrite): Promise<number | undefined> {
    const current = await this.#load(slot)
    const decision = decide(current, write, Date.now())
    if (!('next' in decision)) return undefined
    await this.#kv.put(this.#toKey(slot), JSON.stringify(toWireLease(decision.next)))
    return decision.next.generation
  }

  async #load(slot: string): Promise<LeaseState | undefined> {
    return parseLeaseRecord((await this.#kv.get(this.#toKey(slot))) ?? '')
  }
}
