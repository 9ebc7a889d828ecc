import type { LeaseTransition } from '@pool/contract/lease'
import { TimeoutError, withTimeout } from '@pool/runtime/database/time'
import { type CopyOptions, readRecords, writeCopy } from '../kv-copy/copy.ts'
import { copyKey, lookupKeys } from '../kv-copy/domain/keys.ts'
import {
  findRecord,
  findUnknownWrites,
  highestGeneration,
  isForeign,
  type KvRecord,
  recover,
  toLoggedRecord,
  toTakenRecords,
} from '../kv-copy/domain/records.ts'
import {
  afterCopy,
  afterFailure,
  CopyPace,
  type CopyState,
  copyDueAt,
  renewalLagMs,
  type TakenRecords,
} from '../kv-copy/domain/schedule.ts'
import { advanceClock, GENERATION_JUMP, type LeaseState } from '../lease/lease.ts'
import { type SlotAddress, toSlotAddress } from '../lease/request.ts'
import type { SlotUnavailable } from '../lease-service.ts'
import { type LogSettings, log } from '../log.ts'
import { type StoredSlot, toStoredSlot } from './stored-slot.ts'

/** The bindings that an object uses. */
export interface ObjectEnv extends LogSettings {
  readonly OPENOVA_LEASES: KVNamespace
  /** `true` while leases move back to a system that keeps them in Workers KV: no write is accepted. */
  readonly DRAIN?: string | boolean
}

export const isDraining = ({ DRAIN }: Pick<ObjectEnv, 'DRAIN'>): boolean => String(DRAIN) === 'true'

/** Before the first write: what Workers KV has. It is not stored, because the other system may still be writing. */
interface TakeOver {
  readonly lease: LeaseState
  /** The highest generation that either system may have granted. */
  readonly highest: number
  readonly takenRecords: TakenRecords
  /** Whether the lease is that of another system. */
  readonly isForeign: boolean
}

/** `takeOver` is present until the first write. */
export type OpenedSlot = { readonly kind: 'open'; readonly takeOver?: TakeOver } | SlotUnavailable

/** The lease at a moment of the slot's clock. Valid until the next `await`. */
export interface Observation {
  readonly current: LeaseState | undefined
  readonly now: number
  readonly stored: StoredSlot | undefined
  /** Present if the next write is the first one. */
  readonly takeOver?: TakeOver
}

export type DrainedSlot =
  | { readonly kind: 'drained'; readonly slot: string; readonly copiedAt: number }
  | { readonly kind: 'pending'; readonly slot: string; readonly reason: string }
  /** The object has no state: its lease is in Workers KV, if anywhere. */
  | { readonly kind: 'empty' }

/** Entries of version 1.0 have no token. */
type StoredTransition = Omit<LeaseTransition, 'token'> & Partial<Pick<LeaseTransition, 'token'>>

/** `generation`: that of the lease, if absent. `token`: no token, if absent. */
type Transition = Omit<StoredTransition, 'at' | 'generation'> & { readonly generation?: number }

const OPEN: OpenedSlot = { kind: 'open' }
const MAX_TRANSITIONS = 50
/** Of this isolate, which several objects may share. */
const copyPace = new CopyPace()
const KV_READ_TIMEOUT_MS = 5_000
/** Far below the 15 minutes after which the platform ends an alarm. It deletes an alarm that failed several times. */
const KV_WRITE_TIMEOUT_MS = 30_000
/** An alarm is late by seconds on a busy machine. Later than this, it was lost. */
const MAX_ALARM_DELAY_MS = 120_000

/**
 * The stored state of one slot: its lease, its history, its clock, and its copy in Workers KV. All methods without a promise
 * are one step: nothing is awaited between a load and the store that follows.
 */
export class Slot {
  readonly #ctx: DurableObjectState
  readonly #env: () => ObjectEnv
  readonly #onChange: (lease: LeaseState, now: number) => void
  readonly #kvWriteTimeoutMs: number
  #pendingLookUp: Promise<OpenedSlot> | undefined
  #pendingCopy: Promise<void> | undefined
  #copyFailures = 0
  #nextAlarmCheck = 0
  /** Whether the stored state decides, not Workers KV. */
  #isWritten = false

