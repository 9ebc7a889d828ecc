import type { DynadotCommand, DynadotFault } from '@pool/test-kit/dns/dynadot-double.ts'
import { isZoneMarker } from '@pool/test-kit/dns/zone-marker.ts'
import type { Prng } from '@pool/test-kit/prng.ts'
import type { ApplyResult, ReadResult, Unavailable, WantedRecords, ZonePart } from '../../../src/dns/domain/result.ts'
import { type RecordChange, type RecordSet, recordKey } from '../../../src/dns/domain/rrset.ts'
import type { DnsProvider } from '../../../src/dns/provider.ts'
import { readAll } from '../../providers/conformance.ts'
import type { ZoneHost } from './hosts.ts'

/** Counts running and paused operations, and waits until no operation can continue. */
export const createInFlight = () => {
  const waiters = new Set<() => void>()
  const counts = { running: 0, paused: 0 }
  const notify = () => {
    for (const check of waiters) check()
  }
  const during = async <Result>(state: keyof typeof counts, work: () => Promise<Result>): Promise<Result> => {
    counts[state] += 1
    notify()
    return work().finally(() => {
      counts[state] -= 1
      notify()
    })
  }
  const until = async (condition: () => boolean): Promise<void> => {
    // The next sync can start a few promises after the previous one ends, so the condition must hold twice.
    for (let times = 0; times < 2; times += 1) {
      await new Promise(setImmediate)
      if (condition()) continue
      times = -1
      await new Promise<void>(resolve => {
        const check = () => {
          if (!condition()) return
          waiters.delete(check)
          resolve()
        }
        waiters.add(check)
      })
    }
  }
  return {
    during,
    /** Resolves when no operation is in flight. */
    untilIdle: () => until(() => counts.running === 0),
    /** Resolves when no operation is in flight, or one is paused and blocks the others. */
    untilIdleOrPaused: () => until(() => counts.running === 0 || counts.paused > 0),
  }
}

type InFlight = ReturnType<typeof createInFlight>

/** Weighted faults of a call of the provider port, the same for every provider. */
const readFaults = [
  [70, 'none'],
  [4, 'no effect'],
  [4, 'response lost'],
  [2, 'too many requests'],
  [2, 'zone'],
  [15, 'stale'],
] as const

const applyFaults = [
  [45, 'none'],
  [6, 'no effect'],
  [10, 'response lost'],
  [12, 'late'],
  [3, 'too many requests'],
  [2, 'zone'],
  [8, 'partial'],
  [6, 'rejected'],
  [4, 'no room'],
] as const

/** Weighted faults of an HTTP request, for a provider with an HTTP API. */
const httpFaults = {
  get_dns: [
    [80, undefined],
    [12, 'stale'],
    [2, 'no response, no effect'],
    [1, 'truncated body'],
    [1, 'missing settings'],
    [1, 'busy'],
    [1, { status: 500 }],
  ],
  set_dns2: [
    [60, undefined],
    [4, 'no response, no effect'],
    [10, 'no response, with effect'],
    [10, 'late'],
    [3, 'truncated body'],
    [2, 'busy'],
    [2, { status: 500 }],
    [1, { status: 429, retryAfter: '3' }],
    [3, { error: 'too many cooks' }],
  ],
} as const satisfies Record<DynadotCommand, readonly (readonly [number, DynadotFault | 'late' | undefined])[]>

interface FaultInjectorOptions {
  readonly zone: string
  readonly host: ZoneHost
  readonly prng: Prng
  readonly inFlight: InFlight
  /** Called before each write. */
  readonly onWrite: (changes: readonly RecordChange[]) => void
  /** Called after each confirmed write. The provider made no changes at the owner names `unapplied`. */
  readonly onApplied: (changes: readonly RecordChange[], unapplied: ReadonlySet<string>) => void
  readonly note: (line: string) => void
}

/** A write whose call timed out and that has not taken effect yet. */
interface LateWrite {
  /** Undefined: the write replaces the whole zone. */
  readonly changes?: readonly RecordChange[]
  readonly complete: () => Promise<void>
}

