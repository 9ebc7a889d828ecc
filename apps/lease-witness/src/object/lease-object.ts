import { DurableObject } from 'cloudflare:workers'
import type { LeaseTransition } from '@pool/contract/lease'
import { readRecords, writeCopy } from '../kv-copy/copy.ts'
import { adopt } from '../kv-copy/domain/import-legacy.ts'
import { type CopyState, changeBetween, copyDueAt, retryDelay } from '../kv-copy/domain/schedule.ts'
import { isNews } from '../lease/has-changed.ts'
import { type Current, decide, type LeaseRequest, shown } from '../lease/lease.ts'
import { isKnown } from '../lease/precondition.ts'
import type { SlotAddress } from '../lease/slot-name.ts'
import type { HistoryOutcome, ReadOutcome, ReadRequest, Unavailable, WriteOutcome } from '../lease-service.ts'
import { type LogSettings, log } from '../log.ts'
import { Waiters } from './long-poll.ts'
import { within } from './with-timeout.ts'

/** What an object needs of the deployment. */
export interface ObjectEnv extends LogSettings {
  readonly OPENOVA_LEASES: KVNamespace
}

/** All that a slot keeps, in one value: what is written is written whole. */
interface Stored extends CopyState {
  readonly slot: string
  readonly lease: Current
}

/** What a decision makes of a slot. */
interface Step {
  readonly slot: string
  readonly lease: Current
  readonly change: Omit<LeaseTransition, 'at' | 'generation'> | undefined
  readonly now: number
}

const TRANSITIONS_KEPT = 50
/** More than this many waits on one slot are not taken on: the memory of an object is bounded. */
const MOST_WAITERS = 2_000
const KV_DEADLINE_MS = 5_000

/**
 * The one place where a slot's lease is. The platform runs at most one object of a name, and checks so at every access to
 * its storage; between a load and the store that follows, nothing is awaited, so nobody comes in between; and no answer
 * leaves before what it tells of is on disk. Nothing here throws a refusal: outcomes are data.
 */
export class LeaseObject extends DurableObject<ObjectEnv> {
  readonly #waiters = new Waiters()
  #adoption: Promise<Unavailable | undefined> | undefined
  #isAdopted = false
  #copyFailures = 0

  async write(at: SlotAddress, request: LeaseRequest): Promise<WriteOutcome> {
    const unavailable = await this.#adopted(at)
    if (unavailable) return unavailable

    const now = Date.now()
    const stored = this.#load()
    const decision = decide(stored?.lease, request, now)
    switch (decision.kind) {
      case 'absent':
        return decision
      case 'refused':
        return { ...decision, lease: shown(stored?.lease) }
      case 'granted':
      case 'released': {
        const { kind, next, change } = decision
        this.#store({ slot: at.slot, lease: next, change, now }, stored)
        return { kind, lease: shown(next) }
      }
    }
  }

