import type { Lease } from '@pool/contract/lease'
import type { LeaseConnection, LeaseRequest, LeaseResponse } from '../lease-connection.ts'
import type { Prng } from '../prng.ts'
import { type Completion, freeLease, type Invocation, type Operation } from './history.ts'

export const toLeaseRequest = (slot: string, invocation: Invocation): LeaseRequest => {
  const path = `/lease/${slot}`
  switch (invocation.kind) {
    case 'read': {
      const { known } = invocation
      return { method: 'GET', path, ...(known === undefined ? {} : { headers: { 'If-None-Match': `"${known}"` } }) }
    }
    case 'release': {
      const { holder, generation } = invocation
      return { method: 'DELETE', path, headers: { 'If-Match': `${generation}`, 'X-Holder': holder } }
    }
    default: {
      const { kind, holder, generation, ttlMs } = invocation
      const body = JSON.stringify({ holder, ttlSeconds: ttlMs / 1_000, op: kind })
      return { method: 'PUT', path, headers: { 'If-Match': `${generation}` }, body }
    }
  }
}

/** Throws if the contract has no such response to a lease request. */
export const parseCompletion = ({ status, tag, text }: LeaseResponse): Completion => {
  switch (status) {
    case 204:
    case 404:
      return { status }
    case 304:
      if (/^"\d+"$/.test(tag)) return { status, generation: Number(tag.slice(1, -1)) }
      break
    case 200:
    case 412: {
      const lease: Lease = JSON.parse(text)
      if (tag === `"${lease.generation}"`) return { status, lease }
    }
  }
  throw new Error(`unexpected response: ${status} ${tag} ${text}`)
}

/** Makes one call and records it as an operation, without a completion if the response is 503. */
export const invoke = async (connection: LeaseConnection, slot: string, invocation: Invocation): Promise<Operation> => {
  const request = toLeaseRequest(slot, invocation)
  const sentAt = Date.now()
  const start = performance.now()
  const response = await connection.send(request)
  const end = performance.now()
  const receivedAt = Date.now()
  const operation: Operation = { slot, invocation, start, end, sentAt, receivedAt }
  return response.status === 503 ? operation : { ...operation, completion: parseCompletion(response) }
}

/** A controller requests a lease repeatedly this close to its expiry, so that writes hit the millisecond of the expiry. */
const EXPIRY_RACE_MS = 25

const TTLS_MS = [1_000, 1_250, 2_000]

/** Generates the calls of a regional controller from what it has observed. Some of them are wrong on purpose. */
export class Controller {
  readonly #name: string
  readonly #random: Prng
  readonly #seen = new Map<string, Lease>()
  #racedSlot: string | undefined

  constructor(name: string, random: Prng) {
    this.#name = name
    this.#random = random
  }

  /** The slots that it held at its last observation. */
  get heldSlots(): string[] {
    return [...this.#seen].filter(([, { holder }]) => holder === this.#name).map(([slot]) => slot)
  }

  /** When the last observed lease expires, in milliseconds since the epoch; undefined: it has observed no lease. */
  getExpiry(slot: string): number | undefined {
    const end = Date.parse(this.#seen.get(slot)?.expiresAt ?? '')
    return Number.isNaN(end) ? undefined : end
  }

  /** Prefers slots that it holds, then the contended slot, then any. */
  chooseSlot(slots: readonly string[], contended: string | undefined): string {
    const random = this.#random
    const own = this.heldSlots
    const choice = random.chance(0.4) && own.length > 0 ? random.pick(own) : random.chance(0.5) ? contended : undefined
    return this.#racedSlot ?? choice ?? random.pick(slots)
  }

  nextInvocation(slot: string): Invocation {
    const random = this.#random
    const seen = this.#seen.get(slot)
    if (this.#racedSlot !== slot && random.chance(0.45)) {
      return seen && random.chance(0.4) ? { kind: 'read', known: seen.generation } : { kind: 'read' }
    }
    return this.#write(this.#kind(seen), this.#generation(seen))
  }

  /** A write by a client that resumes after a pause and does not notice the elapsed time. */
  staleInvocation(slot: string): Invocation {
    const kind = this.#random.pick(['renew', 'renew', 'acquire', 'release'] as const)
    return this.#write(kind, this.#seen.get(slot)?.generation ?? 0)
  }

  /** `now` is the time by the clock of the witness. */
  observe({ slot, invocation, completion, receivedAt }: Operation, now = receivedAt): void {
    if (completion?.status === 404) this.#seen.delete(slot)
    if (completion?.status === 204 && invocation.kind === 'release')
      this.#seen.set(slot, freeLease(invocation.generation + 1))
    if (completion && 'lease' in completion) this.#seen.set(slot, completion.lease)
    const { holder = '', expiresAt = '' } = this.#seen.get(slot) ?? {}
    const remainingMs = Date.parse(expiresAt) - now
    this.#racedSlot = holder !== this.#name && Math.abs(remainingMs) < EXPIRY_RACE_MS ? slot : undefined
  }

  #write(kind: 'acquire' | 'renew' | 'release', generation: number): Invocation {
    const holder = this.#name
    if (kind === 'release') return { kind, holder, generation }
    return { kind, holder, generation, ttlMs: this.#random.pick(TTLS_MS) }
  }

  #kind(seen: Lease | undefined): 'acquire' | 'renew' | 'release' {
    const random = this.#random
    if (seen?.holder === this.#name) return random.chance(0.7) ? 'renew' : random.chance(0.4) ? 'acquire' : 'release'
    if (random.chance(0.8)) return 'acquire'
    return random.chance(0.5) ? 'renew' : 'release'
  }

  /** Usually the last observed generation; sometimes an older or a random one. */
  #generation(seen: Lease | undefined): number {
    const random = this.#random
    const generation = seen?.generation ?? 0
    if (random.chance(0.06)) return Math.max(0, generation - 1 - random.below(3))
    return random.chance(0.04) ? random.below(generation + 3) : generation
  }
}
