import { setTimeout as sleep } from 'node:timers/promises'
import type { Target } from '@pool/contract'
import { createDatabaseClient } from '@pool/runtime/database/client'
import { isZoneMarker } from '@pool/test-kit/dns/zone-marker.ts'
import { until } from '@pool/test-kit/poll.ts'
import { afterAll, afterEach, beforeAll, beforeEach } from 'vitest'
import type {
  ApplyResult,
  ReadResult,
  Unavailable,
  WantedRecords,
  ZoneCheck,
  ZonePart,
} from '../../src/dns/domain/result.ts'
import { type RecordChange, type RecordSet, recordKey, toOwnerName } from '../../src/dns/domain/rrset.ts'
import { createRecords, type RecordTemplate } from '../../src/dns/domain/target.ts'
import type { DnsProvider } from '../../src/dns/provider.ts'
import { type Caller, createPools } from '../../src/naming/naming.ts'
import type { DriftCheckResult } from '../../src/observability/domain/observer.ts'
import { isDecided, type SyncStatus, toDnsState } from '../../src/reconciler/domain/status.ts'
import { createReconciler, type Reconciler } from '../../src/reconciler/reconciler.ts'
import { createZoneLocks } from '../../src/reconciler/zone-lock.ts'
import { createTestDatabase, repositoryOptions, type TestDatabase, truncateAllocations } from './database.ts'
import { createInFlight } from './random/faulty-provider.ts'
import { createTokenRepository, type TokenRepository } from './token-repository.ts'

/** The result of the next call. With `takesEffect`, an apply makes its changes first. */
interface ProviderFault {
  readonly result: Extract<ApplyResult, { kind: 'unavailable' }> | 'throw' | 'hang'
  readonly takesEffect?: boolean
}

