import type { DynadotCommand, DynadotFault } from '@pool/test-kit/dns/dynadot-double.ts'
import type { Prng } from '@pool/test-kit/prng.ts'
import type { ApplyResult, ReadResult, Unavailable } from '../../../src/dns/domain/result.ts'
import { type RecordChange, type RecordSet, recordKey } from '../../../src/dns/domain/rrset.ts'
import type { DnsProvider } from '../../../src/dns/provider.ts'
import { applyFaults, httpFaults, readFaults } from './faults.ts'
import type { UnderWay as InFlight } from './in-flight.ts'
import type { ZoneHost } from './zone-host.ts'

export interface TrafficOptions {
  readonly zone: string
  readonly host: ZoneHost
  readonly dice: Prng
  readonly underWay: InFlight
  /** Sees each order before anything comes of it. */
  readonly onOrder: (changes: readonly RecordChange[]) => void
  /** Sees what is known to have been done, but for the changes at the owner names `undone`. */
  readonly onDone: (changes: readonly RecordChange[], undone: ReadonlySet<string>) => void
  readonly note: (line: string) => void
}

/** An order that was given up and has not taken effect yet. */
export interface LateOrder {
  /** Undefined: of the whole zone. */
  readonly changes?: readonly RecordChange[]
  readonly land: () => Promise<void>
}

export const toOwnerKey = (change: RecordChange): string => (change.kind === 'upsert' ? change.set.name : change.name)
export const toChangeKey = (change: RecordChange): string => recordKey(change.kind === 'upsert' ? change.set : change)
const textOf = (change: RecordChange): string =>
  change.kind === 'upsert' ? `${toChangeKey(change)}=${change.set.values}` : `-${toChangeKey(change)}`

const unavailable = (reason: string, more: Partial<Unavailable> = {}): Unavailable => ({
  kind: 'unavailable',
  reason: `[provider] ${reason}`,
  ...more,
})

export interface TrafficCounts {
  /** Sets of changes that were asked for. */
  orders: number
  /** Calls, of the port or below it, that something befell. */
  faults: number
  /** Orders that took effect after they were given up. */
  late: number
  stale: number
  /** Of other people. */
  edits: number
}

/** All that goes to one zone, of both replicas, and what befalls it. */
export class Traffic {
  /** No more faults, and nobody is kept waiting. */
  isCalm = false
  /** Writes that the host has begun and not ended. */
  writes = 0
  late: LateOrder[] = []
  readonly counts: TrafficCounts = { orders: 0, faults: 0, late: 0, stale: 0, edits: 0 }
  readonly #options: TrafficOptions
  readonly #held = new Set<{ steps: number; go: () => void }>()
  /** The zone before its last change; null: not known, or shown just now. */
  #before: readonly RecordSet[] | null = null
  /** Somebody has changed the zone since the last read of it began. */
  #isEdited = false
  #giveUp: () => void = () => {}

  constructor(options: TrafficOptions) {
    this.#options = options
    if (options.host.httpFaultOf) options.host.httpFaultOf = command => this.#httpFault(command)
  }

  /** A step of the world: who has waited long enough goes on. */
  step(): void {
    for (const held of this.#held) {
      held.steps -= 1
      if (held.steps <= 0) held.go()
    }
  }

  releaseAll(): void {
    for (const held of this.#held) held.go()
  }

  /** Somebody is about to change the zone. `isShown`: the state before it may still be read. */
  async beforeEdit({ isShown }: { isShown: boolean }): Promise<void> {
    await this.#beforeChange()
    if (!isShown) this.forget()
    this.#isEdited = true
  }

  async #beforeChange(): Promise<void> {
    const { host, zone, dice } = this.#options
    // Not always, for it costs a query.
    this.#before = !this.isCalm && !host.isWholeSet && dice.chance(0.6) ? await host.records(zone) : null
  }

  /** What was shown long ago is not shown again. */
  forget(): void {
    this.#before = null
  }

  async landAll(): Promise<void> {
    while (this.late.length > 0) await this.landOne()
  }

  async landOne(): Promise<void> {
    const order = this.late.shift()
    if (!order) return
    this.counts.late += 1
    this.#options.note(`a late order lands: ${order.changes?.map(textOf).join(', ') ?? 'the whole set'}`)
    await order.land()
  }

  provider(inner: DnsProvider): DnsProvider {
    return {
      ...inner,
      read: (zone, owners, signal) => this.#read(inner, zone, owners, signal),
      apply: (zone, changes, signal) => this.#apply(inner, zone, changes, signal),
      close: async () => {},
    }
  }