  /** `onChange` is called after each change of the lease. */
  constructor(
    ctx: DurableObjectState,
    env: () => ObjectEnv,
    onChange: (lease: LeaseState, now: number) => void,
    kvWriteTimeoutMs = KV_WRITE_TIMEOUT_MS,
  ) {
    this.#ctx = ctx
    this.#env = env
    this.#onChange = onChange
    this.#kvWriteTimeoutMs = kvWriteTimeoutMs
    this.#checkAlarm(this.#load())
  }

  /** Looks in Workers KV if the slot was never written here. Stores nothing that another system wrote. */
  open(address: SlotAddress): OpenedSlot | Promise<OpenedSlot> {
    if (!this.#isWritten) {
      const stored = this.#load()
      this.#isWritten = stored !== undefined && !stored.isDrained
    }
    if (this.#isWritten) return OPEN
    this.#pendingLookUp ??= this.#lookUp(address).finally(() => {
      this.#pendingLookUp = undefined
    })
    return this.#pendingLookUp
  }

  observe({ takeOver }: OpenedSlot & { kind: 'open' }): Observation {
    const wallNow = Date.now()
    const stored = this.#load()
    // Another request may have written the slot since it was opened.
    if (takeOver && !this.#isWritten) {
      return { current: takeOver.lease, now: advanceClock(takeOver.lease, wallNow).now, stored, takeOver }
    }
    this.#checkAlarm(stored)
    const { now, reanchored } = advanceClock(stored?.lease, wallNow)
    if (!stored || !reanchored) return { current: stored?.lease, now, stored }
    const { slot, lease } = stored
    log(this.#env(), 'error', { msg: 'clock-set-back', slot, byMs: lease.writtenAt - wallNow })
    const holder = reanchored.kind === 'held' ? reanchored.holder : ''
    const transition = { event: 'clock-set-back', by: '', from: holder, to: holder } as const
    return { current: reanchored, now, stored: this.#store(stored, reanchored, [transition], now) }
  }

  /** Stores the lease that was decided on an observation of the same step, and returns it with its generation. */
  write(
    { slot }: SlotAddress,
    { stored, takeOver, now }: Observation,
    next: LeaseState,
    transition: Transition | undefined,
  ): LeaseState {
    const transitions = transition ? [transition] : []
    if (!takeOver) return this.#store(stored ?? { slot }, next, transitions, now).lease
    const { lease, highest, takenRecords } = takeOver
    const generation = highest + GENERATION_JUMP
    const to = lease.kind === 'held' ? lease.holder : ''
    const adopted: Transition = { event: 'adopted', by: '', from: '', to, generation: lease.generation }
    const jumped: Transition = { event: 'jumped', by: '', from: to, to }
    const { isDrained: _, ...rest } = stored ?? { slot }
    const all = [...transitions, takeOver.isForeign ? adopted : jumped]
    return this.#store({ ...rest, takenRecords }, { ...next, generation }, all, now).lease
  }

  transitions(): LeaseTransition[] {
    const stored = this.#ctx.storage.kv.get<StoredTransition[]>('transitions') ?? []
    return stored.map(transition => ({ token: '', ...transition }))
  }

  /** Writes the copy that is due, if any. Expected failures are logged, and the next attempt is scheduled. */
  async writeDueCopy({ evenIfCurrent = false } = {}): Promise<void> {
    while (this.#pendingCopy) await this.#pendingCopy
    const stored = this.#load()
    if (!stored || (stored.dueAt === undefined && !evenIfCurrent)) return
    this.#pendingCopy = this.#writeCopy(stored).finally(() => {
      this.#pendingCopy = undefined
    })
    await this.#pendingCopy
  }

  /**
   * Writes the copy now, under every key of the slot. Once it is in Workers KV, the slot takes over whatever another system
   * makes of it, so it is not written again.
   */
  async drain(): Promise<DrainedSlot> {
    const before = this.#load()
    if (!before) return { kind: 'empty' }
    const { slot } = before
    if (!isDraining(this.#env())) return { kind: 'pending', slot, reason: 'its object still runs without DRAIN' }
    if (!before.isDrained) await this.writeDueCopy({ evenIfCurrent: true })
    const stored = this.#load()
    if (stored?.copiedAt === undefined || stored.dueAt !== undefined) {
      const reason =
        stored?.abandonedAt === undefined
          ? 'Workers KV did not accept its copy'
          : 'an abandoned write to Workers KV may still take effect'
      return { kind: 'pending', slot, reason }
    }
    if (!stored.isDrained) this.#save({ ...stored, isDrained: true })
    this.#isWritten = false
    return { kind: 'drained', slot, copiedAt: stored.copiedAt }
  }

  async #lookUp(address: SlotAddress): Promise<OpenedSlot> {
    const { slot } = address
    const kv = this.#env().OPENOVA_LEASES
    try {
      const keys = new Set([...lookupKeys(address), ...Object.keys(this.#load()?.takenRecords ?? {})])
      const { records } = await withTimeout(readRecords(kv, slot, [...keys]), KV_READ_TIMEOUT_MS)
      if (this.#isWritten) return OPEN
      const stored = this.#load()
      // After a drain, the stored lease counts until another system has written.
      const found = findRecord(
        stored ? records.filter(record => isForeign(record, this.#id, stored.takenRecords)) : records,
      )
      if (found.kind === 'invalid') return { kind: 'invalid-lease-record', key: found.key }
      const now = Date.now()
      const takenRecords = toTakenRecords(slot, records, stored?.takenRecords)
      if (found.kind === 'copy' && !stored) {
        const isShared = (found.mark.ahead ?? 0) > 0 || records.length > 1
        const copied = { slot, copiedAt: now, ...(isShared ? { takenRecords } : {}) }
        const lease = recover(found, now)
        // First in KV: if the object is lost again, the generation must jump from here.
        await withTimeout(writeCopy(kv, lease, this.#copyOptions(copied, [copyKey(slot)])), KV_READ_TIMEOUT_MS)
        if (this.#isWritten) return OPEN
        const to = lease.kind === 'held' ? lease.holder : ''
        this.#store(copied, lease, [{ event: 'jumped', by: '', from: '', to }], now)
        return OPEN
      }
      const lease = found.kind === 'nothing' ? stored?.lease : found.lease
      if (!lease) return OPEN
      const generation = Math.max(lease.generation, stored?.lease.generation ?? 0)
      const takeOver: TakeOver = {
        lease: { ...lease, generation },
        highest: Math.max(generation, highestGeneration(records, stored ? undefined : now)),
        takenRecords,
        isForeign: found.kind !== 'nothing',
      }
      return { kind: 'open', takeOver }
    } catch (error) {
      log(this.#env(), 'error', { msg: 'import-failed', slot, reason: String(error) })
      return { kind: 'lease-unavailable' }
    }
  }

  async #writeCopy(before: StoredSlot): Promise<void> {
    let isWriting = false
    try {
      const kv = this.#env().OPENOVA_LEASES
      const { slot } = before
      const slotKeys = isDraining(this.#env()) ? lookupKeys(toSlotAddress(slot)) : [copyKey(slot)]
      const keys = new Set([...slotKeys, ...Object.keys(before.takenRecords ?? {})])
      const { records, usableKeys } = await withTimeout(readRecords(kv, slot, [...keys]), KV_READ_TIMEOUT_MS)
      for (const record of records) this.#jumpAbove(record)
      const { lease, ...copy } = this.#load() ?? before
      isWriting = true
      await withTimeout(writeCopy(kv, lease, this.#copyOptions(copy, usableKeys)), this.#kvWriteTimeoutMs)
      this.#copyFailures = 0
      const stored = this.#load()
      if (!stored) return
      const { dueAt: _due, retryAt: _retry, abandonedAt: _abandoned, ...after } = stored
      this.#schedule(after, afterCopy(copy, lease, after.lease, Date.now(), Math.random()))
    } catch (error) {
      const { slot } = before
      this.#copyFailures += 1
      const failures = this.#copyFailures
      log(this.#env(), 'error', { msg: 'copy-failed', slot, failures, reason: String(error) })
      const wasAbandoned = isWriting && error instanceof TimeoutError
      const after = this.#load()
      if (after) this.#schedule(after, afterFailure(after, { failures, wasAbandoned }, Date.now(), Math.random()))
    }
  }

  /** Jumps above the writes that a record shows and this slot does not know, so that the next ones do not repeat them. */
  #jumpAbove(record: KvRecord): void {
    const stored = this.#load()
    const unknown = stored && findUnknownWrites(record, this.#id, stored, Date.now())
    if (!stored || !unknown) return
    const { slot, lease } = stored
    const { event, from, generation } = unknown
    const msg = event === 'jumped' ? 'rolled-back' : event
    log(this.#env(), 'error', { msg, slot, found: toLoggedRecord(record.value), generation })
    const to = lease.kind === 'held' ? lease.holder : ''
    const takenRecords = event === 'jumped' ? {} : { takenRecords: toTakenRecords(slot, [record], stored.takenRecords) }
    this.#store({ ...stored, ...takenRecords }, { ...lease, generation }, [{ event, by: '', from, to }], Date.now())
  }

  #copyOptions(copied: Omit<StoredSlot, 'lease'>, keys: readonly string[]): CopyOptions {
    // After a drain, the expiry in the copy decides.
    const lagMs = isDraining(this.#env()) ? 0 : renewalLagMs(copied)
    const ahead = copied.takenRecords ? GENERATION_JUMP : 0
    return { slot: copied.slot, object: this.#id, keys, ahead, lagMs, now: Date.now() }
  }

  get #id(): string {
    return this.#ctx.id.toString()
  }

  #load(): StoredSlot | undefined {
    const stored = this.#ctx.storage.kv.get<StoredSlot>('lease')
    return stored && toStoredSlot(stored)
  }

  #save(stored: StoredSlot): void {
    this.#ctx.storage.kv.put('lease', stored)
  }

  /** Not awaited, so that it commits in one transaction with the writes before it. */
  #setAlarm(time: number): void {
    void this.#ctx.storage.setAlarm(time)
  }

  #schedule(stored: StoredSlot, copy: CopyState): void {
    this.#save({ ...stored, ...copy })
    if (copy.dueAt !== undefined) this.#setAlarm(copy.dueAt)
  }

  /** Newest transition first. */
  #store(
    stored: Omit<StoredSlot, 'lease'>,
    lease: LeaseState,
    transitions: readonly Transition[],
    now: number,
  ): StoredSlot {
    const change = transitions.length > 0 ? 'transition' : 'renewal'
    const wallNow = Date.now()
    const random = Math.random()
    const jitter = change === 'transition' ? copyPace.nextJitter(wallNow, random) : random
    const dueAt = copyDueAt(stored, change, wallNow, jitter)
    const next: StoredSlot = { ...stored, lease, dueAt }
    this.#save(next)
    this.#isWritten = true
    if (transitions.length > 0) {
      const at = new Date(now).toISOString()
      const newest = transitions.map(transition => ({ generation: lease.generation, at, ...transition }))
      this.#ctx.storage.kv.put('transitions', [...newest, ...this.transitions()].slice(0, MAX_TRANSITIONS))
    }
    if (dueAt !== stored.dueAt) this.#setAlarm(dueAt)
    this.#onChange(lease, now)
    return next
  }

  /**
   * Sets the alarm of a due copy if it was lost. The platform deletes an alarm that has failed too often, and holds alarms
   * back under a spending limit.
   */
  #checkAlarm(stored: StoredSlot | undefined): void {
    const now = Date.now()
    if (stored?.dueAt === undefined || now < this.#nextAlarmCheck) return
    this.#nextAlarmCheck = Math.max(now, stored.dueAt) + MAX_ALARM_DELAY_MS
    void this.#ctx.storage.getAlarm().then(alarm => {
      const dueAt = this.#load()?.dueAt
      if (dueAt === undefined || this.#pendingCopy) return
      if (alarm === null || alarm > dueAt || alarm < Date.now() - MAX_ALARM_DELAY_MS) this.#setAlarm(dueAt)
    })
  }
}
