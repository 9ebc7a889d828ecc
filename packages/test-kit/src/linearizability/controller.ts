import type { Lease } from '@pool/contract/lease'
import type { Prng } from '../prng.ts'
import type { Asked, Operation } from './history.ts'
import { free } from './writes.ts'

/** A lease this close to its end is asked for again and again: what happens at the very millisecond is of interest. */
const SNIPED_MS = 25

const ttls = [1_000, 1_250, 2_000]

/** What a regional controller knows and does; some of it wrong on purpose. */
export class Controller {
  readonly #name: string
  readonly #random: Prng
  readonly #seen = new Map<string, Lease>()
  #snipes: string | undefined

  constructor(name: string, random: Prng) {
    this.#name = name
    this.#random = random
  }

  /** The slots that it held when it last looked. */
  get own(): string[] {
    return [...this.#seen].filter(([, { holder }]) => holder === this.#name).map(([slot]) => slot)
  }

  /** When the lease that it last saw ends; undefined: it saw none. */
  endOf(slot: string): number | undefined {
    const end = Date.parse(this.#seen.get(slot)?.expiresAt ?? '')
    return Number.isNaN(end) ? undefined : end
  }

  /** Which slot comes next: more often than not one of its own, else the one that all contend for, or any. */
  choose(slots: readonly string[], contended: string | undefined): string {
    const random = this.#random
    const own = this.own
    const choice = random.chance(0.4) && own.length > 0 ? random.pick(own) : random.chance(0.5) ? contended : undefined
    return this.#snipes ?? choice ?? random.pick(slots)
  }

  ask(slot: string): Asked {
    const random = this.#random
    const seen = this.#seen.get(slot)
    if (this.#snipes !== slot && random.chance(0.45)) {
      return seen && random.chance(0.4) ? { kind: 'read', known: seen.generation } : { kind: 'read' }
    }
    return this.#write(this.#kind(seen), this.#generation(seen))
  }

  /** What it does on coming back, unaware of the time that has passed. */
  askAsBefore(slot: string): Asked {
    const kind = this.#random.pick(['renew', 'renew', 'acquire', 'release'] as const)
    return this.#write(kind, this.#seen.get(slot)?.generation ?? 0)
  }

  learn({ slot, asked, told, answeredAt }: Operation): void {
    if (told?.status === 404) this.#seen.delete(slot)
    if (told?.status === 204 && asked.kind === 'release') this.#seen.set(slot, free(asked.generation + 1))
    if (told && 'lease' in told) this.#seen.set(slot, told.lease)
    const { holder = '', expiresAt = '' } = this.#seen.get(slot) ?? {}
    const left = Date.parse(expiresAt) - answeredAt
    this.#snipes = holder !== this.#name && Math.abs(left) < SNIPED_MS ? slot : undefined
  }

  #write(kind: 'acquire' | 'renew' | 'release', generation: number): Asked {
    const holder = this.#name
    if (kind === 'release') return { kind, holder, generation }
    return { kind, holder, generation, ttlMs: this.#random.pick(ttls) }
  }

  #kind(seen: Lease | undefined): 'acquire' | 'renew' | 'release' {
    const random = this.#random
    if (seen?.holder === this.#name) return random.chance(0.7) ? 'renew' : random.chance(0.4) ? 'acquire' : 'release'
    if (random.chance(0.8)) return 'acquire'
    return random.chance(0.5) ? 'renew' : 'release'
  }

  /** Mostly the one it last saw; now and then an older one, now and then a guess. */
  #generation(seen: Lease | undefined): number {
    const random = this.#random
    const generation = seen?.generation ?? 0
    if (random.chance(0.06)) return Math.max(0, generation - 1 - random.below(3))
    return random.chance(0.04) ? random.below(generation + 3) : generation
  }
}