/** An in-memory provider that fulfils the contract of the port and fails as the test configures it. */
class FakeProvider implements DnsProvider {
  readonly records = new Map<string, RecordSet>()
  /** The markers of the zones, which `records` does not contain. */
  readonly markers = new Map<string, RecordSet>()
  readonly calls: ('read' | 'apply')[] = []
  /** Each call uses the first one. Null, or an empty queue: the call succeeds. */
  readonly faults: (ProviderFault | null)[] = []
  /** Owner names that the provider rejects. */
  readonly rejectedNames = new Set<string>()
  /** Owner names whose records the provider does not delete, although it says so. */
  readonly keptNames = new Set<string>()
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
      else if (!this.keptNames.has(name)) records.delete(recordKey(change))
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

export const DRIFT_MS = 600_000
/** For a busy machine. */
const STATEMENT_TIMEOUT_MS = 20_000
const WAIT_MS = 30_000

interface ReplicaOptions {
  readonly url: string
  readonly provider: DnsProvider
  readonly providerKind?: string
  readonly writesZones?: boolean
  readonly keepsUnknown?: boolean
  readonly waitMs?: number
  readonly lockWaitMs?: number
  readonly leaseMs?: number
  readonly recordTemplate?: RecordTemplate
  readonly callTimeoutMs?: number
  readonly random?: () => number
  /** Milliseconds of a clock that stands still while the test works: the replica repeats nothing before the test says so. */
  readonly now?: () => number
  readonly pools?: readonly string[]
}

/** The DNS reconciler of one replica, with its own connections and without the rest of the API. */
interface Replica {
  readonly dns: Reconciler
  /** Errors of the reconciler and errors that the provider threw. */
  readonly errors: readonly unknown[]
  readonly driftChecks: readonly DriftCheckResult[]
  /** The causes of the zones that this replica stopped. */
  readonly stops: readonly string[]
  readonly markerRejections: readonly string[]
  /** Names that were reported as unknown. */
  readonly unknown: readonly string[]
  /** The outcomes of the syncs. */
  readonly syncs: readonly string[]
  /** Resolves when no sync and no check is in flight. */
  untilIdle(): Promise<void>
  /** Syncs the zones that are due, and waits until the replica is idle. */
  sync(): Promise<void>
  close(): Promise<void>
}

const startReplica = ({
  url,
  provider,
  providerKind = 'fake',
  writesZones = true,
  keepsUnknown = false,
  waitMs = WAIT_MS,
  lockWaitMs = WAIT_MS,
  leaseMs = WAIT_MS,
  recordTemplate = { names: ['@', '*'], ttl: 60 },
  callTimeoutMs = STATEMENT_TIMEOUT_MS,
  random = () => 0.5,
  now = () => 0,
  pools = ['pool.test', 'other.test'],
}: ReplicaOptions): Replica => {
  const sql = createDatabaseClient(url, {
    maxConnections: 4,
    applicationName: 'replica',
    maxStatementMs: STATEMENT_TIMEOUT_MS,
  })
  const zoneLocks = createZoneLocks(sql, { waitMs: lockWaitMs, leaseMs, timeoutMs: STATEMENT_TIMEOUT_MS })
  const inFlight = createInFlight()
  const errors: unknown[] = []
  const driftChecks: DriftCheckResult[] = []
  const stops: string[] = []
  const markerRejections: string[] = []
  const unknown: string[] = []
  const syncs: string[] = []
  const dns = createReconciler({
    provider,
    providerKind,
    writesZones,
    keepsUnknown,
    sql,
    withLock: (...args) => inFlight.during('running', () => zoneLocks.withLock(...args)),
    pools: () => createPools(pools),
    recordTemplate,
    statementTimeoutMs: STATEMENT_TIMEOUT_MS,
    providerTimeoutMs: callTimeoutMs,
    commitWaitMs: waitMs,
    driftIntervalMs: DRIFT_MS,
    now,
    random,
    observer: {
      onProviderCall() {},
      onCircuitOpened() {},
      onCircuitClosed() {},
      onSync: (_, outcome) => void syncs.push(outcome),
      onDriftCheck: (_, result) => void driftChecks.push(result),
      onZoneStopped: (_, cause) => void stops.push(cause),
      onUnknownNames: (_, subdomains) => void unknown.push(...subdomains),
      onMarkerRejected: (_, reason) => void markerRejections.push(reason),
      onDatabaseReached() {},
      onError: (_, error) => void errors.push(error),
    },
  })
  return {
    dns,
    errors,
    driftChecks,
    stops,
    markerRejections,
    unknown,
    syncs,
    untilIdle: inFlight.untilIdle,
    async sync() {
      await dns.syncDueZones()
      await inFlight.untilIdle()
    },
    async close() {
      await dns.stop()
      await sql.end({ timeout: 1 })
    },
  }
}

export const poolDomain = 'pool.test'
export const template = { names: ['@', '*'], ttl: 60 }
const caller: Caller = { actor: 'in-cluster', address: null, requestId: 'test' }

/**
 * A database for the calling block of tests. Each test gets an in-memory provider and empty tables, starts replicas and
 * controls the time.
 */
export const useDnsFixture = () => {
  let database: TestDatabase
  let store: TokenRepository
  let provider: FakeProvider
  let aheadMs = 0
  const replicas: Replica[] = []

  beforeAll(async () => {
    database = await createTestDatabase()
    store = createTokenRepository(database.sql, repositoryOptions)
  })
  afterAll(() => database.drop())
  beforeEach(async () => {
    provider = new FakeProvider()
    await truncateAllocations(database.sql)
    await database.sql`truncate dns_zones, dns_zone_writes, pools`
  })
  afterEach(async () => {
    for (const replica of replicas.splice(0)) await replica.close()
  })

  return {
    get sql() {
      return database.sql
    },
    get url() {
      return database.url
    },
    get provider() {
      return provider
    },
    replica(options: Partial<ReplicaOptions> = {}): Replica {
      const replica = startReplica({ url: database.url, provider, now: () => aheadMs, ...options })
      replicas.push(replica)
      return replica
    },
    advanceRows: (ms: number) => database.advance(ms),
    /** Advances the time of the database's rows and of the replicas. */
    async advance(ms: number): Promise<void> {
      aheadMs += ms
      await database.advance(ms)
    },
    /** As if another process had taken each lock and released it. */
    async loseZoneLocks(): Promise<void> {
      await database.sql`update zone_leases set holder = null, version = version + 1`
    },
    /** Reserves and commits the name. Returns the version to wait for. */
    async activate(subdomain: string, address: string | Target = '192.0.2.1', zone = poolDomain) {
      const target = typeof address === 'string' ? { loadBalancerIP: address } : address
      const fqdn = `${subdomain}.${zone}`
      const granted = await store.reserve({ poolDomain: zone, subdomain, createdBy: '' }, caller)
      if (granted.kind !== 'granted') throw new Error(`${subdomain} is not free`)
      const { reservationToken } = granted
      const command = { poolDomain: zone, subdomain, reservationToken, sovereignFQDN: fqdn, target }
      const committed = await store.commit(command, createRecords(fqdn, target, template), caller)
      if (committed.kind !== 'committed') throw new Error(committed.kind)
      return { zone, subdomain, version: committed.version }
    },
    /** Changes the target of an active name. Returns the version to wait for. */
    async update(subdomain: string, address: string | Target, zone = poolDomain) {
      const target = typeof address === 'string' ? { loadBalancerIP: address } : address
      const records = createRecords(`${subdomain}.${zone}`, target, template)
      const updated = await store.update({ poolDomain: zone, subdomain, target }, records, caller)
      if (updated.kind !== 'updated' || updated.version === null) throw new Error(updated.kind)
      return { zone, subdomain, version: updated.version }
    },
    async release(subdomain: string, zone = poolDomain) {
      const released = await store.release({ poolDomain: zone, subdomain }, caller)
      if (released.kind !== 'released' || released.version === null) throw new Error(released.kind)
      return { zone, subdomain, version: released.version, isWithdrawal: true }
    },
    /**
     * Bounds, in seconds, of the pause that starts during `attempt`, on the clock of the database. The table must have
     * exactly one name.
     */
    async measurePause(attempt: () => Promise<unknown>): Promise<{ readonly min: number; readonly max: number }> {
      const [start] = await database.sql`select clock_timestamp()::text as at`
      await attempt()
      const [pause] = await database.sql<[{ min: number; max: number }]>`
        select extract(epoch from next_attempt_at - clock_timestamp())::float8 as min,
          extract(epoch from next_attempt_at - ${start?.at}::timestamptz)::float8 as max
        from dns_names`
      return pause
    },
    async row(subdomain: string) {
      const [found] = await database.sql`
        select * from dns_names where zone = ${poolDomain} and subdomain = ${subdomain}`
      return found
    },
    /** The status of a name after one attempt, which the replica has reported. A caller that waits lets the service repeat what failed. */
    async attempt(dns: Reconciler, { zone, subdomain, version }: { zone: string; subdomain: string; version: number }) {
      await dns.syncDueZones()
      const state = await until('the attempt is stored', async () => {
        const [status] = await database.sql<[SyncStatus]>`
          select version, applied_version as "appliedVersion", coalesce(last_error, leftover) as "lastError" from dns_names
          where zone = ${zone} and subdomain = ${subdomain}`
        return isDecided(status, version, false) && toDnsState(status)
      })
      await replicas.find(replica => replica.dns === dns)?.untilIdle()
      return state
    },
    /** The history of a name, oldest first. */
    async events(subdomain: string): Promise<string[]> {
      const rows = await database.sql<{ event: string }[]>`
        select event from allocation_history where subdomain = ${subdomain} order by id`
      return rows.map(row => row.event)
    },
  }
}