export const toOwnerKey = (change: RecordChange): string => (change.kind === 'upsert' ? change.set.name : change.name)
export const toChangeKey = (change: RecordChange): string => recordKey(change.kind === 'upsert' ? change.set : change)
const formatChange = (change: RecordChange): string =>
  change.kind === 'upsert' ? `${toChangeKey(change)}=${change.set.values}` : `-${toChangeKey(change)}`

const unavailable = (reason: string, more: Partial<Unavailable> = {}): Unavailable => ({
  kind: 'unavailable',
  reason: `[provider] ${reason}`,
  ...more,
})

const ZONE_UNAVAILABLE: Unavailable = { kind: 'unavailable', reason: '[zone] no such zone', scope: 'zone' }

export interface InterleavingCounts {
  /** Calls of `apply`. */
  writes: number
  /** Calls of the port, or HTTP requests, with an injected fault. */
  faults: number
  /** Writes that took effect after their call had timed out. */
  lateWrites: number
  staleReads: number
  /** Edits of the zone that bypass the API. */
  edits: number
  /** Record sets of other writers that were deleted. */
  deleted: number
  /** Commits of a name that had an earlier holder. */
  regrants: number
  /** Writes of tenants to their records. */
  tenantWrites: number
  targetChanges: number
}

/** Injects faults into the calls of both replicas to one zone. */
export class FaultInjector {
  /** Neither injects faults nor pauses calls. */
  isCalm = false
  /** Writes in flight at the host. */
  writesInFlight = 0
  lateWrites: LateWrite[] = []
  /** Another zone, which answers for the names at and below it; null: there is none. */
  hidingZone: string | null = null
  /** The same in the last read. */
  #readHidingZone: string | null = null
  readonly counts: InterleavingCounts = {
    writes: 0,
    faults: 0,
    lateWrites: 0,
    staleReads: 0,
    edits: 0,
    deleted: 0,
    regrants: 0,
    tenantWrites: 0,
    targetChanges: 0,
  }
  readonly #options: FaultInjectorOptions
  readonly #pausedCalls = new Set<{ steps: number; resume: () => void }>()
  /** The zone before its last change. Null: unknown, or already returned by a stale read. */
  #previousRecords: readonly RecordSet[] | null = null
  /** Whether an external edit has changed the zone since the last read began. */
  #wasEdited = false
  /** Whether an external edit created a record set that is to be deleted, since the whole zone was read. */
  #isDoomUnread = false
  #abortCall: () => void = () => {}

  constructor(options: FaultInjectorOptions) {
    this.#options = options
    if (options.host.nextHttpFault) options.host.nextHttpFault = command => this.#httpFault(command)
  }

  /** Counts a step of the interleaving. Resumes the calls whose pause is over. */
  step(): void {
    for (const call of this.#pausedCalls) {
      call.steps -= 1
      if (call.steps <= 0) call.resume()
    }
  }

  resumeAll(): void {
    for (const call of this.#pausedCalls) call.resume()
  }

  /**
   * To be called before an external edit. `canBeReadLater`: a stale read may return the state before it. `isDoomed`: no stale
   * read does, until the whole zone was read.
   */
  async beforeEdit({ canBeReadLater, isDoomed }: { canBeReadLater: boolean; isDoomed: boolean }): Promise<void> {
    await this.#beforeChange()
    if (!canBeReadLater || isDoomed) this.forgetPreviousRecords()
    this.#wasEdited = true
    this.#isDoomUnread ||= isDoomed
  }

  async #beforeChange(): Promise<void> {
    const { host, zone, prng } = this.#options
    // Not always: it costs a query.
    this.#previousRecords = !this.isCalm && !host.replacesZone && prng.chance(0.6) ? await host.records(zone) : null
  }

  /** No later read returns the state before the last change. */
  forgetPreviousRecords(): void {
    this.#previousRecords = null
  }

  async completeLateWrites(): Promise<void> {
    while (this.lateWrites.length > 0) await this.completeLateWrite()
  }

