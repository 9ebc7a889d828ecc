import { DurableObject } from 'cloudflare:workers'
import { decide, type KnownGenerations, type LeaseWrite } from '../lease/lease.ts'
import type { SlotAddress } from '../lease/request.ts'
import {
  type HistoryOutcome,
  type LeaseStatusOutcome,
  type ReadOutcome,
  type SlotUnavailable,
  toObservedLease,
  toReading,
  toStatus,
  type WriteOutcome,
} from '../lease-service.ts'
import { log } from '../log.ts'
import { CLOCK_STANDS_STILL, type ClockStandsStill, findStandstill, type SlotCall } from './domain/clock.ts'
import { type DrainedSlot, isDraining, type ObjectEnv, type Observation, Slot } from './slot.ts'
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

  async write(call: SlotCall, request: LeaseWrite, caller: string): Promise<WriteOutcome | ClockStandsStill> {
    if (isDraining(this.env)) return { kind: 'draining' }
    return this.#decide(call, (observation): WriteOutcome => {
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
          const lease = this.#slot.write(call, observation, decision.next, transition)
          return { kind: transition ? decision.kind : 'renewed', ...toObservedLease(lease, now) }
        }
      }
    })
  }

  read(call: SlotCall, known: KnownGenerations): Promise<ReadOutcome | ClockStandsStill> {
    return this.#decide(call, ({ current, now }) => toReading(current, now, known))
  }

  readStatus(call: SlotCall): Promise<LeaseStatusOutcome | ClockStandsStill> {
    return this.#decide(call, ({ current, now }) => toStatus(current, now, this.#waits.count))
  }

  /** Begins a wait. RPC cannot return a WebSocket. */
  override async fetch(request: Request): Promise<Response> {
    const target = parseWaitUrl(request.url)
    const outcome = await this.#decide(target.address, ({ current, now }) => this.#waits.begin(target, current, now))
    return outcome instanceof Response ? outcome : Response.json(outcome)
  }

  /** If the slot is unavailable, the worker ends the wait: it gets no response. */
  override async webSocketMessage(socket: WebSocket, message: string | ArrayBuffer): Promise<void> {
    const call = parseWaitMessage(message)
    const outcome = await this.#decide(call, ({ current, now }) => this.#waits.respond(socket, current, now))
    if (outcome?.kind === 'clock-stands-still') this.restart(call)
  }

  history(call: SlotCall): Promise<HistoryOutcome | ClockStandsStill> {
    return this.#decide(call, ({ current }) =>
      current ? { kind: 'history', transitions: this.#slot.transitions() } : { kind: 'absent' },
    )
  }

  /**
   * Restarts this object if its clock stands still, which is the only way to make it run: its timers and alarms stand still
   * as well. The call then fails, and so does each other one in progress.
   */
  restart({ slot }: SlotAddress): void {
    const aheadMs = this.#findStandstill(Number.NEGATIVE_INFINITY)
    if (aheadMs === undefined) return
    log(this.env, 'error', { msg: 'clock-stands-still', slot, aheadMs })
    this.ctx.abort('the clock of the object stood still')
  }

  /** The clock of this machine in milliseconds since the epoch. Unlike `Date.now()`, it also goes back. */
  readMachineClock(): number {
    return this.ctx.storage.sql.exec<{ ms: number }>("SELECT unixepoch('subsec') * 1000 AS ms").one().ms
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

  /** Decides on an observation, in the same step. */
  async #decide<Outcome>(
    call: SlotCall,
    decide: (observation: Observation) => Outcome,
  ): Promise<Outcome | SlotUnavailable | ClockStandsStill> {
    const opened = await this.#slot.open(call)
    if (opened.kind !== 'open') return opened
    if (this.#findStandstill(call.sentAt) !== undefined) return CLOCK_STANDS_STILL
    return decide(this.#slot.observe(opened))
  }

  #findStandstill(sentAt: number): number | undefined {
    return findStandstill(Date.now(), sentAt, () => this.readMachineClock())
  }
}