  async read(at: SlotAddress, { known, wait }: ReadRequest): Promise<ReadOutcome> {
    const unavailable = await this.#adopted(at)
    if (unavailable) return unavailable
    const until = Date.now() + (wait?.forMs ?? 0)
    for (;;) {
      const current = this.#load()?.lease
      const now = Date.now()
      const isOver = wait === undefined || now >= until || isNews(current, known, now)
      if (isOver) return this.#told(current, known, wait && now)
      if (this.#waiters.size >= MOST_WAITERS) return { kind: 'overloaded' }
      const end = current?.kind === 'held' ? Math.min(until, current.expiresAt) : until
      const how = await this.#waiters.sleep(wait.id, end - now)
      if (how === 'forgotten') return { kind: 'absent' }
    }
  }

  async history(at: SlotAddress): Promise<HistoryOutcome> {
    const unavailable = await this.#adopted(at)
    if (unavailable) return unavailable
    if (!this.#load()) return { kind: 'absent' }
    return { kind: 'history', transitions: this.#transitions() }
  }

  forget(waitId: string): void {
    this.#waiters.forget(waitId)
  }

  /** How many callers wait at this moment. */
  waiting(): number {
    return this.#waiters.size
  }

  /** Brings the copy up to date. It was set together with the lease, so it comes, whatever ends in between. */
  override async alarm(): Promise<void> {
    const before = this.#load()
    if (before?.dueAt === undefined) return
    try {
      // Without a deadline: a write that was given up could land after the next one.
      await writeCopy(this.env.OPENOVA_LEASES, before.slot, before.lease)
    } catch (error) {
      this.#copyFailures += 1
      const { slot } = before
      log(this.env, 'error', { msg: 'copy-failed', slot, failures: this.#copyFailures, reason: String(error) })
      this.#schedule(Date.now() + retryDelay(this.#copyFailures, Math.random()))
      return
    }
    this.#copyFailures = 0
    const after = this.#load()
    if (!after) return
    const { dueAt: _, ...rest } = after
    const landed = { ...rest, copiedAt: Date.now() }
    if (after.lease.generation === before.lease.generation) this.#save(landed)
    else {
      const dueAt = copyDueAt(landed, changeBetween(before.lease, after.lease), Date.now())
      this.#save({ ...landed, dueAt })
      this.#schedule(dueAt)
    }
  }

  /** Reads Workers KV once, for a slot that an older deployment may have left there. */
  #adopted(at: SlotAddress): Promise<Unavailable | undefined> | undefined {
    if (this.#isAdopted) return undefined
    if (this.#load()) {
      this.#isAdopted = true
      return undefined
    }
    this.#adoption ??= this.#adopt(at).finally(() => {
      this.#adoption = undefined
    })
    return this.#adoption
  }

  async #adopt(at: SlotAddress): Promise<Unavailable | undefined> {
    let found: Awaited<ReturnType<typeof readRecords>>
    try {
      found = await within(KV_DEADLINE_MS, readRecords(this.env.OPENOVA_LEASES, at))
    } catch (error) {
      log(this.env, 'error', { msg: 'adoption-failed', slot: at.slot, reason: String(error) })
      return { kind: 'lease-unavailable' }
    }
    const now = Date.now()
    const adoption = adopt(found.decoded, found.undecoded, now)
    if (adoption.kind === 'unreadable') return { kind: 'invalid-lease-record', key: adoption.key }
    if (adoption.kind === 'adopted') {
      const to = adoption.lease.kind === 'held' ? adoption.lease.holder : ''
      const change = { event: 'adopted', by: '', from: '', to } as const
      this.#store({ slot: at.slot, lease: adoption.lease, change, now }, undefined)
    }
    this.#isAdopted = true
    return undefined
  }

  #load(): Stored | undefined {
    return this.ctx.storage.kv.get<Stored>('lease')
  }

  #save(stored: Stored): void {
    this.ctx.storage.kv.put('lease', stored)
  }

  /** Not awaited: it is written together with what was stored before it, in one transaction. */
  #schedule(at: number): void {
    void this.ctx.storage.setAlarm(at)
  }

  #transitions(): LeaseTransition[] {
    return this.ctx.storage.kv.get<LeaseTransition[]>('transitions') ?? []
  }

  #store({ slot, lease, change, now }: Step, stored: Stored | undefined): void {
    const dueAt = copyDueAt(stored ?? {}, change ? 'transition' : 'renewal', now)
    this.#save({ ...stored, slot, lease, dueAt })
    if (change) {
      const transition = { generation: lease.generation, at: new Date(now).toISOString(), ...change }
      this.ctx.storage.kv.put('transitions', [transition, ...this.#transitions()].slice(0, TRANSITIONS_KEPT))
    }
    if (dueAt !== stored?.dueAt) this.#schedule(dueAt)
    this.#waiters.wakeAll()
  }

  /** `awaited`: the time, when the reader asked to be told of an expiry too. */
  #told(current: Current | undefined, known: ReadRequest['known'], awaited: number | undefined): ReadOutcome {
    if (!current) return { kind: 'absent' }
    const isTold = awaited === undefined ? isKnown(known, current.generation) : !isNews(current, known, awaited)
    return { kind: isTold ? 'not-modified' : 'lease', lease: shown(current) }
  }
}
