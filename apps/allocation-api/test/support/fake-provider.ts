import { setTimeout as sleep } from 'node:timers/promises'
import { isZoneMarker } from '@pool/test-kit/dns/zone-marker.ts'
import type {
  ApplyResult,
  ReadResult,
  Unavailable,
  WantedRecords,
  ZoneCheck,
  ZonePart,
} from '../../src/dns/domain/result.ts'
import { type RecordChange, type RecordSet, recordKey, toOwnerName } from '../../src/dns/domain/rrset.ts'
import type { DnsProvider } from '../../src/dns/provider.ts'

/** The result of the next call. With `takesEffect`, an apply makes its changes first. */
export interface ProviderFault {
  readonly result: Extract<ApplyResult, { kind: 'unavailable' }> | 'throw' | 'hang'
  readonly takesEffect?: boolean
}

/** An in-memory provider that fulfils the contract of the port and fails as the test configures it. */
export class FakeProvider implements DnsProvider {
  readonly records = new Map<string, RecordSet>()
  /** The markers of the zones, which `records` does not contain. */
  readonly markers = new Map<string, RecordSet>()
  readonly calls: ('read' | 'apply')[] = []
  /** Each call uses the first one. Null, or an empty queue: the call succeeds. */
  readonly faults: (ProviderFault | null)[] = []
  /** Owner names that the provider rejects. */
  readonly rejectedNames = new Set<string>()
  /** The number of changes that one apply makes. It skips the others. */
  maxChanges = Number.POSITIVE_INFINITY
  /** The next read returns these records instead of the current ones. */
  staleRead: readonly RecordSet[] | null = null
  concurrency?: 1
  /** Whether the result of a read states that it has the whole zone. It always has. */
  isFullZone?: true
  /** Each apply waits for the promise that is current when it starts; each read waits for `readGate`. */
  applyGate: Promise<void> = Promise.resolve()
  readGate: Promise<void> = Promise.resolve()
  /** Duration of an apply in milliseconds. */
  applyMs = 0
  readsInFlight = 0
  appliesInFlight = 0
  maxAppliesInFlight = 0

  async read(_zone: string, _wanted: WantedRecords, signal: AbortSignal): Promise<ReadResult> {
    this.calls.push('read')
    this.readsInFlight += 1
    await this.readGate.finally(() => {
      this.readsInFlight -= 1
    })
    const failure = await this.#nextFault(signal)
    const records = [...(this.staleRead ?? this.records.values()), ...this.markers.values()]
    this.staleRead = null
    return failure ?? { kind: 'read', records, ...(this.isFullZone ? { isFullZone: true } : {}) }
  }

  async *readZone(zone: string, signal: AbortSignal): AsyncGenerator<ZonePart | Unavailable, void> {
    const result = await this.read(zone, { names: [], branches: [zone] }, signal)
    yield result.kind === 'read' ? { ...result, kind: 'part' } : result
  }

  async checkZone(): Promise<ZoneCheck> {
    return { kind: 'writable' }
  }

  async apply(_zone: string, changes: readonly RecordChange[], signal: AbortSignal): Promise<ApplyResult> {
    this.calls.push('apply')
    this.appliesInFlight += 1
    this.maxAppliesInFlight = Math.max(this.maxAppliesInFlight, this.appliesInFlight)
    try {
      await this.applyGate
      await sleep(this.applyMs)
      const [next] = this.faults
      if (next?.takesEffect) this.#change(changes)
      const failure = await this.#nextFault(signal)
      if (failure) return failure
      const others = changes.filter(change => !isZoneMarker({ name: toOwnerName(change) }))
      const skipped = others.slice(this.maxChanges).map(toOwnerName)
      const done = changes.filter(change => !skipped.includes(toOwnerName(change)))
      return { kind: 'applied', rejected: this.#change(done), skipped }
    } finally {
      this.appliesInFlight -= 1
    }
  }

  async close(): Promise<void> {}

  names(): string[] {
    return [...new Set([...this.records.values()].map(set => set.name))].sort()
  }

  #change(changes: readonly RecordChange[]): { name: string; reason: string }[] {
    const rejected: { name: string; reason: string }[] = []
    for (const change of changes) {
      const name = toOwnerName(change)
      const records = isZoneMarker({ name }) ? this.markers : this.records
      if (this.rejectedNames.has(name)) rejected.push({ name, reason: 'not allowed' })
      else if (change.kind === 'upsert') records.set(recordKey(change.set), change.set)
      else records.delete(recordKey(change))
    }
    return rejected
  }

  async #nextFault(signal: AbortSignal) {
    const fault = this.faults.shift()
    if (!fault) return null
    if (fault.result === 'throw') throw new Error('key=secret-of-the-provider')
    if (fault.result !== 'hang') return fault.result
    await new Promise(resolve => signal.addEventListener('abort', resolve))
    return null
  }
}