  async #pause(): Promise<void> {
    const { dice, underWay } = this.#options
    if (this.isCalm || !dice.chance(0.35)) return
    const steps = 1 + dice.below(3)
    const { promise, resolve } = Promise.withResolvers<void>()
    const held = { steps, go: resolve }
    this.#held.add(held)
    await underWay.during('held', () => promise)
    this.#held.delete(held)
  }

  async #read(
    inner: DnsProvider,
    zone: string,
    owners: readonly string[] | 'all',
    signal: AbortSignal,
  ): Promise<ReadResult> {
    const { note, dice } = this.#options
    await this.#pause()
    const fault = this.isCalm ? 'none' : dice.pickWeighted(readFaults)
    if (fault !== 'none' && fault !== 'stale') this.counts.faults += 1
    note(`read ${owners === 'all' ? 'all' : owners.map(owner => owner.split('.')[0])}: ${fault}`)
    if (fault === 'no effect') return unavailable('HTTP 500')
    if (fault === 'zone') return unavailable('not this zone', { reason: '[zone] not this zone', scope: 'zone' })
    if (fault === 'too many requests') return unavailable('HTTP 429', { retryAfterMs: 1_000 * (1 + dice.below(20)) })
    const before = this.#before
    if (fault === 'stale' && before) {
      // Never two in a row.
      this.#before = null
      this.counts.stale += 1
      await this.#pause()
      return { kind: 'read', records: before }
    }
    this.#isEdited = false
    const result = await this.#within(signal, given => inner.read(zone, owners, given))
    await this.#pause()
    return fault === 'answer lost' ? unavailable('no answer in time') : result
  }

  async #apply(
    inner: DnsProvider,
    zone: string,
    changes: readonly RecordChange[],
    signal: AbortSignal,
  ): Promise<ApplyResult> {
    const { onOrder, onDone } = this.#options
    await this.#pause()
    onOrder(changes)
    const result = await this.#perform(inner, zone, changes, signal)
    if (result.kind === 'applied') {
      const undone = new Set([...result.rejected.map(({ name }) => name), ...(result.skipped ?? [])])
      onDone(changes, undone)
    }
    return result
  }

  async #perform(
    inner: DnsProvider,
    zone: string,
    changes: readonly RecordChange[],
    signal: AbortSignal,
  ): Promise<ApplyResult> {
    const { note, dice, host } = this.#options
    const fault = this.isCalm ? 'none' : dice.pickWeighted(applyFaults)
    this.counts.orders += 1
    if (fault !== 'none') this.counts.faults += 1
    note(`apply ${changes.map(textOf).join(', ')}: ${fault}`)
    const write = async (some: readonly RecordChange[]): Promise<ApplyResult> => {
      const result = await this.#within(signal, given => this.#write(() => inner.apply(zone, some, given)))
      if (result.kind === 'unavailable' || result.rejected.length > 0) note(`  ${JSON.stringify(result)}`)
      return result
    }
    switch (fault) {
      case 'no effect':
        return unavailable('HTTP 500')
      case 'zone':
        return { kind: 'unavailable', reason: '[zone] not this zone', scope: 'zone' }
      case 'too many requests':
        return unavailable('HTTP 429', { retryAfterMs: 1_000 * (1 + dice.below(20)) })
      case 'late': {
        const heedless = host.createHeedlessProvider?.()
        if (!heedless) return unavailable('no answer in time')
        const order = AbortSignal.timeout(10_000)
        const land = async () => {
          await this.#write(() => heedless.apply(zone, changes, order))
          await heedless.close()
        }
        this.late.push({ changes, land })
        return unavailable('no answer in time')
      }
      case 'half': {
        const half = changes.filter(() => dice.chance(0.5))
        if (half.length > 0) await write(half)
        return unavailable('HTTP 502')
      }
      case 'refused': {
        const name = toOwnerKey(dice.pick(changes))
        const rest = changes.filter(change => toOwnerKey(change) !== name)
        const result: ApplyResult = rest.length > 0 ? await write(rest) : { kind: 'applied', rejected: [] }
        if (result.kind === 'unavailable') return result
        return { ...result, rejected: [...result.rejected, { name, reason: 'not today' }] }
      }
      default: {
        const result = await write(changes)
        await this.#pause()
        return fault === 'answer lost' ? unavailable('no answer in time') : result
      }
    }
  }

  async #write<Result>(work: () => Promise<Result>): Promise<Result> {
    await this.#beforeChange()
    this.writes += 1
    return work().finally(() => {
      this.writes -= 1
    })
  }

  /** The call is given up when the caller's time is over, or when it befalls the call. */
  #within<Result>(signal: AbortSignal, call: (signal: AbortSignal) => Promise<Result>): Promise<Result> {
    const given = new AbortController()
    this.#giveUp = () => given.abort()
    return call(AbortSignal.any([signal, given.signal]))
  }

  #httpFault(command: DynadotCommand): DynadotFault | undefined {
    if (this.isCalm) return undefined
    const { dice, note, host } = this.#options
    const fault = dice.pickWeighted<DynadotFault | 'late' | undefined>(httpFaults[command])
    if (fault === undefined || (fault === 'stale' && this.writes > 0 && this.#isEdited)) return undefined
    this.counts[fault === 'stale' ? 'stale' : 'faults'] += 1
    note(`  ${command}: ${JSON.stringify(fault)}`)
    const giveUp = this.#giveUp
    const isUnanswered = fault === 'late' || fault === 'no answer, no effect' || fault === 'no answer, with effect'
    if (isUnanswered) setImmediate(giveUp)
    if (fault !== 'late') return fault
    const { promise, resolve } = Promise.withResolvers<void>()
    const effects = host.effects?.() ?? 0
    this.late.push({
      async land() {
        resolve()
        while (host.effects?.() === effects) await new Promise(setImmediate)
      },
    })
    return { effectAfter: promise }
  }
}
