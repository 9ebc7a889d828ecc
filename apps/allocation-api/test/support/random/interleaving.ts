import type { RecordHistoryEntry } from '@pool/test-kit/history-rules.ts'
import { createPrng, type Prng } from '@pool/test-kit/prng.ts'
import type { Caller } from '../../../src/allocation/domain/types.ts'
import { createRecords, recordKey } from '../../../src/dns/domain/rrset.ts'
import { createReconciler, type Reconciler } from '../../../src/reconciler/reconciler.ts'
import { type ActiveName, findFaults, type QuiescentName, toText } from './faults-at-quiescence.ts'
import { Traffic, type TrafficCounts } from './faulty-provider.ts'
import { createInFlight } from './in-flight.ts'
import type { Worker } from './worker.ts'
import type { Edit } from './zone-host.ts'
import { type NameLife, template, ZoneModel } from './zone-model.ts'

const caller: Caller = { actor: 'in-cluster', address: null, requestId: 'random' }
const RESERVATION_MS = 600_000
const DRIFT_MS = 600_000
/** Beyond every pause, every comparison's turn and every reservation. */
const LONG_MS = 700_000
const STEPS = { least: 10, more: 9 }
/** Comparisons until nothing changes: two where all goes well. */
const MOST_ROUNDS = 8

/** What went wrong, and all that led there. */
export class InterleavingFailed extends Error {
  constructor(seed: number, faults: readonly string[], trace: readonly string[]) {
    super([`seed ${seed}`, ...faults, ...trace.map(line => `    ${line}`)].join('\n'))
  }
}

/** One zone of a worker, from its first reservation to its rest. */
class Interleaving {
  readonly #worker: Worker
  readonly #dice: Prng
  readonly #model: ZoneModel
  readonly #traffic: Traffic
  readonly #replicas: Reconciler[]
  readonly #faults: string[] = []
  readonly #settling: Promise<unknown>[] = []
  readonly #seed: number
  readonly #inFlight = createInFlight()
  readonly trace: string[] = []
  #clockMs = 0
  /** The last comparison found something; null: there was none in this round. */
  #isDrifting: boolean | null = null

