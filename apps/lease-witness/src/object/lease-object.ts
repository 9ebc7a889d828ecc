import { DurableObject } from 'cloudflare:workers'
import type { LeaseTransition } from '@pool/contract/lease'
import { withTimeout } from '@pool/database/with-timeout'
import { readRecords, writeCopy } from '../kv-copy/copy.ts'
import { importLegacy } from '../kv-copy/domain/import-legacy.ts'
import { classifyChange, copyDueAt, retryDelayMs } from '../kv-copy/domain/schedule.ts'
import { decide, includesGeneration, type KnownGenerations, type LeaseState, type LeaseWrite } from '../lease/lease.ts'
import type { SlotAddress } from '../lease/request.ts'
import type {
  HistoryOutcome,
  LeaseStatusOutcome,
  ReadOutcome,
  SlotUnavailable,
  WriteOutcome,
} from '../lease-service.ts'
import { type LogSettings, log } from '../log.ts'
import { type StoredSlot, toStoredSlot } from './stored-slot.ts'
import { parseWaitUrl, toObservedLease, Waits } from './waits.ts'

/** The bindings that an object uses. */
export interface ObjectEnv extends LogSettings {
  readonly OPENOVA_LEASES: KVNamespace
}

/** Entries of earlier versions have no token. */
type StoredTransition = Omit<LeaseTransition, 'token'> & Partial<Pick<LeaseTransition, 'token'>>

interface SlotUpdate {
  readonly slot: string
  readonly lease: LeaseState
  readonly transition: Omit<LeaseTransition, 'at' | 'generation'> | undefined
  readonly now: number
}

const MAX_TRANSITIONS = 50
const KV_TIMEOUT_MS = 5_000

/**
 * The only authority for one slot's lease. The platform runs at most one object per name and verifies that at every access
 * to its storage. Nothing is awaited between a load and the store that follows, so writes cannot interleave. The output
 * gate delays each response until the storage has confirmed the write. Expected outcomes are values, never exceptions.
 */
export class LeaseObject extends DurableObject<ObjectEnv> {
  readonly #waits = new Waits(this.ctx)
  #pendingImport: Promise<SlotUnavailable | undefined> | undefined
  #imported = false
  #copyFailures = 0

  async write(address: SlotAddress, request: LeaseWrite, caller: string): Promise<WriteOutcome> {
    const unavailable = await this.#ensureImported(address)
    if (unavailable) return unavailable

    const now = Date.now()
    const stored = this.#load()
    const decision = decide(stored?.lease, request, now)
    switch (decision.kind) {
      case 'absent':
        return decision
      case 'rejected':
        return { ...decision, ...toObservedLease(stored?.lease, now) }
      case 'granted':
      case 'released': {
        const { next } = decision
        const transition = decision.transition && { ...decision.transition, token: caller }
        this.#update(stored, { slot: address.slot, lease: next, transition, now })
        return { kind: transition ? decision.kind : 'renewed', ...toObservedLease(next, now) }
      }
    }
  }

  async read(address: SlotAddress, known: KnownGenerations): Promise<ReadOutcome> {
    const unavailable = await this.#ensureImported(address)
    return unavailable ?? this.#toReadOutcome(known, Date.now())
  }

  async readStatus(address: SlotAddress): Promise<LeaseStatusOutcome> {
    const unavailable = await this.#ensureImported(address)
    if (unavailable) return unavailable
    const current = this.#load()?.lease
    const waiters = this.#waits.count
    return current ? { kind: 'lease', waiters, ...toObservedLease(current, Date.now()) } : { kind: 'absent', waiters }
  }

  /** Begins a wait. RPC cannot return a WebSocket. */
  override async fetch(request: Request): Promise<Response> {
    const { address, condition } = parseWaitUrl(request.url)
    const unavailable = await this.#ensureImported(address)
    return unavailable ? Response.json(unavailable) : this.#waits.begin(condition, this.#load()?.lease, Date.now())
  }

  override webSocketMessage(socket: WebSocket): void {
    this.#waits.respond(socket, this.#load()?.lease, Date.now())
  }

