import { createDatabaseClient, type Sql } from '@pool/runtime/database/client'
import { createPrng, type Prng } from '@pool/test-kit/prng.ts'
import { type RecordSet, recordKey } from '../../../src/dns/domain/rrset.ts'
import { createRecords, targetOf } from '../../../src/dns/domain/target.ts'
import type { DnsProvider } from '../../../src/dns/provider.ts'
import { type Caller, createPools } from '../../../src/naming/naming.ts'
import { createReconciler, type Reconciler } from '../../../src/reconciler/reconciler.ts'
import { createZoneLocks, type WithLock } from '../../../src/reconciler/zone-lock.ts'
import type { RefusalKind, SetChange } from '../../../src/records/domain/types.ts'
import { createTestDatabase, type TestDatabase } from '../database.ts'
import { createTenants, type Tenants, toChallenge } from '../tenant-fixture.ts'
import { createTokenRepository, type TokenRepository } from '../token-repository.ts'
import { createInFlight, FaultInjector, type InterleavingCounts, toChangeKey } from './faulty-provider.ts'
import type { Edit, StartZoneHost, ZoneHost } from './hosts.ts'
import {
  type ActiveName,
  type Fate,
  findViolations,
  formatRecordSet,
  type ModelName,
  type QuiescentHistoryEntry,
  type QuiescentName,
  type RowState,
  TARGET_FORMS,
  type TenantRow,
  template,
  toTarget,
  ZoneModel,
} from './zone-model.ts'

/** The connections of a replica. All interleavings of the worker reuse them. */
interface ReplicaResources {
  readonly sql: Sql
  readonly withLock: WithLock
  readonly store: TokenRepository
  readonly provider: DnsProvider
}

/** Has its own database and provider account, and runs one interleaving after the other. */
interface Worker extends AsyncDisposable {
  readonly database: TestDatabase
  readonly host: ZoneHost
  readonly replicas: readonly ReplicaResources[]
  /** Like `advance` of the database, but row by row: one statement for all rows could deadlock with a sync. */
  advance(ms: number): Promise<void>
}

/** Time to live of a reservation. */
const RESERVATION_MS = 600_000
const TIMEOUT_MS = 20_000
const REPLICAS = 2

export const createWorker = async (startHost: StartZoneHost): Promise<Worker> => {
  await using cleanup = new AsyncDisposableStack()
  const database = await createTestDatabase({ connections: 2 })
  cleanup.defer(() => database.drop())
  const host = cleanup.use(await startHost(database.sql))
  const replicas = Array.from({ length: REPLICAS }, (): ReplicaResources => {
    const sql = createDatabaseClient(database.url, {
      maxConnections: 2,
      applicationName: 'replica',
      maxStatementMs: TIMEOUT_MS,
    })
    const { withLock } = createZoneLocks(sql, { waitMs: 10_000, leaseMs: 30_000, timeoutMs: TIMEOUT_MS })
    const reservation = { ttlMs: RESERVATION_MS, maxAgeMs: RESERVATION_MS }
    const provider = host.createProvider()
    cleanup.defer(async () => {
      await provider.close()
      await sql.end({ timeout: 1 })
    })
    return {
      sql,
      withLock,
      provider,
      store: createTokenRepository(sql, { reservation, timeoutMs: TIMEOUT_MS }),
    }
  })
  const { sql } = database
  const advance = async (ms: number) => {
    const shift = sql`${ms}::float8 * interval '1 millisecond'`
    await sql`
      update pool_allocations set
        reserved_at = reserved_at - ${shift}, expires_at = expires_at - ${shift}, committed_at = committed_at - ${shift}`
    await sql`update dns_zones set next_drift_check_at = next_drift_check_at - ${shift}`
    for (const { subdomain } of await sql<{ subdomain: string }[]>`select subdomain from dns_names`)
      await sql`
        update dns_names set
          next_attempt_at = next_attempt_at - ${shift}, changed_at = changed_at - ${shift},
          applied_at = applied_at - ${shift}
        where subdomain = ${subdomain}`
  }
  const ownedCleanup = cleanup.move()
  return { database, host, replicas, advance, [Symbol.asyncDispose]: () => ownedCleanup.disposeAsync() }
}