  constructor(worker: Worker, seed: number) {
    this.#worker = worker
    this.#seed = seed
    this.#dice = createPrng(seed)
    const zone = `z${seed}.test`
    this.#model = new ZoneModel(zone, worker.host.onlyTtl)
    const note = (line: string) => void this.trace.push(line)
    this.#traffic = new Traffic({
      zone,
      host: worker.host,
      dice: this.#dice.fork(1),
      note,
      underWay: this.#inFlight,
      onDone: (changes, undone) => this.#model.done(changes, undone),
      onOrder: changes => this.#faults.push(...this.#model.order(changes, worker.host.isWholeSet)),
    })
    const { next: random } = this.#dice.fork(2)
    this.#replicas = worker.bases.map(({ sql, zoneLocks: claims, provider }) =>
      createReconciler({
        provider: this.#traffic.provider(provider),
        sql,
        // Every provider call is made under a zone lock.
        zoneLocks: {
          withLock: (name, work) => this.#inFlight.during('working', () => claims.withLock(name, work)),
        },
        managedDomains: [zone],
        statementTimeoutMs: 20_000,
        providerTimeoutMs: 10_000,
        commitWaitMs: 300,
        driftIntervalMs: DRIFT_MS,
        now: () => this.#clockMs,
        random,
        observer: {
          onProviderCall() {},
          onDriftCheck: (_, result) => {
            this.#isDrifting = result.kind !== 'compared' || result.driftedCount > 0
            note(
              result.kind === 'compared'
                ? `drift check: ${result.driftedCount} drifted`
                : `drift check failed: ${result.reason}`,
            )
          },
          onError: (event, error) => this.#faults.push(`${event}: ${error}`),
        },
      }),
    )
  }

  get counts(): TrafficCounts {
    return this.#traffic.counts
  }

  get #zone() {
    return this.#model.zone
  }

  async run(): Promise<void> {
    const { sql } = this.#worker.database
    await this.#worker.host.addZone(this.#zone)
    for (const name of [this.#zone, '(account)'])
      await sql`insert into dns_zone_locks (name) values (${name}) on conflict do nothing`
    const steps = STEPS.least + this.#dice.below(STEPS.more)
    for (let step = 0; step < steps; step += 1) {
      await this.#step()
      this.#traffic.step()
      if (this.#dice.chance(0.8)) await this.#inFlight.still()
    }
    await this.#endFaults()
    await this.#waitForQuiescence()
    await this.#expectQuiescence()
    if (this.#model.names.some(name => this.#model.isObstructed(name))) {
      await this.#edit(this.#model.clearEdit(), true)
      await this.#waitForQuiescence()
      await this.#expectQuiescence()
    }
    await Promise.all(this.#replicas.map(replica => replica.stop()))
    if (this.#faults.length > 0) throw new InterleavingFailed(this.#seed, this.#faults, this.trace)
  }

  /** Leaves nothing in the worker that would be looked at again. */
  async end(): Promise<void> {
    this.#traffic.isCalm = true
    this.#traffic.releaseAll()
    await Promise.all([this.#traffic.landAll(), ...this.#replicas.map(replica => replica.stop())])
    await this.#worker.database.sql`
      with a as (delete from pool_allocations), b as (delete from dns_names) delete from dns_zones`
  }

  get #replica() {
    return this.#dice.pick(this.#replicas)
  }

  get #store() {
    return this.#dice.pick(this.#worker.bases).store
  }

  async #step(): Promise<void> {
    const dice = this.#dice
    const name = dice.pick(this.#model.names)
    const act = dice.pickWeighted<() => Promise<void>>([
      [40, () => this.#nextOf(name)],
      [6, () => this.#edit(this.#model.bystanderEdit(dice), true)],
      [4, () => this.#edit(this.#model.cnameEdit(dice), true)],
      [5, () => this.#edit(this.#model.clearEdit(dice), true)],
      [12, () => this.#editAddress(name)],
      [6, () => this.#advance(200 + dice.below(2_300))],
      [5, () => this.#catchUp()],
      [5, () => this.#compare()],
      [3, () => this.#repair()],
      [6, () => this.#traffic.landOne()],
      [3, () => this.#leap()],
      [2, () => this.#sweep()],
    ])
    await act()
  }

  /** What a caller does next with the name. */
  async #nextOf(name: NameLife): Promise<void> {
    const { subdomain } = name
    const about = { poolDomain: this.#zone, subdomain }
    const expected = name.state
    if (name.state === 'free') {
      const granted = await this.#store.reserve({ ...about, createdBy: '' }, RESERVATION_MS, caller)
      this.trace.push(`reserve ${subdomain}: ${granted.kind}`)
      if (granted.kind !== 'granted') return void this.#faults.push(`${subdomain} was free and is not granted`)
      Object.assign(name, { state: 'reserved', token: granted.reservationToken, reservedAtMs: this.#clockMs })
      if (this.#dice.chance(0.3)) return
    }
    if (name.state === 'reserved' && this.#dice.chance(0.85)) {
      const address = this.#model.nextAddress()
      // Before the statement: its records can be there before its answer is here.
      Object.assign(name, { address, confirmed: new Set() })
      const fqdn = this.#model.fqdn(name)
      const command = { ...about, reservationToken: name.token, sovereignFQDN: fqdn, loadBalancerIP: address }
      const done = await this.#store.commit(command, createRecords(fqdn, address, template), caller)
      this.trace.push(`commit ${subdomain} ${address}: ${done.kind}`)
      if (done.kind !== 'committed') return void this.#faults.push(`${subdomain} was reserved: ${done.kind}`)
      name.state = 'active'
      this.#settle(subdomain, done.version)
      return
    }
    const done = await this.#store.release(about, caller)
    this.trace.push(`release ${subdomain}: ${done.kind}`)
    if (done.kind !== 'released') return void this.#faults.push(`${subdomain} was ${expected}: ${done.kind}`)
    name.state = 'free'
    if (done.version !== null) this.#settle(subdomain, done.version)
  }

  /** As the verb does that has stated the version; sometimes its process does not live to do it. */
  #settle(subdomain: string, version: number): void {
    if (this.#dice.chance(0.2)) return
    this.#settling.push(this.#replica.waitUntilApplied({ zone: this.#zone, subdomain, version }))
  }

  async #edit(edit: Edit, isTheirs: boolean): Promise<void> {
    const { host } = this.#worker
    const traffic = this.#traffic
    if (edit.put.length + edit.remove.length === 0) return
    if (host.isWholeSet && (traffic.writes > 0 || traffic.late.length > 0)) return
    traffic.counts.edits += 1
    this.trace.push(`somebody's edit: ${edit.put.map(toText)} ${edit.remove.map(key => `-${recordKey(key)}`)}`)
    const isAtWanted = [...edit.remove, ...edit.put].some(({ name }) => this.#model.nameOf(`${name} A`))
    await traffic.beforeEdit({ isShown: !isAtWanted })
    this.#model.edited(edit, isTheirs)
    await host.edit(this.#zone, edit)
  }

  async #editAddress(name: NameLife): Promise<void> {
    const { sql } = this.#worker.database
    const claim = this.#worker.bases[0]?.provider.concurrency ? '(account)' : this.#zone
    await sql.begin(async tx => {
      const [held] = await tx`select name from dns_zone_locks where name = ${claim} for update skip locked`
      if (!held) return
      const [row] = await tx<{ isClean: boolean }[]>`
        select desired = '[]' and (applied_version = version or is_drift_repair) as "isClean" from dns_names
        where zone = ${this.#zone} and subdomain = ${name.subdomain}`
      const found = this.#model.addressEdit(this.#dice, name, row ?? { isClean: true })
      if (!found) return
      const keys = [...found.edit.put, ...found.edit.remove].map(recordKey)
      const isAwaited = this.#traffic.late.some(({ changes = [] }) =>
        changes.some(change => keys.includes(recordKey(change.kind === 'upsert' ? change.set : change))),
      )
      if (!isAwaited) await this.#edit(found.edit, found.isTheirs)
    })
  }

  async #advance(ms: number): Promise<void> {
    this.trace.push(`${ms} ms pass`)
    this.#clockMs += ms
    await this.#worker.advance(ms)
    for (const name of this.#model.names)
      if (name.state === 'reserved' && this.#clockMs - name.reservedAtMs >= RESERVATION_MS) name.state = 'free'
  }

  async #catchUp(): Promise<void> {
    this.trace.push('catch up')
    await this.#replica.syncDueZones()
  }

  async #compare(): Promise<void> {
    this.trace.push('a comparison is due')
    await this.#worker.database.sql`update dns_zones set next_drift_check_at = statement_timestamp()`
    await this.#replica.syncDueZones()
  }

  async #repair(): Promise<void> {
    this.trace.push('repair')
    this.#settling.push(this.#replica.repair(this.#zone))
  }

  async #sweep(): Promise<void> {
    await this.#store.deleteExpired(100)
  }

  /**
   * So much time that nothing is left of what was before: no call lasts so long, no order comes so late, and no state
   * so old is shown.
   */
  async #leap(): Promise<void> {
    const wasCalm = this.#traffic.isCalm
    await this.#endFaults()
    const ms = this.#dice.pick([65_000, 130_000, LONG_MS])
    await this.#advance(ms)
    this.#traffic.isCalm = wasCalm
  }

  /** Ends all that is under way, without faults. */
  async #endFaults(): Promise<void> {
    const traffic = this.#traffic
    traffic.isCalm = true
    traffic.releaseAll()
    await traffic.landAll()
    await Promise.all(this.#settling.splice(0))
    await this.#inFlight.idle()
    // Those that have become late meanwhile.
    await traffic.landAll()
    traffic.forget()
  }

  /** Lets time pass, and zones be compared, until nothing changes. */
  async #waitForQuiescence(): Promise<void> {
    const { sql } = this.#worker.database
    for (let round = 0; round < MOST_ROUNDS; round += 1) {
      await this.#advance(LONG_MS)
      this.#isDrifting = null
      const replica = this.#replica
      // What the comparison finds is due for the second.
      for (let look = 0; look < 2; look += 1) {
        await replica.syncDueZones()
        await this.#inFlight.idle()
      }
      const [left] = await sql<{ names: number; zones: number }[]>`
        select count(*) filter (where desired = '[]' or previous_records <> '[]' or applied_version < version) as names,
          (select count(*) from dns_zones) as zones
        from dns_names`
      if (left?.zones === 0 || (left?.names === 0 && this.#isDrifting === false)) return
    }
  }

  async #expectQuiescence(): Promise<void> {
    const { sql } = this.#worker.database
    const [present, active, rows, history] = await Promise.all([
      this.#worker.host.records(this.#zone),
      sql<ActiveName[]>`
        select subdomain, host(load_balancer_ip) as address from pool_allocations where state = 'active'`,
      sql<QuiescentName[]>`
        select subdomain, previous_records as previous, applied_version = version as "isApplied", failure from dns_names`,
      sql<RecordHistoryEntry[]>`
        select subdomain, event, from_state as from, detail from allocation_history
        where pool_domain = ${this.#zone} order by id`,
    ])
    this.#faults.push(...findFaults(this.#model, { present, active, rows, history }))
  }
}

/** What happened, in figures. */
export const runInterleaving = async (worker: Worker, seed: number): Promise<TrafficCounts> => {
  const interleaving = new Interleaving(worker, seed)
  try {
    await interleaving.run()
    return interleaving.counts
  } catch (error) {
    if (error instanceof InterleavingFailed) throw error
    throw new InterleavingFailed(seed, [String(error)], interleaving.trace)
  } finally {
    await interleaving.end()
  }
}
