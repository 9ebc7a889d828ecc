import { isDeepStrictEqual } from 'node:util'
import type { Target } from '@pool/contract'
import { findHistoryErrors, type RecordHistoryEntry } from '@pool/test-kit/history-rules.ts'
import type { Prng } from '@pool/test-kit/prng.ts'
import { isAtOrBelow, type RecordChange, type RecordSet, recordKey } from '../../../src/dns/domain/rrset.ts'
import { createRecords } from '../../../src/dns/domain/target.ts'
import { resolve } from '../../../src/dns/providers/local/domain/resolve.ts'
import type { DeletedRecord } from '../../../src/reconciler/domain/plan.ts'
import { deriveRecords } from '../../../src/records/domain/derive.ts'
import { namesBetween, toParent } from '../../../src/records/domain/names.ts'
import { NO_RECORDS, type StoredRecords } from '../../../src/records/domain/stored.ts'
import { toChangeKey, toOwnerKey } from './faulty-provider.ts'
import type { Edit, ZoneHost } from './hosts.ts'

export const template = { names: ['@', '*'], ttl: 300, challengeTtl: 60 }

/** Only the tenant has records at these names, and the copies of the wildcard that they need. */
const TENANT_NAME = /^(?:[^.]+\.)*(?:t\d|_acme-challenge)\./

/**
 * What the row in `dns_names` of a name says about the records of other writers at and below it. `none`: there is no row;
 * `withdrawn`: the name has no holder, so they are deleted; `unsettled`: so are those of the earlier holder, and the new one
 * is not published yet; `settled`: they stay.
 */
export type RowState = 'none' | 'withdrawn' | 'unsettled' | 'settled'

/**
 * What becomes of the record sets of an external edit. `stays`: nothing but another edit changes them; `doomed`: they are
 * deleted and listed in the history; `repaired`: they are replaced by the desired ones.
 */
export type Fate = 'stays' | 'doomed' | 'repaired'

export const TARGET_FORMS = ['addresses', 'host name', 'name servers'] as const
type TargetForm = (typeof TARGET_FORMS)[number]

/** A name, with the state that the model expects. */
export interface ModelName {
  readonly subdomain: string
  state: 'free' | 'reserved' | 'active'
  token: string
  /** On the clock of the interleaving. */
  reservedAtMs: number
  /** Whether its target can have another form than addresses. Then external edits of its records are drift only. */
  readonly changesForm: boolean
  form: TargetForm
  /** The address of the last commit or update, or what it has in its place. No two have the same. */
  address: string
  /** Its target has an IPv6 address too. No external edit has one at a name of the template. */
  hasIpv6: boolean
  /** Keys for which a write of this address was confirmed. */
  confirmed: Set<string>
  /** An active name was released before: the next commit deletes what is left below it. */
  wasHeld: boolean
  /** The token of its tenant; empty: none was minted. */
  recordToken: string
  /** What its tenant has set. */
  tenant: StoredRecords
}

/** A record set that must be gone at quiescence, and that the history must list for this name. */
interface DoomedRecordSet {
  readonly subdomain: string
  readonly set: RecordSet
}

/** The target of a name, in the form that it has. */
export const toTarget = ({ form, address, hasIpv6 }: Pick<ModelName, 'form' | 'address' | 'hasIpv6'>): Target => {
  const number = address.slice(address.lastIndexOf('.') + 1)
  if (form === 'host name') return { loadBalancerHostname: `lb${number}.example` }
  if (form === 'name servers') return { nameservers: [`ns${number}a.example`, `ns${number}b.example`] }
  return { loadBalancerIP: address, ...(hasIpv6 ? { loadBalancerIPv6: `2001:db8::${number}` } : {}) }
}

/** An address that no commit has. */
const createForeignAddress = (prng: Prng) => `198.51.100.${1 + prng.below(250)}`

const createForeignValue = (type: string, prng: Prng): string => {
  const n = 1 + prng.below(250)
  switch (type) {
    case 'TXT':
      return `"text ${n}"`
    case 'MX':
      return `${n} mail${n}.example.`
    case 'AAAA':
      return `2001:db8::${n}`
    case 'SRV':
      return `${n} 5 5060 sip.example.`
    case 'CNAME':
    case 'NS':
    case 'DNAME':
      return `host${n}.example.`
    case 'DS':
      return `${n} 8 2 ${'12'.repeat(32)}`
    case 'TYPE65280':
      return `\\# 1 ${10 + (n % 90)}`
    default:
      return createForeignAddress(prng)
  }
}