const caller: Caller = { actor: 'in-cluster', address: null, requestId: 'random' }
const DRIFT_MS = 600_000
/** Longer than every pause, the drift interval and every reservation. */
const LONG_MS = 700_000
const MIN_STEPS = 14
const EXTRA_STEPS = 15
/** Drift checks until nothing changes. Two suffice unless something fails. */
const MAX_ROUNDS = 8

/** The violations of one interleaving, with its trace. */
class InterleavingError extends Error {
  constructor(seed: number, violations: readonly string[], trace: readonly string[]) {
    super([`seed ${seed}`, ...violations, ...trace.map(line => `    ${line}`)].join('\n'))
  }
}

/** The zone of an interleaving. */
export const toZone = (seed: number): string => `z${seed}.test`

/** One zone of a worker, from its first reservation to quiescence. */
class Interleaving {
  readonly #worker: Worker
  readonly #prng: Prng
  readonly #model: ZoneModel
  readonly #faultInjector: FaultInjector
  readonly #replicas: Reconciler[]
  readonly #tenants: Tenants[]
  readonly #violations: string[] = []
  readonly #waits: Promise<unknown>[] = []
  readonly #seed: number
  /** The tokens for records of the former holders of each name. */
  readonly #formerTokens: { readonly subdomain: string; readonly token: string }[] = []
  #recordWrites = 0
  readonly #inFlight = createInFlight()
  readonly trace: string[] = []
  #clockMs = 0
  /** Whether the last drift check found drift or failed. Null: this round has had none. */
  #foundDrift: boolean | null = null