  async completeLateWrite(): Promise<void> {
    const write = this.lateWrites.shift()
    if (!write) return
    this.counts.lateWrites += 1
    this.#options.note(`late write: ${write.changes?.map(formatChange).join(', ') ?? 'the whole zone'}`)
    await write.complete()
  }

  provider(inner: DnsProvider): DnsProvider {
    return {
      ...inner,
      read: (zone, wanted, signal) => this.#read(inner, zone, wanted, signal),
      readZone: (zone, signal) => this.#readZone(inner, zone, signal),
      apply: (zone, changes, signal) => this.#apply(inner, zone, changes, signal),
      close: async () => {},
    }
  }

  async #pause(): Promise<void> {
    const { prng, inFlight } = this.#options
    if (this.isCalm || !prng.chance(0.35)) return
    const steps = 1 + prng.below(3)
    const { promise, resolve } = Promise.withResolvers<void>()
    const call = { steps, resume: resolve }
    this.#pausedCalls.add(call)
    await inFlight.during('paused', () => promise)
    this.#pausedCalls.delete(call)
  }

  async *#readZone(
    inner: DnsProvider,
    zone: string,
    signal: AbortSignal,
  ): AsyncGenerator<ZonePart | Unavailable, void> {
    const result = await this.#read(inner, zone, 'all', signal)
    yield result.kind === 'read' ? { ...result, kind: 'part' } : result
  }

  async #read(
    inner: DnsProvider,
    zone: string,
    wanted: WantedRecords | 'all',
    signal: AbortSignal,
  ): Promise<ReadResult> {
    const { note, prng } = this.#options
    await this.#pause()
    const fault = this.isCalm ? 'none' : prng.pickWeighted(readFaults)
    if (fault !== 'none' && fault !== 'stale') this.counts.faults += 1
    note(`read ${wanted === 'all' ? 'all' : JSON.stringify(wanted)}: ${fault}`)
    if (fault === 'no effect') return unavailable('HTTP 500')
    if (fault === 'zone') return ZONE_UNAVAILABLE
    if (fault === 'too many requests') return unavailable('HTTP 429', { retryAfterMs: 1_000 * (1 + prng.below(20)) })
    const before = this.#previousRecords
    if (fault === 'stale' && before) {
      // Never two stale reads in a row.
      this.#previousRecords = null
      this.#readHidingZone = null
      this.counts.staleReads += 1
      await this.#pause()
      return { kind: 'read', records: before }
    }
    this.#wasEdited = false
    const result = await this.#callWithAbort(signal, callSignal =>
      wanted === 'all' ? readAll(inner, zone, callSignal) : inner.read(zone, wanted, callSignal),
    )
    if (wanted === 'all' && result.kind === 'read') this.#isDoomUnread = false
    this.#readHidingZone = this.hidingZone
    const hiding = new Map(this.hidingZone === null ? [] : [[this.hidingZone, 'zone']])
    await this.#pause()
    if (fault === 'response lost') return unavailable('no response in time')
    return result.kind === 'read' ? { ...result, hiding } : result
  }

  async #apply(
    inner: DnsProvider,
    zone: string,
    changes: readonly RecordChange[],
    signal: AbortSignal,
  ): Promise<ApplyResult> {
    const { onWrite, onApplied } = this.#options
    await this.#pause()
    const ofNames = changes.filter(change => !isZoneMarker({ name: toOwnerKey(change) }))
    onWrite(ofNames)
    const result = await this.#perform(inner, zone, changes, signal)
    if (result.kind === 'applied') {
      // What a sync writes to a name that is hidden is not confirmed.
      const hidden = [this.hidingZone, this.#readHidingZone].flatMap(name => name ?? [])
      const unapplied = new Set([...result.rejected.map(({ name }) => name), ...(result.skipped ?? []), ...hidden])
      onApplied(ofNames, unapplied)
    }
    return result
  }

  async #perform(
    inner: DnsProvider,
    zone: string,
    changes: readonly RecordChange[],
    signal: AbortSignal,
  ): Promise<ApplyResult> {
    const { note, prng, host } = this.#options
    const fault = this.isCalm ? 'none' : prng.pickWeighted(applyFaults)
    this.counts.writes += 1
    if (fault !== 'none') this.counts.faults += 1
    note(`apply ${changes.map(formatChange).join(', ')}: ${fault}`)
    const write = async (subset: readonly RecordChange[]): Promise<ApplyResult> => {
      const result = await this.#callWithAbort(signal, callSignal =>
        this.#write(() => inner.apply(zone, subset, callSignal)),
      )
      if (result.kind === 'unavailable' || result.rejected.length > 0) note(`  ${JSON.stringify(result)}`)
      return result
    }
    switch (fault) {
      case 'no effect':
        return unavailable('HTTP 500')
      case 'zone':
        return ZONE_UNAVAILABLE
      case 'too many requests':
        return unavailable('HTTP 429', { retryAfterMs: 1_000 * (1 + prng.below(20)) })
      case 'late': {
        const provider = host.createUnconditionalProvider?.()
        if (!provider) return unavailable('no response in time')
        const lateSignal = AbortSignal.timeout(10_000)
        const complete = async () => {
          await this.#write(() => provider.apply(zone, changes, lateSignal))
          await provider.close()
        }
        this.lateWrites.push({ changes, complete })
        return unavailable('no response in time')
      }
      case 'partial': {
        const subset = changes.filter(() => prng.chance(0.5))
        if (subset.length > 0) await write(subset)
        return unavailable('HTTP 502')
      }
      case 'no room':
      case 'rejected': {
        const name = toOwnerKey(prng.pick(changes))
        const others = changes.filter(change => toOwnerKey(change) !== name)
        const result: ApplyResult = others.length > 0 ? await write(others) : { kind: 'applied', rejected: [] }
        if (result.kind === 'unavailable') return result
        const isZoneFull = fault === 'no room' ? { isZoneFull: true as const } : {}
        return { ...result, rejected: [...result.rejected, { name, reason: 'not allowed', ...isZoneFull }] }
      }
      default: {
        const result = await write(changes)
        await this.#pause()
        return fault === 'response lost' ? unavailable('no response in time') : result
      }
    }
  }

  async #write<Result>(work: () => Promise<Result>): Promise<Result> {
    await this.#beforeChange()
    this.writesInFlight += 1
    return work().finally(() => {
      this.writesInFlight -= 1
    })
  }

  /** Runs the call. It is aborted by the caller's signal or by an injected fault. */
  #callWithAbort<Result>(signal: AbortSignal, call: (signal: AbortSignal) => Promise<Result>): Promise<Result> {
    const fault = new AbortController()
    this.#abortCall = () => fault.abort()
    return call(AbortSignal.any([signal, fault.signal]))
  }

  #httpFault(command: DynadotCommand): DynadotFault | undefined {
    if (this.isCalm) return undefined
    const { prng, note, host } = this.#options
    const fault = prng.pickWeighted<DynadotFault | 'late' | undefined>(httpFaults[command])
    const mustBeFresh = this.#isDoomUnread || (this.writesInFlight > 0 && this.#wasEdited)
    if (fault === undefined || (fault === 'stale' && mustBeFresh)) return undefined
    this.counts[fault === 'stale' ? 'staleReads' : 'faults'] += 1
    note(`  ${command}: ${JSON.stringify(fault)}`)
    const abortCall = this.#abortCall
    const hasNoResponse = fault === 'late' || fault === 'no response, no effect' || fault === 'no response, with effect'
    if (hasNoResponse) setImmediate(abortCall)
    if (fault !== 'late') return fault
    const { promise, resolve } = Promise.withResolvers<void>()
    const effects = host.countEffects?.() ?? 0
    this.lateWrites.push({
      async complete() {
        resolve()
        while (host.countEffects?.() === effects) await new Promise(setImmediate)
      },
    })
    return { effectAfter: promise }
  }
}