/**
 * A zone, the owner of each of its record sets, and the external edits of it.
 *
 * A key is an owner name and a type. The keys that a commit can write (type A at the names of the template) are managed.
 * All other keys are foreign.
 *
 * A managed key is OWNED from the confirmation of its first write until the release of its name. The API repairs every
 * external change in between. Before, a record set at the key is owned only if it has a value that the API has written. It
 * is FOREIGN if an external edit created it while the key was not owned, and remains so until an external edit removes it.
 * If the first commit of the name needs the key in the meantime, the name is `failing`. A CNAME at a managed owner name is
 * always foreign. The edit that creates it removes the record sets that cannot exist beside a CNAME, owned ones too.
 *
 * A release dooms every foreign record set at and below the name, except those of the other managed zone below it. So does
 * a commit of a name that was held before. A record set that an external edit creates while the name has no holder, or
 * before its new holder is published, is doomed as well. The history lists all doomed record sets.
 *
 * The names of which the target changes its form have no foreign record sets at the names of the template: what blocks one
 * form does not block the others.
 *
 * In the following cases the owner of a key is undecidable, or nothing could protect a record set. They do not occur:
 * - An external edit writes a managed key between the first write of it and the confirmation.
 * - An external edit writes one between the read and the end of a sync: providers have no conditional write. So such an
 *   edit holds the zone lock, as does an edit below a name whose records are being deleted, and a change of a foreign
 *   record set: the history would list the one that was read.
 * - An external edit writes a key while a late write of it has yet to take effect, and could overwrite it.
 * - An external edit gives a key that is not owned an earlier address of its name, which looks like a late write.
 *   Foreign addresses are from another network here.
 * - A read of the port returns the state before an external edit of a managed key, or of a key that already existed. (The
 *   Dynadot provider detects stale reads of the API itself, unless both reads of a write are equally old. That does not
 *   occur either. Nor does a stale read of a drift check after an edit below a withdrawn name: it ends the deletion.)
 * - An external edit changes a zone while a write that replaces the whole zone is in flight or late.
 */
export class ZoneModel {
  readonly zone: string
  readonly names: readonly ModelName[]
  /** Another managed zone, below a name. */
  readonly zoneBelow: string
  /** Foreign record sets that stay, by key. */
  readonly foreign = new Map<string, RecordSet>()
  doomed: DoomedRecordSet[] = []
  /** Every record set that an external edit has created. */
  readonly planted: RecordSet[] = []
  /** The values that tenants had set at the release of their names. No two writes have the same, apart from challenges. */
  readonly formerValues = new Set<string>()
  readonly #toTtl: (ttl: number) => number
  readonly #typesBelow: readonly string[]
  #commits = 0

  constructor(zone: string, { fixedTtl, typesBelow = [] }: Pick<ZoneHost, 'fixedTtl' | 'typesBelow'>) {
    this.zone = zone
    this.zoneBelow = `eu.acme.${zone}`
    this.#toTtl = ttl => fixedTtl ?? ttl
    this.#typesBelow = typesBelow
    this.names = ['acme', 'beta', 'gamma'].map(subdomain => ({
      subdomain,
      state: 'free',
      token: '',
      reservedAtMs: 0,
      address: '',
      changesForm: subdomain === 'gamma',
      form: 'addresses',
      hasIpv6: false,
      confirmed: new Set(),
      wasHeld: false,
      recordToken: '',
      tenant: NO_RECORDS,
    }))
  }

  fqdn = ({ subdomain }: { subdomain: string }): string => `${subdomain}.${this.zone}`

  nextAddress(): string {
    this.#commits += 1
    return `192.0.2.${this.#commits}`
  }