  constructor(worker: Worker, seed: number) {
    this.#worker = worker
    this.#seed = seed
    this.#prng = createPrng(seed)
    const zone = toZone(seed)
    this.#model = new ZoneModel(zone, worker.host)
    const note = (line: string) => void this.trace.push(line)
    this.#faultInjector = new FaultInjector({
      zone,
      host: worker.host,
      prng: this.#prng.fork(1),
      note,
      inFlight: this.#inFlight,
      onApplied: (changes, unapplied) => this.#model.recordApplied(changes, unapplied),
      onWrite: changes => {
        this.#violations.push(...this.#model.findInvalidChanges(changes, worker.host.replacesZone))
      },
    })
    const { next: random } = this.#prng.fork(2)
    this.#tenants = worker.replicas.map(({ sql }) => createTenants(sql, { poolDomain: zone, template }))
    this.#replicas = worker.replicas.map(({ sql, withLock, provider }) =>
      createReconciler({
        provider: this.#faultInjector.provider(provider),
        providerKind: 'random',
        writesZones: true,
        keepsUnknown: false,
        sql,
        // Every provider call is made under a zone lock.
        withLock: (...args) => this.#inFlight.during('running', () => withLock(...args)),
        pools: () => createPools([zone, this.#model.zoneBelow]),
        recordTemplate: template,
        statementTimeoutMs: 20_000,
        providerTimeoutMs: 10_000,
        commitWaitMs: 300,
        driftIntervalMs: DRIFT_MS,
        now: () => this.#clockMs,
        random,
        observer: {
          onProviderCall() {},
          onCircuitOpened() {},
          onCircuitClosed() {},
          onSync() {},
          onDriftCheck: (_, result) => {
            this.#foundDrift = result.kind !== 'compared' || result.driftedCount > 0
            note(
              result.kind === 'compared'
                ? `drift check: ${result.driftedCount} drifted`
                : `drift check failed: ${result.reason}`,
            )
          },
          onZoneStopped: (_, cause) => this.#violations.push(`zone stopped: ${cause}`),
          onUnknownNames() {},
          onMarkerRejected() {},
          onDatabaseReached() {},
          onError: (event, error) => this.#violations.push(`${event}: ${error}`),
        },
      }),
    )
  }

  get counts(): InterleavingCounts {
    return this.#faultInjector.counts
  }

  get #zone() {
    return this.#model.zone
  }

  async run(): Promise<void> {
    const { sql } = this.#worker.database
    await this.#worker.host.addZone(this.#zone)
    for (const name of [this.#zone, '(account)'])
      await sql`insert into zone_leases (name) values (${name}) on conflict do nothing`
    const steps = MIN_STEPS + this.#prng.below(EXTRA_STEPS)
    for (let step = 0; step < steps; step += 1) {
      await this.#step()
      this.#faultInjector.step()
      if (this.#prng.chance(0.8)) await this.#inFlight.untilIdleOrPaused()
    }
    await this.#endFaults()
    await this.#waitForQuiescence()
    await this.#expectQuiescence()
    if (this.#model.names.some(name => this.#model.isBlocked(name))) {
      await this.#edit(this.#model.createClearEdit(), 'stays')
      await this.#waitForQuiescence()
      await this.#expectQuiescence()
    }
    await Promise.all(this.#replicas.map(replica => replica.stop()))
    if (this.#violations.length > 0) throw new InterleavingError(this.#seed, this.#violations, this.trace)
  }

  /** Deletes the rows, so that no later interleaving of the worker syncs this zone. */
  async end(): Promise<void> {
    this.#faultInjector.isCalm = true
    this.#faultInjector.resumeAll()
    await Promise.all([this.#faultInjector.completeLateWrites(), ...this.#replicas.map(replica => replica.stop())])
    await this.#worker.database.sql`
      with a as (delete from pool_allocations), b as (delete from dns_names) delete from dns_zones`
  }

  get #replica() {
    return this.#prng.pick(this.#replicas)
  }

  get #store() {
    return this.#prng.pick(this.#worker.replicas).store
  }

  async #step(): Promise<void> {
    const prng = this.#prng
    const name = prng.pick(this.#model.names)
    const run = prng.pickWeighted<() => Promise<void>>([
      [40, () => this.#requestNext(name)],
      [40, () => this.#changeRecordsOften(name)],
      [24, () => this.#updateTarget(name)],
      [4, () => this.#overreach(name)],
      [6, () => this.#editTenant(name)],
      [14, () => this.#plant(this.#model.createUnrelatedEdit(prng))],
      [4, () => this.#plant(this.#model.createCnameEdit(prng))],
      [5, () => this.#edit(this.#model.createClearEdit(prng), 'stays')],
      [12, () => this.#editAddress(name)],
      [6, () => this.#advance(200 + prng.below(2_300))],
      [5, () => this.#syncDueZones()],
      [5, () => this.#checkDrift()],
      [3, async () => this.#repair()],
      [6, () => this.#faultInjector.completeLateWrite()],
      [3, () => this.#skipAhead()],
      [2, () => this.#sweep()],
      [4, async () => this.#changeZones(name)],
    ])
    await run()
  }

  /** Sends a caller's next request for the name. */
  async #requestNext(name: ModelName): Promise<void> {
    const { subdomain } = name
    const allocationName = { poolDomain: this.#zone, subdomain }
    const expected = name.state
    if (name.state === 'free') {
      const granted = await this.#store.reserve({ ...allocationName, createdBy: '' }, caller)
      this.trace.push(`reserve ${subdomain}: ${granted.kind}`)
      if (granted.kind !== 'granted')
        return void this.#violations.push(`${subdomain} was free, but reserve returned ${granted.kind}`)
      Object.assign(name, { state: 'reserved', token: granted.reservationToken, reservedAtMs: this.#clockMs })
      if (this.#prng.chance(0.3)) return
    }
    if (name.state === 'reserved' && this.#prng.chance(0.85)) {
      const address = this.#model.nextAddress()
      // Before the statement: another replica can publish the records before the commit returns.
      Object.assign(name, { form: 'addresses', address, hasIpv6: false, confirmed: new Set() })
      if (name.wasHeld) {
        this.#model.doom(name)
        this.counts.regrants += 1
      }
      const fqdn = this.#model.fqdn(name)
      const command = { ...allocationName, reservationToken: name.token, sovereignFQDN: fqdn, loadBalancerIP: address }
      const decision = await this.#store.commit(
        command,
        createRecords(fqdn, { loadBalancerIP: address }, template),
        caller,
      )
      this.trace.push(`commit ${subdomain} ${address}: ${decision.kind}`)
      if (decision.kind !== 'committed')
        return void this.#violations.push(`${subdomain} was reserved, but commit returned ${decision.kind}`)
      name.state = 'active'
      this.#startWait(subdomain, decision.version)
      return
    }
    if (name.state === 'active') {
      this.#model.doom(name)
      name.wasHeld = true
    }
    if (name.recordToken !== '') this.#formerTokens.push({ subdomain, token: name.recordToken })
    name.recordToken = ''
    this.#model.dropTenant(name)
    const decision = await this.#store.release(allocationName, caller)
    this.trace.push(`release ${subdomain}: ${decision.kind}`)
    if (decision.kind !== 'released')
      return void this.#violations.push(`${subdomain} was ${expected}, but release returned ${decision.kind}`)
    name.state = 'free'
    if (decision.version !== null) this.#startWait(subdomain, decision.version)
  }

  /** A former holder of the name writes, whoever has it now, or the holder of another one. */
  async #overreach(name: ModelName): Promise<void> {
    const put = { kind: 'put', name: `t0.${this.#model.fqdn(name)}`, type: 'TXT', values: ['overreach'] } as const
    for (const { token } of this.#formerTokens.filter(({ subdomain }) => subdomain === name.subdomain)) {
      const { kind } = await this.#tenant.change(token, put)
      if (kind !== 'unauthorized') this.#violations.push(`a former holder of ${name.subdomain} writes: ${kind}`)
    }
    for (const { subdomain, recordToken, state } of this.#model.names) {
      if (subdomain === name.subdomain || recordToken === '' || state !== 'active') continue
      const remove = { kind: 'delete', name: put.name, type: 'A' } as const
      for (const change of [put, remove]) {
        const outcome = await this.#tenant.change(recordToken, change)
        if (outcome.kind !== 'refused' || outcome.refusals[0].kind !== 'outside-scope')
          this.#violations.push(`the holder of ${subdomain} writes below ${name.subdomain}: ${JSON.stringify(outcome)}`)
      }
    }
  }

  get #tenant() {
    return this.#prng.pick(this.#tenants)
  }

  async #changeRecordsOften(name: ModelName): Promise<void> {
    for (let times = this.#prng.below(4); times >= 0; times -= 1) await this.#changeRecords(name)
  }

  /** A write of the tenant of an active name. Names more than one label below need copies of the wildcard. */
  async #changeRecords(name: ModelName): Promise<void> {
    if (name.state !== 'active') return
    const prng = this.#prng
    const fqdn = this.#model.fqdn(name)
    if (name.recordToken === '') name.recordToken = await this.#tenant.mint(name.subdomain)
    const { sets, challenges } = name.tenant
    const isDelegated = name.form === 'name servers'
    const label = `t${prng.below(3)}`
    if (prng.chance(0.4)) {
      const owner = prng.pick([`_acme-challenge.${fqdn}`, `_acme-challenge.${label}.${fqdn}`])
      const value = toChallenge(`v${prng.below(2)}`)
      const others = challenges.filter(other => other.name !== owner || other.value !== value)
      const isAdded = prng.chance(0.6)
      if (isAdded && isDelegated) return this.#send(name, { kind: 'add-challenge', name: owner, value }, 'delegated')
      name.tenant = {
        sets,
        challenges: isAdded ? [...others, { name: owner, value, owner: 'default', setAt: 0 }] : others,
      }
      return this.#send(name, { kind: isAdded ? 'add-challenge' : 'remove-challenge', name: owner, value })
    }
    const owner = `${prng.pick(['', 'x.', '*.', 'x.y.', '*.x.'])}${label}.${fqdn}`
    const type = prng.pick(['A', 'TXT', 'CNAME'])
    const others = sets.filter(set => set.name !== owner || set.type !== type)
    if (prng.chance(0.35)) {
      name.tenant = { sets: others, challenges }
      return this.#send(name, { kind: 'delete', name: owner, type })
    }
    this.#recordWrites += 1
    const number = this.#recordWrites
    const value =
      { A: `203.0.113.${number}`, TXT: `"text of ${number}"`, CNAME: `host-of-${number}.example.` }[type] ?? ''
    const put = { kind: 'put', name: owner, type, values: [value] } as const
    if (isDelegated) return this.#send(name, put, 'delegated')
    const isAliased = others.some(set => set.name === owner && (type === 'CNAME' || set.type === 'CNAME'))
    if (isAliased) return this.#send(name, put, 'record-conflict')
    name.tenant = {
      sets: [...others, { name: owner, type, ttl: 300, values: [value], owner: 'default', isPublished: true }],
      challenges,
    }
    return this.#send(name, put)
  }

  /** `refusal`: what the write must be refused for. */
  async #send({ subdomain, recordToken }: ModelName, change: SetChange, refusal?: RefusalKind): Promise<void> {
    const outcome = await this.#tenant.change(recordToken, change)
    this.counts.tenantWrites += 1
    this.trace.push(`records of ${subdomain} ${JSON.stringify(change)}: ${outcome.kind}`)
    const found = outcome.kind === 'refused' ? outcome.refusals[0].kind : undefined
    if (outcome.kind !== (refusal ? 'refused' : 'changed') || found !== refusal)
      this.#violations.push(`a write of the tenant of ${subdomain}: ${JSON.stringify(outcome)}`)
    const [row] = await this.#worker.database.sql<{ version: number }[]>`
      select version from dns_names where zone = ${this.#zone} and subdomain = ${subdomain}`
    if (row) this.#startWait(subdomain, row.version)
  }

  async #updateTarget(name: ModelName): Promise<void> {
    if (name.state !== 'active') return
    const canDelegate = this.#worker.host.typesBelow?.includes('NS') ?? false
    const forms = TARGET_FORMS.filter(
      one => one === 'addresses' || (name.changesForm && (canDelegate || one === 'host name')),
    )
    const form = this.#prng.pick(forms)
    if (form === 'name servers') this.#model.dropTenant(name)
    Object.assign(name, { form, address: this.#model.nextAddress(), hasIpv6: !name.hasIpv6, confirmed: new Set() })
    const target = toTarget(name)
    this.counts.targetChanges += 1
    const outcome = await this.#tenant.update(name.subdomain, {
      ...(form === 'addresses' ? { loadBalancerIPv6: null } : {}),
      ...target,
    })
    this.trace.push(`update ${name.subdomain} ${JSON.stringify(target)}: ${outcome.kind}`)
    if (outcome.kind !== 'updated')
      this.#violations.push(`${name.subdomain} is active, but update returned ${outcome.kind}`)
  }

  /** Waits for the version, as the API does after a commit or a release. Sometimes the process dies before it waits. */
  #startWait(subdomain: string, version: number): void {
    if (this.#prng.chance(0.2)) return
    this.#waits.push(this.#replica.waitUntilApplied({ zone: this.#zone, subdomain, version }))
  }

  async #edit(edit: Edit, fate: Fate): Promise<void> {
    const { host } = this.#worker
    const faultInjector = this.#faultInjector
    if (edit.put.length + edit.remove.length === 0) return
    if (host.replacesZone && (faultInjector.writesInFlight > 0 || faultInjector.lateWrites.length > 0)) return
    const keys = [...edit.put, ...edit.remove].map(recordKey)
    const isPending = faultInjector.lateWrites.some(({ changes = [] }) =>
      changes.some(change => keys.includes(toChangeKey(change))),
    )
    if (isPending) return
    if (await this.#hasCnameConflict(edit, keys)) return
    faultInjector.counts.edits += 1
    this.trace.push(
      `external edit: ${edit.put.map(formatRecordSet)} ${edit.remove.map(key => `-${recordKey(key)}`)} (${fate})`,
    )
    const { planted } = this.#model
    const isNew = !keys.some(key => this.#model.findName(key) || planted.some(set => recordKey(set) === key))
    const isOfTenant = [...edit.put, ...edit.remove].some(({ name }) => this.#model.findTenant(name))
    await faultInjector.beforeEdit({ canBeReadLater: isNew && !isOfTenant, isDoomed: fate === 'doomed' })
    this.#model.recordEdit(edit, fate)
    await host.edit(this.#zone, edit)
  }

  /** Whether a name would have a CNAME and another type. The provider knows which of the records are deleted. */
  async #hasCnameConflict({ put }: Edit, keys: readonly string[]): Promise<boolean> {
    const isCname = ({ type }: RecordSet) => type === 'CNAME'
    if (![...put, ...this.#model.planted].some(isCname)) return false
    const present = (await this.#worker.host.records(this.#zone)).filter(set => !keys.includes(recordKey(set)))
    return put.some(set => present.some(other => other.name === set.name && (isCname(set) || isCname(other))))
  }

  /** An edit at or below a name. */
  async #plant(edit: Edit): Promise<void> {
    const [owner] = [...edit.put, ...edit.remove].map(({ name }) => name)
    if (owner === undefined) return
    const name = this.#model.findHolder(owner)
    const state = name ? await this.#readRowState(this.#worker.database.sql, name) : 'none'
    // A release that follows can doom a record set that a sync in flight has read before it was changed.
    const isChange = edit.put.some(set => this.#model.planted.some(other => recordKey(other) === recordKey(set)))
    if (!name || (!isChange && (state === 'none' || state === 'settled'))) return this.#edit(edit, 'stays')
    await this.#withZoneLock(async sql => {
      const isDoomed = ['withdrawn', 'unsettled'].includes(await this.#readRowState(sql, name))
      await this.#edit(edit, isDoomed ? 'doomed' : 'stays')
    })
  }

  async #editAddress(name: ModelName): Promise<void> {
    await this.#withZoneLock(async sql => {
      const planned = this.#model.createAddressEdit(this.#prng, name, await this.#readRowState(sql, name))
      if (planned) await this.#edit(planned.edit, planned.fate)
    })
  }

  /** Drift in what a tenant has set. Only of an applied name: otherwise a write in flight could follow. */
  async #editTenant(name: ModelName): Promise<void> {
    if (name.state !== 'active' || this.#model.isBlocked(name)) return
    await this.#withZoneLock(async sql => {
      const [row] = await sql.unsafe<{ isApplied: boolean }[]>(
        `select applied_version = version and purge_version <= version as "isApplied" from dns_names where zone = $1 and subdomain = $2`,
        [this.#zone, name.subdomain],
      )
      const edit = row?.isApplied && this.#model.createTenantEdit(this.#prng, name)
      if (edit) await this.#edit(edit, 'repaired')
    })
  }

  async #readRowState(sql: Pick<Sql, 'unsafe'>, { subdomain }: ModelName): Promise<RowState> {
    const [row] = await sql.unsafe<{ state: RowState }[]>(
      `select case when desired = '[]' then 'withdrawn' when purge_version > applied_version then 'unsettled' else 'settled' end
        as state from dns_names where zone = $1 and subdomain = $2`,
      [this.#zone, subdomain],
    )
    return row?.state ?? 'none'
  }

  /** Runs `work` while no sync is in flight. Does nothing if one is. */
  async #withZoneLock(work: (sql: Pick<Sql, 'unsafe'>) => Promise<void>): Promise<void> {
    const lockName = this.#worker.replicas[0]?.provider.concurrency ? '(account)' : this.#zone
    await this.#worker.database.sql.begin(async tx => {
      const [held] =
        await tx`select name from zone_leases where name = ${lockName} and holder is null for update skip locked`
      if (held) await work(tx)
    })
  }

  async #advance(ms: number): Promise<void> {
    this.trace.push(`${ms} ms pass`)
    this.#clockMs += ms
    await this.#worker.advance(ms)
    for (const name of this.#model.names)
      if (name.state === 'reserved' && this.#clockMs - name.reservedAtMs >= RESERVATION_MS) name.state = 'free'
  }

  async #syncDueZones(): Promise<void> {
    this.trace.push('sync due zones')
    await this.#replica.syncDueZones()
  }

  async #checkDrift(): Promise<void> {
    this.trace.push('drift check due')
    await this.#worker.database.sql`update dns_zones set next_drift_check_at = statement_timestamp()`
    await this.#replica.syncDueZones()
  }

  /** Another zone appears, or goes. */
  #changeZones(name: ModelName): void {
    const injector = this.#faultInjector
    injector.hidingZone = injector.hidingZone === null ? this.#model.fqdn(name) : null
    this.trace.push(`hiding zone: ${injector.hidingZone}`)
  }

  #repair(): void {
    this.trace.push('repair')
    this.#waits.push(this.#replica.repair(this.#zone))
  }

  async #sweep(): Promise<void> {
    await this.#store.deleteExpired(100)
  }

  /** Advances beyond the end of every call and every late write. No later read is stale by that much. */
  async #skipAhead(): Promise<void> {
    const wasCalm = this.#faultInjector.isCalm
    await this.#endFaults()
    const ms = this.#prng.pick([65_000, 130_000, LONG_MS])
    await this.#advance(ms)
    this.#faultInjector.isCalm = wasCalm
  }

  /** Completes everything in flight, without faults. */
  async #endFaults(): Promise<void> {
    const faultInjector = this.#faultInjector
    faultInjector.isCalm = true
    faultInjector.hidingZone = null
    faultInjector.resumeAll()
    await faultInjector.completeLateWrites()
    await Promise.all(this.#waits.splice(0))
    await this.#inFlight.untilIdle()
    // Writes can have become late in the meantime.
    await faultInjector.completeLateWrites()
    faultInjector.forgetPreviousRecords()
  }

  /** Advances time and runs drift checks until nothing changes. */
  async #waitForQuiescence(): Promise<void> {
    const { sql } = this.#worker.database
    for (let round = 0; round < MAX_ROUNDS; round += 1) {
      await this.#advance(LONG_MS)
      this.#foundDrift = null
      const replica = this.#replica
      // The first sync checks for drift, the second repairs it.
      for (let sync = 0; sync < 2; sync += 1) {
        await replica.syncDueZones()
        await this.#inFlight.untilIdle()
      }
      const [pending] = await sql<{ names: number; zones: number }[]>`
        select count(*) filter (where desired = '[]' or previous_records <> '[]' or applied_version < version) as names,
          (select count(*) from dns_zones) as zones
        from dns_names`
      if (pending?.zones === 0 || (pending?.names === 0 && this.#foundDrift === false)) return
    }
  }

  async #expectQuiescence(): Promise<void> {
    const { sql } = this.#worker.database
    const [present, active, tenants, rows, history] = await Promise.all([
      this.#worker.host.records(this.#zone),
      sql<ActiveName[]>`
        select subdomain, ${sql.unsafe(targetOf('a'))} as target from pool_allocations a where state = 'active'`,
      sql<TenantRow[]>`select subdomain, records from tenant_records`,
      sql<QuiescentName[]>`
        select subdomain, previous_records as previous, applied_version = version as "isApplied", failure from dns_names`,
      sql<QuiescentHistoryEntry[]>`
        select subdomain, event, from_state as from, detail, deleted_records as deleted from allocation_history
        where pool_domain = ${this.#zone} order by id`,
    ])
    this.counts.deleted = this.#model.doomed.length
    this.#violations.push(...findViolations(this.#model, { present, active, tenants, rows, history }))
  }
}

/** Runs one interleaving to quiescence. Throws an InterleavingError with seed, violations and trace if a check fails. */
export const runInterleaving = async (worker: Worker, seed: number): Promise<InterleavingCounts> => {
  const interleaving = new Interleaving(worker, seed)
  try {
    await interleaving.run()
    return interleaving.counts
  } catch (error) {
    if (error instanceof InterleavingError) throw error
    throw new InterleavingError(seed, [String(error)], interleaving.trace)
  } finally {
    await interleaving.end()
  }
}
