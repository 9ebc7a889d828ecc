import type { Prng } from '@pool/test-kit/prng.ts'
import { createRecords, type RecordChange, type RecordSet, recordKey } from '../../../src/dns/domain/rrset.ts'
import { toChangeKey } from './faulty-provider.ts'
import type { Edit } from './zone-host.ts'

export const template = { names: ['@', '*'], ttl: 300 }

/** The state of a row of `dns_names`, read while no sync is in flight. */
export interface RowState {
  /** No records were ever written, or their withdrawal was confirmed. A late write may have restored some since. */
  readonly isClean: boolean
}

/** A name, with the state that the model expects. */
export interface ModelName {
  readonly subdomain: string
  state: 'free' | 'reserved' | 'active'
  token: string
  /** On the clock of the interleaving. */
  reservedAtMs: number
  /** The address of the last commit. No two commits have the same. */
  address: string
  /** Keys for which a write of this address was confirmed. */
  confirmed: Set<string>
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
      return `host${n}.example.`
    default:
      return createForeignAddress(prng)
  }
}

/**
 * A zone, the owner of each of its record sets, and the external edits of it.
 *
 * A key is an owner name and a type. The keys that a commit can write (type A at the names of the template) are managed.
 * All other keys are foreign, and the API writes none of them.
 *
 * A managed key is OWNED from the confirmation of its first write until the confirmation of the withdrawal of its name.
 * The API repairs every external change in between, or deletes it with the name. Before and after, a record set at the
 * key is owned only if it has a value that the API has written. It is FOREIGN if an external edit created it while the
 * key was not owned, and remains so until an external edit removes it. If a commit needs the key in the meantime, the
 * name is `failing`. A CNAME at a managed owner name is always foreign. The edit that creates it removes the record sets
 * that cannot exist beside a CNAME, owned ones too.
 *
 * In the following cases the owner of a key is undecidable, or nothing could protect a record set. They do not occur:
 * - An external edit writes a managed key between the first write of it and the confirmation.
 * - An external edit writes one between the read and the end of a sync: providers have no conditional write. So such an
 *   edit holds the zone lock.
 * - An external edit writes one while a late write of it has yet to take effect, and could overwrite it.
 * - An external edit gives a key that is not owned an earlier address of its name, which looks like a late write.
 *   Foreign addresses are from another network here.
 * - A read of the port returns the state before an external edit of a managed key. (The Dynadot provider detects stale
 *   reads of the API itself, unless both reads of a write are equally old. That does not occur either.)
 * - An external edit changes a zone while a write that replaces the whole zone is in flight or late.
 */
export class ZoneModel {
  readonly zone: string
  readonly names: readonly ModelName[]
  /** Foreign record sets by key. */
  readonly foreign = new Map<string, RecordSet>()
  readonly #toTtl: (ttl: number) => number
  #commits = 0

  constructor(zone: string, fixedTtl: number | undefined) {
    this.zone = zone
    this.#toTtl = ttl => fixedTtl ?? ttl
    this.names = ['acme', 'beta', 'gamma'].map(subdomain => ({
      subdomain,
      state: 'free',
      token: '',
      reservedAtMs: 0,
      address: '',
      confirmed: new Set(),
    }))
  }

  fqdn = ({ subdomain }: { subdomain: string }): string => `${subdomain}.${this.zone}`

  nextAddress(): string {
    this.#commits += 1
    return `192.0.2.${this.#commits}`
  }

  getManagedRecords(name: { subdomain: string }): RecordSet[] {
    return this.getRecords(name.subdomain, '192.0.2.0')
  }

  /** The record sets of the name, as the provider returns them. */
  getRecords(subdomain: string, address: string): RecordSet[] {
    return createRecords(this.fqdn({ subdomain }), address, { ...template, ttl: this.#toTtl(template.ttl) })
  }

  /** The name that this key belongs to. */
  findName(key: string): ModelName | undefined {
    return this.names.find(name => this.getManagedRecords(name).some(set => recordKey(set) === key))
  }

  /** The foreign record sets that block a name. */
  findBlockers(name: { subdomain: string }): RecordSet[] {
    return this.getManagedRecords(name).flatMap(set =>
      [...this.foreign.values()].filter(
        ({ name: owner, type }) => owner === set.name && (type === 'CNAME' || type === 'A'),
      ),
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
      const name = this.findName(key)
      if (!name) return [`${change.kind} of ${key}, which belongs to no name`]
      return this.foreign.has(key) && !providerKeepsForeignRecords ? [`${change.kind} of ${key}, which is foreign`] : []
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
    const { subdomain } = prng.pick(this.names)
    const fqdn = `${subdomain}.${this.zone}`
    const isAtManagedName = prng.chance(0.6)
    const name = isAtManagedName
      ? prng.pick([fqdn, `*.${fqdn}`])
      : prng.pick([this.zone, `www.${this.zone}`, `x${fqdn}`, `deep.${fqdn}`, `_sip._tcp.${fqdn}`])
    const types = name === this.zone ? ['TXT', 'MX', 'AAAA', 'A'] : ['TXT', 'MX', 'AAAA', 'SRV', 'A', 'CNAME']
    const type = prng.pick(isAtManagedName ? types.slice(0, 4) : types)
    const atSameName = [...this.foreign.values()].filter(set => set.name === name)
    if (atSameName.some(set => set.type === 'CNAME') || (type === 'CNAME' && atSameName.length > 0))
      return { remove: [], put: [] }
    const values = Array.from(new Set([createForeignValue(type, prng), createForeignValue(type, prng)])).sort()
    const put = {
      name,
      type,
      ttl: this.#toTtl(60 + prng.below(999)),
      values: type === 'CNAME' ? values.slice(0, 1) : values,
    }
    return { remove: [], put: [put] }
  }

  /** Creates a CNAME at a managed owner name and removes the other record sets there. */
  createCnameEdit(prng: Prng): Edit {
    const { name } = prng.pick(this.getManagedRecords(prng.pick(this.names)))
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
  createAddressEdit(
    prng: Prng,
    name: ModelName,
    { isClean }: RowState,
  ): { edit: Edit; isForeign: boolean } | undefined {
    const set = prng.pick(this.getManagedRecords(name))
    const key = recordKey(set)
    const isForeign = isClean || this.foreign.has(key)
    if (!isForeign && !name.confirmed.has(key)) return undefined
    if ([...this.foreign.values()].some(({ name: owner, type }) => owner === set.name && type === 'CNAME'))
      return undefined
    const values = prng.chance(0.3) && !isForeign ? [name.address] : [createForeignAddress(prng)]
    if (prng.chance(0.3) && !isForeign) values.push(createForeignAddress(prng))
    const put = { ...set, ttl: this.#toTtl(60 + prng.below(999)), values: Array.from(new Set(values)).sort() }
    return { isForeign, edit: prng.chance(0.3) ? { remove: [set], put: [] } : { remove: [], put: [put] } }
  }

  /** Records an external edit. `isForeign`: its record sets at managed keys are foreign too. */
  recordEdit({ remove, put }: Edit, isForeign: boolean): void {
    for (const key of remove) this.foreign.delete(recordKey(key))
    for (const set of put) if (isForeign || !this.findName(recordKey(set))) this.foreign.set(recordKey(set), set)
  }
}