  /** A record set for each managed key of the name. */
  getManagedRecords(name: ModelName): RecordSet[] {
    const forms = name.changesForm ? TARGET_FORMS : (['addresses'] as const)
    return forms
      .flatMap(form =>
        createRecords(this.fqdn(name), toTarget({ form, address: '192.0.2.0', hasIpv6: true }), template),
      )
      .filter(set => !this.findTenant(set.name))
      .map(set => ({ ...set, ttl: this.#toTtl(set.ttl) }))
  }

  /** All that the name must have, as the provider returns it. */
  getAllRecords(name: ModelName): RecordSet[] {
    const records = deriveRecords(this.fqdn(name), toTarget(name), name.tenant, template)
    return records.map(set => ({ ...set, ttl: this.#toTtl(set.ttl) }))
  }

  /** To be called before a release, and before an update to name servers. */
  dropTenant(name: ModelName): void {
    for (const value of name.tenant.sets.flatMap(set => set.values)) this.formerValues.add(value)
    name.tenant = NO_RECORDS
  }

  /** The name whose tenant alone has records at an owner name. */
  findTenant(owner: string): ModelName | undefined {
    return TENANT_NAME.test(owner) ? this.findHolder(owner) : undefined
  }

  /** The name that this key belongs to. */
  findName(key: string): ModelName | undefined {
    return this.names.find(name => this.getManagedRecords(name).some(set => recordKey(set) === key))
  }

  /** The name that an owner name is at or below; undefined: none, or another managed zone below it. */
  findHolder(owner: string): ModelName | undefined {
    if (isAtOrBelow(owner, this.zoneBelow)) return undefined
    return this.names.find(name => isAtOrBelow(owner, this.fqdn(name)))
  }

  /** To be called before a release of an active name, and before a commit. */
  doom(name: ModelName): void {
    for (const [key, set] of this.foreign) {
      if (this.findHolder(set.name) !== name) continue
      this.foreign.delete(key)
      this.doomed.push({ subdomain: name.subdomain, set })
    }
  }

  /** The foreign record sets that block a name. */
  findBlockers(name: ModelName): RecordSet[] {
    const owners = new Set(this.getManagedRecords(name).map(set => set.name))
    return [...this.foreign.values()].filter(
      ({ name: owner, type }) => owners.has(owner) && (type === 'CNAME' || type === 'A'),
    )
  }

  /** Whether the name is active and a foreign record set blocks it. */
  isBlocked(name: ModelName): boolean {
    return name.state === 'active' && this.findBlockers(name).length > 0
  }

  /** Returns the changes of a write that the API must never make. */
  findInvalidChanges(changes: readonly RecordChange[], providerKeepsForeignRecords: boolean): string[] {
    return changes.flatMap(change => {
      const key = toChangeKey(change)
      const isManaged = (this.findName(key) ?? this.findTenant(toOwnerKey(change))) !== undefined
      if (!this.findHolder(toOwnerKey(change))) return [`${change.kind} of ${key}, which belongs to no name`]
      if (change.kind === 'upsert' && !isManaged) return [`upsert of ${key}, which is not managed`]
      const isProtected = this.foreign.has(key) && !(isManaged && providerKeepsForeignRecords)
      return isProtected ? [`${change.kind} of ${key}, which is foreign`] : []
    })
  }

  /** Records a confirmed write, except for the changes at the owner names `unapplied`. */
  recordApplied(changes: readonly RecordChange[], unapplied: ReadonlySet<string>): void {
    for (const change of changes) {
      const name = this.findName(toChangeKey(change))
      // The records of a name are confirmed only all at once.
      if (!name || this.getManagedRecords(name).some(set => unapplied.has(set.name))) continue
      if (change.kind === 'upsert' && change.set.values[0] === name.address) name.confirmed.add(toChangeKey(change))
    }
  }

  /** Creates, changes or removes a foreign record set at a key that is not managed. */
  createUnrelatedEdit(prng: Prng): Edit {
    const unrelated = [...this.foreign.values()].filter(set => !this.findName(recordKey(set)) && set.type !== 'CNAME')
    if (unrelated.length > 0 && prng.chance(0.4)) {
      const set = prng.pick(unrelated)
      return prng.chance(0.5)
        ? { remove: [set], put: [] }
        : {
            remove: [],
            put: [{ ...set, ttl: this.#toTtl(1 + prng.below(999)), values: [createForeignValue(set.type, prng)] }],
          }
    }
    const { subdomain, changesForm } = prng.pick(this.names)
    const fqdn = `${subdomain}.${this.zone}`
    const isAtManagedName = !changesForm && prng.chance(0.6)
    const name = isAtManagedName
      ? prng.pick([fqdn, `*.${fqdn}`])
      : prng.pick([
          ...[this.zone, `www.${this.zone}`, `x${fqdn}`, this.zoneBelow, `ns.${this.zoneBelow}`],
          ...[`deep.${fqdn}`, `_sip._tcp.${fqdn}`, `*.deep.${fqdn}`],
        ])
    const types = name === this.zone ? ['TXT', 'MX', 'AAAA', 'A'] : ['TXT', 'MX', 'SRV', 'AAAA', 'A', 'CNAME']
    const typesAt: Readonly<Record<string, readonly string[]>> = {
      [fqdn]: types.slice(0, 3),
      [`*.${fqdn}`]: types.slice(0, 3),
      // BIND rejects addresses at such a name.
      [`_sip._tcp.${fqdn}`]: ['TXT', 'SRV'],
      [`deep.${fqdn}`]: [...types, ...this.#typesBelow],
      [this.zoneBelow]: [...types, ...this.#typesBelow],
    }
    const type = prng.pick(typesAt[name] ?? types)
    const atSameName = [...this.foreign.values()].filter(set => set.name === name)
    if (atSameName.some(set => set.type === 'CNAME') || (type === 'CNAME' && atSameName.length > 0))
      return { remove: [], put: [] }
    // Nothing can be below a DNAME (RFC 6672 section 2.4); Knot refuses it.
    const isBelowAnother = [...this.foreign.values()].some(
      set =>
        (set.type === 'DNAME' && name.endsWith(`.${set.name}`)) || (type === 'DNAME' && set.name.endsWith(`.${name}`)),
    )
    if (isBelowAnother) return { remove: [], put: [] }
    const values = Array.from(new Set([createForeignValue(type, prng), createForeignValue(type, prng)])).sort()
    const put = {
      name,
      type,
      ttl: this.#toTtl(60 + prng.below(999)),
      values: type === 'CNAME' || type === 'DNAME' ? values.slice(0, 1) : values,
    }
    return { remove: [], put: [put] }
  }

  /** Creates a CNAME at a managed owner name and removes the other record sets there. */
  createCnameEdit(prng: Prng): Edit {
    const { name } = prng.pick(this.getManagedRecords(prng.pick(this.names.filter(({ changesForm }) => !changesForm))))
    const others = [...this.foreign.values()].filter(set => set.name === name && set.type !== 'CNAME')
    return {
      remove: [...others.filter(set => set.type !== 'A'), { name, type: 'A' }],
      put: [{ name, type: 'CNAME', ttl: this.#toTtl(60), values: [createForeignValue('CNAME', prng)] }],
    }
  }

  /** Removes a random record set that blocks a name, or without `prng` all of them. */
  createClearEdit(prng?: Prng): Edit {
    const blockers = this.names.flatMap(name => this.findBlockers(name))
    if (blockers.length === 0) return { remove: [], put: [] }
    return { remove: prng ? [prng.pick(blockers)] : blockers, put: [] }
  }

  /** Creates, changes or removes an address at a managed key. Undefined if its owner would be undecidable. */
  createAddressEdit(prng: Prng, name: ModelName, state: RowState): { edit: Edit; fate: Fate } | undefined {
    const set = prng.pick(this.getManagedRecords(name).filter(({ type }) => type === 'A'))
    const key = recordKey(set)
    const fate =
      state === 'withdrawn' || state === 'unsettled'
        ? 'doomed'
        : state === 'none' || this.foreign.has(key)
          ? 'stays'
          : 'repaired'
    if (fate === 'repaired' ? !name.confirmed.has(key) : name.changesForm) return undefined
    if ([...this.foreign.values()].some(({ name: owner, type }) => owner === set.name && type === 'CNAME'))
      return undefined
    const isRepaired = fate === 'repaired'
    const values = prng.chance(0.3) && isRepaired ? [name.address] : [createForeignAddress(prng)]
    if (prng.chance(0.3) && isRepaired) values.push(createForeignAddress(prng))
    const put = { ...set, ttl: this.#toTtl(60 + prng.below(999)), values: Array.from(new Set(values)).sort() }
    return { fate, edit: prng.chance(0.3) ? { remove: [set], put: [] } : { remove: [], put: [put] } }
  }

  /** Changes or removes a record set of a tenant, or a copy that it needs. Undefined: there is none. */
  createTenantEdit(prng: Prng, name: ModelName): Edit | undefined {
    const sets = this.getAllRecords(name).filter(set => this.findTenant(set.name))
    if (sets.length === 0) return undefined
    const set = prng.pick(sets)
    const put = { ...set, values: [createForeignValue(set.type, prng)] }
    return prng.chance(0.4) ? { remove: [set], put: [] } : { remove: [], put: [put] }
  }

  /** Records an external edit. */
  recordEdit({ remove, put }: Edit, fate: Fate): void {
    const keys = new Set([...remove, ...put].map(recordKey))
    for (const key of keys) this.foreign.delete(key)
    // Whether it had been deleted before the edit is unknown.
    this.doomed = this.doomed.filter(({ set }) => !keys.has(recordKey(set)))
    this.planted.push(...put)
    for (const set of put) {
      const name = this.findHolder(set.name)
      if (fate === 'stays' || !name) this.foreign.set(recordKey(set), set)
      if (fate === 'doomed' && name) this.doomed.push({ subdomain: name.subdomain, set })
    }
  }
}

export interface ActiveName {
  readonly subdomain: string
  readonly target: Target
}

export interface TenantRow {
  readonly subdomain: string
  readonly records: StoredRecords | null
}

/** A row of `dns_names`. */
export interface QuiescentName {
  readonly subdomain: string
  readonly previous: readonly unknown[]
  readonly isApplied: boolean
  readonly failure: string | null
}

interface QuiescentState {
  /** The records at the provider. */
  readonly present: readonly RecordSet[]
  /** The active rows of `pool_allocations`. */
  readonly active: readonly ActiveName[]
  /** The rows of `tenant_records`. */
  readonly tenants: readonly TenantRow[]
  readonly rows: readonly QuiescentName[]
  /** The history of the zone, oldest first. */
  readonly history: readonly QuiescentHistoryEntry[]
}

export interface QuiescentHistoryEntry extends RecordHistoryEntry {
  readonly deleted: readonly DeletedRecord[] | null
}

/** The history lists every doomed record set, and no record set that this service wrote. */
const findListingErrors = (model: ZoneModel, history: readonly QuiescentHistoryEntry[]): string[] => {
  const format = ({ name, type, ttl, data }: DeletedRecord) => formatRecordSet({ name, type, ttl, values: data })
  const listed = history.flatMap(({ subdomain, deleted }) => (deleted ?? []).map(set => `${subdomain}: ${format(set)}`))
  const planted = new Set(model.planted.map(formatRecordSet))
  const missing = model.doomed
    .map(({ subdomain, set }) => `${subdomain}: ${formatRecordSet(set)}`)
    .filter(text => !listed.includes(text))
  const unplanted = listed.filter(text => !planted.has(text.slice(text.indexOf(': ') + 2)))
  return [
    ...missing.map(text => `deleted, but not in the history of ${text}`),
    ...unplanted.map(text => `in the history as deleted, but no other writer's, of ${text}`),
  ]
}

export const formatRecordSet = ({ name, type, ttl, values }: RecordSet): string => `${name} ${ttl} ${type} ${values}`

/** What the values of `A` at `probe` must be, by the rules of DNS and not by those of the product; null: other servers answer. */
const toAnswer = (fqdn: string, name: ModelName, probe: string): readonly string[] | null => {
  const target = toTarget(name)
  if (target.nameservers) return null
  const ofTarget = [target.loadBalancerIP ?? `${target.loadBalancerHostname}.`]
  const { sets, challenges } = name.tenant
  const all = [...sets, ...challenges.map(({ name: owner }) => ({ name: owner, type: 'TXT', values: [] }))]
  const at = (owner: string) => all.filter(set => set.name === owner)
  const pick = (sets: ReturnType<typeof at>) => sets.find(({ type }) => type === 'A' || type === 'CNAME')?.values ?? []
  if (probe === fqdn) return ofTarget
  if (at(probe).length > 0) return pick(at(probe))
  for (const above of [...namesBetween(probe, fqdn).reverse(), fqdn]) {
    if (at(`*.${above}`).length > 0) return pick(at(`*.${above}`))
    // The closest encloser, without a wildcard.
    if (above !== fqdn && at(above).length > 0) return []
  }
  return ofTarget
}

/** What should answer and does not, or with other values. */
const findAnswerErrors = (model: ModelName, fqdn: string, present: readonly RecordSet[]): string[] => {
  const zone = toParent(fqdn)
  const ask = (name: string, type: string) => resolve(zone, { serial: 1, records: present }, { name, type })
  const owners = [...model.tenant.sets, ...model.tenant.challenges].map(set => set.name.replace(/^\*\./, 'q.'))
  const probes = new Set([
    fqdn,
    `q.${fqdn}`,
    ...owners.flatMap(owner => [owner, `q.${owner}`, ...namesBetween(owner, fqdn)]),
  ])
  const wrong = Array.from(probes).flatMap(probe => {
    const { answers, isReferral } = ask(probe, 'A')
    const found = isReferral ? null : (answers[0]?.values ?? [])
    const expected = toAnswer(fqdn, model, probe)
    return isDeepStrictEqual(found, expected) ? [] : [`${probe} should answer ${expected}, and answers ${found}`]
  })
  const isAlias = ask(`_acme-challenge.${fqdn}`, 'TXT').answers.some(({ type }) => type === 'CNAME')
  return isAlias ? [...wrong, `the challenge of ${fqdn} is an alias`] : wrong
}

const toComparable = ({ sets, challenges }: StoredRecords): unknown => [
  sets.map(({ name, type, values }) => `${name} ${type} ${values}`).sort(),
  challenges.map(({ name, value }) => `${name} ${value}`).sort(),
]

/** Returns what differs from the expected state after the last fault, when nothing is due. */
export const findViolations = (
  model: ZoneModel,
  { present, active, tenants, rows, history }: QuiescentState,
): string[] => {
  const violations = findListingErrors(model, history)
  const blocked = new Set(model.names.filter(name => model.isBlocked(name)).map(name => name.subdomain))
  const isBlockedName = (name: { subdomain: string }) => blocked.has(name.subdomain)

  // A blocked name may have records of any earlier version. Foreign records are compared all the same.
  const isIgnored = (set: RecordSet) => {
    const name = model.findName(recordKey(set)) ?? model.findTenant(set.name)
    return name !== undefined && isBlockedName(name) && !model.foreign.has(recordKey(set))
  }
  const expected = [
    ...model.foreign.values(),
    ...model.names
      .filter(name => name.state === 'active' && !isBlockedName(name))
      .flatMap(name => model.getAllRecords(name)),
  ].map(formatRecordSet)
  const found = present.filter(set => !isIgnored(set)).map(formatRecordSet)
  for (const text of expected) if (!found.includes(text)) violations.push(`missing: ${text}`)
  for (const text of found) if (!expected.includes(text)) violations.push(`unexpected: ${text}`)

  for (const set of present.filter(({ values }) => values.some(value => model.formerValues.has(value))))
    violations.push(`record of a former holder: ${formatRecordSet(set)}`)

  const addresses = new Map(active.map(name => [name.subdomain, name.target]))
  for (const name of model.names) {
    const { subdomain, state } = name
    const target = state === 'active' ? toTarget(name) : undefined
    if (!isDeepStrictEqual(addresses.get(subdomain), target))
      violations.push(
        `${subdomain} should be ${state} ${JSON.stringify(target)}; the table has ${JSON.stringify(addresses.get(subdomain))}`,
      )
    const { records } = tenants.find(row => row.subdomain === subdomain) ?? { records: null }
    if (!isDeepStrictEqual(toComparable(records ?? NO_RECORDS), toComparable(name.tenant)))
      violations.push(`record of a tenant touched: ${subdomain} has ${JSON.stringify(records)} in the table`)
    if (state === 'active' && !blocked.has(subdomain))
      violations.push(...findAnswerErrors(name, model.fqdn(name), present))
    if (addresses.has(subdomain) && !rows.some(row => row.subdomain === subdomain))
      violations.push(`${subdomain} is active without desired records`)
    const nameHistory = history.filter(row => row.subdomain === subdomain)
    for (const text of findHistoryErrors(nameHistory, blocked.has(subdomain)))
      violations.push(`history of ${subdomain}: ${text}`)
  }
  for (const row of rows) {
    const { subdomain, isApplied, failure, previous } = row
    if (!addresses.has(subdomain)) violations.push(`${subdomain} was withdrawn, but its row was not deleted`)
    else if (isBlockedName(row) && failure !== 'foreign-record')
      violations.push(`${subdomain} is blocked, but its failure is ${failure}`)
    else if (!isBlockedName(row) && (!isApplied || failure !== null || previous.length > 0))
      violations.push(`${subdomain} is not quiescent: ${JSON.stringify(row)}`)
  }
  return violations
}
