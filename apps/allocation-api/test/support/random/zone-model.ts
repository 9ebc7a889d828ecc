import type { Prng } from '@pool/test-kit/prng.ts'
import { createRecords, type RecordChange, type RecordSet, recordKey } from '../../../src/dns/domain/rrset.ts'
import { toChangeKey } from './faulty-provider.ts'
import type { Edit } from './zone-host.ts'

export const template = { names: ['@', '*'], ttl: 300 }

/** What a name's row in `dns_names` says of it, looked at while no pass is under way. */
export interface RowFacts {
  /** The records were withdrawn and that was confirmed, though some may have turned up again; or there never were any. */
  readonly isClean: boolean
}

/** A name, and the life that it leads at the moment. */
export interface NameLife {
  readonly subdomain: string
  state: 'free' | 'reserved' | 'active'
  token: string
  /** By the interleaving's own clock. */
  reservedAtMs: number
  /** Of the last commit: no two have the same. */
  address: string
  /** Keys that are known to have had this address. */
  confirmed: Set<string>
}

/** Record sets of the same kind as `ours`, none of which we would ever write. */
const foreignAddress = (dice: Prng) => `198.51.100.${1 + dice.below(250)}`

const someValue = (type: string, dice: Prng): string => {
  const n = 1 + dice.below(250)
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
      return foreignAddress(dice)
  }
}

/**
 * A zone, who owns what in it, and what other people do there.
 *
 * A key is an owner name and a type. The keys that a commit may ever want (type A at the names of the template) are
 * `wanted`; all others are other people's for good, and no order of ours names one.
 *
 * A wanted key is OURS from the moment in which a write of it is confirmed until the withdrawal of its name is:
 * whatever somebody makes of it in between is repaired, or removed with the name. Before and after that a record set at
 * the key is ours when it has a value that we have ordered, and no other. It is THEIRS when somebody puts one there
 * while the key is not ours, and stays so until they remove it, though we may want it meanwhile: the name is then
 * `failing`. A CNAME at a wanted owner name is theirs at any time; whoever puts it there takes away what it cannot
 * stand beside, ours too.
 *
 * In these cases nobody can tell whose a key is, or nothing could keep a record set from harm. They do not come up here:
 * - Somebody puts a record set at a wanted key between the first order for it and the confirmation.
 * - Somebody puts one there while a pass is between its read and its last word: a provider cannot be asked to write only
 *   if nothing has changed. So they do it under the zone's claim.
 * - Somebody puts one there while an order for it is still to take effect, late: it can fall victim to it.
 * - Somebody gives a key that is not ours an address that its name has had: that is what an order looks like which takes
 *   effect late. Other people's addresses are their own here.
 * - A read at the port shows the state before somebody's put at a wanted key. (Dynadot's own stale reads are seen
 *   through below the port, unless both reads of a write are equally old; that does not come up either.)
 * - Somebody changes a zone whose provider replaces all of it while such a replacement is under way or still to come.
 */
export class ZoneModel {
  readonly zone: string
  readonly names: readonly NameLife[]
  /** Theirs, by key. */
  readonly foreign = new Map<string, RecordSet>()
  readonly #ttl: (wanted: number) => number
  #commits = 0