  async history(address: SlotAddress): Promise<HistoryOutcome> {
    const unavailable = await this.#ensureImported(address)
    if (unavailable) return unavailable
    if (!this.#load()) return { kind: 'absent' }
    return { kind: 'history', transitions: this.#loadTransitions() }
  }

  checkHealth(): boolean {
    return true
  }

  waiterCount(): number {
    return this.#waits.count
  }

  /** Updates the copy in Workers KV. The alarm is stored with the lease, so it survives every restart. */
  override async alarm(): Promise<void> {
    const before = this.#load()
    if (before?.dueAt === undefined) return
    try {
      // Without a timeout: an abandoned write could still land, after a newer one.
      await writeCopy(this.env.OPENOVA_LEASES, before.slot, before.lease)
    } catch (error) {
      this.#copyFailures += 1
      const { slot } = before
      log(this.env, 'error', { msg: 'copy-failed', slot, failures: this.#copyFailures, reason: String(error) })
      this.#setAlarm(Date.now() + retryDelayMs(this.#copyFailures, Math.random()))
      return
    }
    this.#copyFailures = 0
    const after = this.#load()
    if (!after) return
    const { dueAt: _, ...rest } = after
    const copied = { ...rest, copiedAt: Date.now() }
    if (after.lease.generation === before.lease.generation) this.#save(copied)
    else {
      const dueAt = copyDueAt(copied, classifyChange(before.lease, after.lease), Date.now())
      this.#save({ ...copied, dueAt })
      this.#setAlarm(dueAt)
    }
  }

  /** Imports the legacy record before the first use of a slot that has no stored state. */
  #ensureImported(address: SlotAddress): Promise<SlotUnavailable | undefined> | undefined {
    if (this.#imported) return undefined
    if (this.#load()) {
      this.#imported = true
      return undefined
    }
    this.#pendingImport ??= this.#importLegacy(address).finally(() => {
      this.#pendingImport = undefined
    })
    return this.#pendingImport
  }

  async #importLegacy(address: SlotAddress): Promise<SlotUnavailable | undefined> {
    let records: Awaited<ReturnType<typeof readRecords>>
    try {
      records = await withTimeout(readRecords(this.env.OPENOVA_LEASES, address), KV_TIMEOUT_MS)
    } catch (error) {
      log(this.env, 'error', { msg: 'import-failed', slot: address.slot, reason: String(error) })
      return { kind: 'lease-unavailable' }
    }
    const now = Date.now()
    const result = importLegacy(records.decoded, records.encoded, now)
    if (result.kind === 'invalid') return { kind: 'invalid-lease-record', key: result.key }
    if (result.kind === 'imported') {
      const { lease } = result
      const to = lease.kind === 'held' ? lease.holder : ''
      const transition = { event: 'adopted', by: '', from: '', to, token: '' } as const
      this.#update(undefined, { slot: address.slot, lease, transition, now })
    }
    this.#imported = true
    return undefined
  }

  #load(): StoredSlot | undefined {
    const stored = this.ctx.storage.kv.get<StoredSlot>('lease')
    return stored && toStoredSlot(stored)
  }

  #save(stored: StoredSlot): void {
    this.ctx.storage.kv.put('lease', stored)
  }

  /** Not awaited, so that it commits in one transaction with the writes before it. */
  #setAlarm(time: number): void {
    void this.ctx.storage.setAlarm(time)
  }

  #loadTransitions(): LeaseTransition[] {
    const stored = this.ctx.storage.kv.get<StoredTransition[]>('transitions') ?? []
    return stored.map(transition => ({ token: '', ...transition }))
  }

  #update(stored: StoredSlot | undefined, { slot, lease, transition, now }: SlotUpdate): void {
    const dueAt = copyDueAt(stored ?? {}, transition ? 'transition' : 'renewal', now)
    this.#save({ ...stored, slot, lease, dueAt })
    if (transition) {
      const newest = { generation: lease.generation, at: new Date(now).toISOString(), ...transition }
      this.ctx.storage.kv.put('transitions', [newest, ...this.#loadTransitions()].slice(0, MAX_TRANSITIONS))
    }
    if (dueAt !== stored?.dueAt) this.#setAlarm(dueAt)
    this.#waits.notify(lease, now)
  }

  #toReadOutcome(known: KnownGenerations, now: number): ReadOutcome {
    const current = this.#load()?.lease
    if (!current) return { kind: 'absent' }
    const isKnown = includesGeneration(known, current.generation)
    return { kind: isKnown ? 'not-modified' : 'lease', ...toObservedLease(current, now) }
  }
}
