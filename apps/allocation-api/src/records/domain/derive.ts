import type { Target } from '@pool/contract'
import { type RecordSet, sameValues } from '../../dns/domain/rrset.ts'
import { ACME_NAME, createRecords, NO_TEXT, type RecordTemplate } from '../../dns/domain/target.ts'
import { MAX_NAME_LENGTH, namesBetween, toParent } from './names.ts'
import type { StoredRecords } from './stored.ts'
import { quoteText } from './values.ts'

/** Record sets by name. What is added first has the name: a later set that cannot be beside it is left out. */
class Owners {
  readonly #sets = new Map<string, RecordSet[]>()

  at = (name: string): readonly RecordSet[] => this.#sets.get(name) ?? []

  add(set: RecordSet): void {
    const present = this.at(set.name)
    const excludes = ({ type }: RecordSet) => type === set.type || type === 'CNAME' || set.type === 'CNAME'
    if (set.name.length <= MAX_NAME_LENGTH && !present.some(excludes)) this.#sets.set(set.name, [...present, set])
  }

  /** An ACME client follows an alias at the name of a challenge, and the wildcard would be one: an empty record hides it. */
  hideWildcard(wildcard: string, ttl: number): void {
    const name = `${ACME_NAME}.${toParent(wildcard)}`
    const text = this.at(name).find(({ type }) => type === 'TXT')
    if (text) {
      const values = Array.from(new Set([NO_TEXT, ...text.values])).sort()
      this.#sets.set(
        name,
        this.at(name).map(set => (set === text ? { ...text, values } : set)),
      )
    } else this.add({ name, type: 'TXT', ttl, values: [NO_TEXT] })
  }

  list = (): RecordSet[] => [...this.#sets.values()].flat()
  names = (): string[] => [...this.#sets.keys()]
}

const isAlias = ({ type }: RecordSet): boolean => type === 'CNAME'

/**
 * The record sets that an active name must have: those of its target, and those that tenants have set.
 *
 * A record below a name without records takes that name, and all names below it, out of the wildcard above (RFC 4592 section
 * 2.2.2). So the wildcard's sets are at the name and at its wildcard too, as long as the record is there.
 */
export const deriveRecords = (
  fqdn: string,
  target: Target,
  { sets, challenges }: StoredRecords,
  template: RecordTemplate,
): RecordSet[] => {
  const ofTarget = createRecords(fqdn, target, template)
  if (target.nameservers || sets.length + challenges.length === 0) return ofTarget
  const { ttl, challengeTtl = ttl } = template
  const owners = new Owners()
  const isHiding = (set: RecordSet) => set.type === 'TXT' && set.name === `${ACME_NAME}.${fqdn}`
  for (const set of ofTarget) if (!isHiding(set)) owners.add(set)
  const ofTenant = [
    ...sets.filter(set => set.isPublished).map(({ name, type, ttl, values }) => ({ name, type, ttl, values })),
    ...Array.from(
      Map.groupBy(challenges, ({ name }) => name),
      ([name, own]) => {
        const values = Array.from(new Set(own.map(({ value }) => quoteText(value)))).sort()
        return { name, type: 'TXT', ttl: challengeTtl, values }
      },
    ),
  ]
  for (const set of ofTenant) owners.add(set)
  const isAliased = (name: string) => owners.at(`*.${name}`).some(isAlias)
  if (ofTarget.some(isHiding)) owners.hideWildcard(`*.${fqdn}`, challengeTtl)
  for (const name of owners.names()) {
    if (name.startsWith('*.') && isAliased(toParent(name))) owners.hideWildcard(name, challengeTtl)
  }
  // From the top: the copies at a name are the wildcard of the names below it.
  const between = new Set(ofTenant.flatMap(({ name }) => namesBetween(name, fqdn)))
  for (const name of Array.from(between).sort((a, b) => a.split('.').length - b.split('.').length)) {
    if (owners.at(name).length > 0) continue
    const wildcard = owners.at(`*.${toParent(name)}`)
    const hasOwnWildcard = owners.at(`*.${name}`).length > 0
    for (const set of wildcard) {
      owners.add({ ...set, name })
      if (!hasOwnWildcard) owners.add({ ...set, name: `*.${name}` })
    }
    if (isAliased(name)) owners.hideWildcard(`*.${name}`, challengeTtl)
  }
  return owners.list()
}

/** Whether two lists have the same record sets in the same order, as `deriveRecords` returns them. */
export const sameRecords = (a: readonly RecordSet[], b: readonly RecordSet[]): boolean =>
  a.length === b.length &&
  a.every((set, i) => {
    const other = b[i]
    return (
      other !== undefined &&
      set.name === other.name &&
      set.type === other.type &&
      set.ttl === other.ttl &&
      sameValues(set, other)
    )
  })