  constructor(zone: string, onlyTtl: number | undefined) {
    this.zone = zone
    this.#ttl = wanted => onlyTtl ?? wanted
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

  wantedOf(name: { subdomain: string }): RecordSet[] {
    return this.recordsOf(name.subdomain, '192.0.2.0')
  }

  /** As they stand at the provider. */
  recordsOf(subdomain: string, address: string): RecordSet[] {
    return createRecords(this.fqdn({ subdomain }), address, { ...template, ttl: this.#ttl(template.ttl) })
  }

  /** The name that wants this key. */
  nameOf(key: string): NameLife | undefined {
    return this.names.find(name => this.wantedOf(name).some(set => recordKey(set) === key))
  }

  /** Somebody's records that stand in the way of a name. */
  obstaclesOf(name: { subdomain: string }): RecordSet[] {
    return this.wantedOf(name).flatMap(set =>
      [...this.foreign.values()].filter(
        ({ name: owner, type }) => owner === set.name && (type === 'CNAME' || type === 'A'),
      ),
    )
  }

  /** It is wanted, and somebody stands in its way. */
  isObstructed(name: NameLife): boolean {
    return name.state === 'active' && this.obstaclesOf(name).length > 0
  }

  /** What is wrong with an order that goes out. */
  order(changes: readonly RecordChange[], mayBeSeenThrough: boolean): string[] {
    return changes.flatMap(change => {
      const key = toChangeKey(change)
      const name = this.nameOf(key)
      if (!name) return [`${change.kind} of ${key}, which no name wants`]
      return this.foreign.has(key) && !mayBeSeenThrough ? [`${change.kind} of ${key}, which is somebody else's`] : []
    })
  }

  /** Takes note of what our provider is known to have done. */
  done(changes: readonly RecordChange[], undone: ReadonlySet<string>): void {
    for (const change of changes) {
      const name = this.nameOf(toChangeKey(change))
      // All records of a name are confirmed together.
      if (!name || this.wantedOf(name).some(set => undone.has(set.name))) continue
      if (change.kind === 'upsert' && change.set.values[0] === name.address) name.confirmed.add(toChangeKey(change))
    }
  }

  /** Somebody puts a record set beside ours, or in other places, or changes or removes such a one. */
  bystanderEdit(dice: Prng): Edit {
    const bystanders = [...this.foreign.values()].filter(set => !this.nameOf(recordKey(set)) && set.type !== 'CNAME')
    if (bystanders.length > 0 && dice.chance(0.4)) {
      const set = dice.pick(bystanders)
      return dice.chance(0.5)
        ? { remove: [set], put: [] }
        : { remove: [], put: [{ ...set, ttl: this.#ttl(1 + dice.below(999)), values: [someValue(set.type, dice)] }] }
    }
    const { subdomain } = dice.pick(this.names)
    const ours = `${subdomain}.${this.zone}`
    const beside = dice.chance(0.6)
    const name = beside
      ? dice.pick([ours, `*.${ours}`])
      : dice.pick([this.zone, `www.${this.zone}`, `x${ours}`, `deep.${ours}`, `_sip._tcp.${ours}`])
    const types = name === this.zone ? ['TXT', 'MX', 'AAAA', 'A'] : ['TXT', 'MX', 'AAAA', 'SRV', 'A', 'CNAME']
    const type = dice.pick(beside ? types.slice(0, 4) : types)
    const there = [...this.foreign.values()].filter(set => set.name === name)
    if (there.some(set => set.type === 'CNAME') || (type === 'CNAME' && there.length > 0))
      return { remove: [], put: [] }
    const values = Array.from(new Set([someValue(type, dice), someValue(type, dice)])).sort()
    const put = {
      name,
      type,
      ttl: this.#ttl(60 + dice.below(999)),
      values: type === 'CNAME' ? values.slice(0, 1) : values,
    }
    return { remove: [], put: [put] }
  }

  /** Somebody needs a name for a CNAME, and clears it. */
  cnameEdit(dice: Prng): Edit {
    const { name } = dice.pick(this.wantedOf(dice.pick(this.names)))
    const others = [...this.foreign.values()].filter(set => set.name === name && set.type !== 'CNAME')
    return {
      remove: [...others.filter(set => set.type !== 'A'), { name, type: 'A' }],
      put: [{ name, type: 'CNAME', ttl: this.#ttl(60), values: [someValue('CNAME', dice)] }],
    }
  }

  /** Somebody removes what stands in a name's way; of all names where `dice` is left out. */
  clearEdit(dice?: Prng): Edit {
    const obstacles = this.names.flatMap(name => this.obstaclesOf(name))
    if (obstacles.length === 0) return { remove: [], put: [] }
    return { remove: dice ? [dice.pick(obstacles)] : obstacles, put: [] }
  }

  /** Somebody puts, changes or removes an address at a wanted key; whose it is then, unless nobody can tell. */
  addressEdit(dice: Prng, name: NameLife, { isClean }: RowFacts): { edit: Edit; isTheirs: boolean } | undefined {
    const set = dice.pick(this.wantedOf(name))
    const key = recordKey(set)
    const isTheirs = isClean || this.foreign.has(key)
    if (!isTheirs && !name.confirmed.has(key)) return undefined
    if ([...this.foreign.values()].some(({ name: owner, type }) => owner === set.name && type === 'CNAME'))
      return undefined
    const values = dice.chance(0.3) && !isTheirs ? [name.address] : [foreignAddress(dice)]
    if (dice.chance(0.3) && !isTheirs) values.push(foreignAddress(dice))
    const put = { ...set, ttl: this.#ttl(60 + dice.below(999)), values: Array.from(new Set(values)).sort() }
    return { isTheirs, edit: dice.chance(0.3) ? { remove: [set], put: [] } : { remove: [], put: [put] } }
  }

  /** Takes note of what somebody has done. `isTheirs`: at wanted keys too. */
  edited({ remove, put }: Edit, isTheirs: boolean): void {
    for (const key of remove) this.foreign.delete(recordKey(key))
    for (const set of put) if (isTheirs || !this.nameOf(recordKey(set))) this.foreign.set(recordKey(set), set)
  }
}
