import { DurableObject } from 'cloudflare:workers'
import { decide, type KnownGenerations, type LeaseWrite } from '../lease/lease.ts'
import type { SlotAddress } from '../lease/request.ts'
import {
  type HistoryOutcome,
  type LeaseStatusOutcome,
  type ReadOutcome,
  toObservedLease,
  toReading,
  toStatus,
  type WriteOutcome,
} from '../lease-service.ts'
import { type DrainedSlot, type ObjectEnv, Slot } from './slot.ts'
import { parseWaitMessage, parseWaitUrl, Waits } from './waits.ts'

/**
 * The only authority for one slot's lease. The platform runs at most one object per name and verifies that at every access
 * to its storage. Nothing is awaited between an observation and the store that follows, so writes cannot interleave. The
 * output gate delays each response until the storage has confirmed the write. Expected outcomes are values, never exceptions.
 */
export class LeaseObject extends DurableObject<ObjectEnv> {
  readonly #waits = new Waits(this.ctx)
  readonly #slot = new Slot(
    this.ctx,
    () => this.env,
    (lease, now) => this.#waits.notify(lease, now),
  )

  async write(address: SlotAddress, request: LeaseWrite, caller: string): Promise<WriteOutcome> {
    if (this.env.DRAIN === 'true') return { kind: 'draining' }
    const opened = await this.#slot.open(address)
    if (opened.kind !== 'open') return opened
    const observation = this.#slot.observe(opened)
    const { current, now } = observation
    const decision = decide(current, request, now)
    switch (decision.kind) {
      case 'absent':
        return decision
      case 'rejected':
        return { ...decision, ...toObservedLease(current, now) }
      case 'granted':
      case 'released': {
        const transition = decision.transition && { ...decision.transition, token: caller }
        const lease = this.#slot.write(address, observation, decision.next, transition)
        return { kind: transition ? decision.kind : 'renewed', ...toObservedLease(lease, now) }
      }
    }
  }

  async read(address: SlotAddress, known: KnownGenerations): Promise<ReadOutcome> {
    const opened = await this.#slot.open(address)
    if (opened.kind !== 'open') return opened
    const { current, now } = this.#slot.observe(opened)
    return toReading(current, now, known)
  }

  async readStatus(address: SlotAddress): Promise<LeaseStatusOutcome> {
    const opened = await this.#slot.open(address)
    if (opened.kind !== 'open') return opened
    const { current, now } = this.#slot.observe(opened)
    return toStatus(current, now, this.#waits.count)
  }

  /** Begins a wait. RPC cannot return a WebSocket. */
  override async fetch(request: Request): Promise<Response> {
    const { address, condition } = parseWaitUrl(request.url)
    const opened = await this.#slot.open(address)
    if (opened.kind !== 'open') return Response.json(opened)
    const { current, now } = this.#slot.observe(opened)
    return this.#waits.begin(condition, current, now)
  }

  override async webSocketMessage(socket: WebSocket, message: string | ArrayBuffer): Promise<void> {
    const opened = await this.#slot.open(parseWaitMessage(message))
    // The worker ends the wait if it gets no response.
    if (opened.kind !== 'open') return
    const { current, now } = this.#slot.observe(opened)
    this.#waits.respond(socket, current, now)
  }

  async history(address: SlotAddress): Promise<HistoryOutcome> {
    const opened = await this.#slot.open(address)
    if (opened.kind !== 'open') return opened
    const { current } = this.#slot.observe(opened)
    return current ? { kind: 'history', transitions: this.#slot.transitions() } : { kind: 'absent' }
  }

  checkHealth(): boolean {
    return true
  }

  waiterCount(): number {
    return this.#waits.count
  }

  drain(): Promise<DrainedSlot> {
    return this.#slot.drain()
  }

  /** Updates the copy in Workers KV. The alarm is stored with the lease, so it survives every restart. */
  override alarm(): Promise<void> {
    return this.#slot.writeDueCopy()
  }
}
