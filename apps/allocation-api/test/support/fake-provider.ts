import { setTimeout as sleep } from 'node:timers/promises'
import type { ApplyResult, ReadResult } from '../../src/dns/domain/result.ts'
import { type RecordChange, type RecordSet, recordKey } from '../../src/dns/domain/rrset.ts'
import type { DnsProvider } from '../../src/dns/provider.ts'

/** What the next call comes to, in place of what it would do; `after` lets it take effect first. */
export interface ProviderFault {
  readonly answer: Extract<ApplyResult, { kind: 'unavailable' }> | 'throw' | 'hang'
  readonly after?: boolean
}

const nameOf = (change: RecordChange): string => (change.kind === 'upsert' ? change.set.name : change.name)

/** A provider in memory that keeps to the port's contract and fails when told to. */
export class FakeProvider implements DnsProvider {
  readonly records = new Map<string, RecordSet>()
  readonly calls: ('read' | 'apply')[] = []
  /** Taken from the front, one a call; empty: all goes well. */
  readonly faults: (ProviderFault | null)[] = []
  /** Owner names that the provider does not take. */
  readonly refuses = new Set<string>()
  /** How many changes one apply gets to; the others are skipped. */
  mostChanges = Number.POSITIVE_INFINITY
  /** What the next read shows in place of what is there. */
  staleRead: readonly RecordSet[] | null = null
  concurrency?: 1
  /** Whether its reads say that they show the whole zone, as they do. */
  isFullZone?: true
  /** Awaited by each apply, and by each read, that begins while it stands. */
  gate: Promise<void> = Promise.resolve()
  readGate: Promise<void> = Promise.resolve()
  /** Milliseconds that an apply takes. */
  applyMs = 0
  reading = 0
  underWay = 0
  mostAtOnce = 0

  async read(_zone: string, _owners: readonly string[] | 'all', signal: AbortSignal): Promise<ReadResult> {
    this.calls.push('read')
    this.reading += 1
    await this.readGate.finally(() => {
      this.reading -= 1
    })
    const failed = await this.#fault(signal)
    const records = this.staleRead ?? [...this.records.values()]
    this.staleRead = null
    return failed ?? { kind: 'read', records, ...(this.isFullZone ? { isFullZone: true } : {}) }
  }

  async apply(_zone: string, changes: readonly RecordChange[], signal: AbortSignal): Promise<ApplyResult> {
    this.calls.push('apply')
    this.underWay += 1
    this.mostAtOnce = Math.max(this.mostAtOnce, this.underWay)
    try {
      await this.gate
      await sleep(this.applyMs)
      const [next] = this.faults
      if (next?.after) this.#change(changes)
      const failed = await this.#fault(signal)
      if (failed) return failed
      const skipped = changes.slice(this.mostChanges).map(nameOf)
      return { kind: 'applied', rejected: this.#change(changes.slice(0, this.mostChanges)), skipped: skipped }
    } finally {
      this.underWay -= 1
    }
  }

  async close(): Promise<void> {}

  names(): string[] {
    return [...new Set([...this.records.values()].map(set => set.name))].sort()
  }

  #change(changes: readonly RecordChange[]): { name: string; reason: string }[] {
    const refused: { name: string; reason: string }[] = []
    for (const change of changes) {
      const name = nameOf(change)
      if (this.refuses.has(name)) refused.push({ name, reason: 'not allowed' })
      else if (change.kind === 'upsert') this.records.set(recordKey(change.set), change.set)
      else this.records.delete(recordKey(change))
    }
    return refused
  }

  async #fault(signal: AbortSignal) {
    const fault = this.faults.shift()
    if (!fault) return null
    if (fault.answer === 'throw') throw new Error('key=secret-of-the-provider')
    if (fault.answer !== 'hang') return fault.answer
    await new Promise(resolve => signal.addEventListener('abort', resolve))
    return null
  }
}
