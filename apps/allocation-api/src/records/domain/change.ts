import type { Target } from '@pool/contract'
import { isAtOrBelow, type RecordSet } from '../../dns/domain/rrset.ts'
import { createRecords, type RecordTemplate } from '../../dns/domain/target.ts'
import { deriveRecords } from './derive.ts'
import { explainName, isChallengeName, toDataName, toRecordName } from './names.ts'
import { dropOldChallenges, type StoredRecords, type StoredSet } from './stored.ts'
import type { RecordsOptions, Refusal, RefusalKind, SetChange, TokenScope } from './types.ts'
import { CHALLENGE_VALUE, explainValue, quoteText, toRecordValue, toShownValue, unquoteText } from './values.ts'

const MAX_VALUES = 20
/** Bytes of the names and values of a name. */
const MAX_RECORDS_SIZE = 32_768
const MAX_TTL = 86_400
/** Record sets in the zone for each that is allowed: a deep name needs copies of the wildcard. */
const MAX_DERIVED = 5
/** Types that only the target of a name has at the names of the template. */
const TARGET_TYPES = ['A', 'AAAA', 'CNAME', 'NS']

/** What decides about changes, beside the records that are there. */
export interface ChangeContext {
  readonly fqdn: string
  readonly state: 'reserved' | 'active'
  readonly target: Target
  readonly scope: TokenScope
  readonly owner: string
  /** Unix milliseconds, by the clock of the database. */
  readonly now: number
}

export interface RecordRules extends RecordsOptions {
  readonly template: RecordTemplate
  /** Whether an address in 127/8 can be that of a record. */
  readonly acceptsLoopback: boolean
  /** The pools of the service. The names of one below a name are not the tenant's. */
  readonly pools: readonly string[]
}

export interface ChangeResult {
  readonly records: StoredRecords
  /** In their normal form, in the order in which they were sent. */
  readonly accepted: readonly SetChange[]
  readonly refusals: readonly Refusal[]
}

class RefusedError extends Error {
  readonly kind: RefusalKind
  constructor(kind: RefusalKind, detail: string) {
    super(detail)
    this.kind = kind
  }
}

const refuse = (kind: RefusalKind, detail: string): never => {
  throw new RefusedError(kind, detail)
}

/** The lower of the two. */
export const limitScope = (scope: TokenScope, maxScope: RecordsOptions['maxScope']): TokenScope =>
  maxScope === 'acme' ? 'acme' : scope

/** What is at `name`, as far as it is in the zone. */
const findAt = ({ sets, challenges }: StoredRecords, name: string) => [
  ...sets.filter(set => set.isPublished && set.name === name),
  ...challenges.filter(challenge => challenge.name === name).map(({ owner }) => ({ name, type: 'TXT', owner })),
]

const isBelow = (name: string, above: string): boolean => name !== above && isAtOrBelow(name, above)

/** Changes the records of one name, one change after the other. */
class NameChanges {
  records: StoredRecords
  readonly #context: ChangeContext
  readonly #rules: RecordRules
  readonly #ofTarget: readonly RecordSet[]
  #isDerivedFull = false

  constructor(records: StoredRecords, context: ChangeContext, rules: RecordRules) {
    this.records = records
    this.#context = context
    this.#rules = rules
    this.#ofTarget = createRecords(context.fqdn, context.target, rules.template)
  }

  /** Returns the normal form. Throws a `RefusedError`; then nothing has changed. */
  apply(change: SetChange): SetChange {
    const { fqdn, state, target } = this.#context
    const type = 'type' in change ? change.type.toUpperCase() : 'TXT'
    const isData = change.kind === 'put' ? change.isPublished === false : this.#isOwnData(change, type)
    const name = this.#toName(change.name, isData)
    const isChallenge = type === 'TXT' && !isData && isBelow(name, fqdn) && isChallengeName(name, fqdn)
    this.#checkScope(name, isChallenge, isData)
    if (state !== 'active') refuse('not-active', `${fqdn} is reserved only; commit it first.`)
    if (change.kind === 'delete') return this.#delete(name, type)
    if (change.kind === 'remove-challenge') {
      const { value } = change
      const isOther = (own: { name: string; value: string }) => own.name !== name || own.value !== value
      this.records = { ...this.records, challenges: this.records.challenges.filter(isOther) }
      return { ...change, name }
    }
    if (target.nameservers && !isData)
      refuse('delegated', `${fqdn} is delegated to name servers; set the records there.`)
    if (change.kind === 'add-challenge') {
      if (!isChallenge)
        refuse('outside-scope', `${name} is not the name of a challenge; it begins with _acme-challenge.`)
      this.#addChallenges(name, [change.value])
      return { ...change, name }
    }
    if (isChallenge) {
      const values = change.values.map(unquoteText)
      this.#addChallenges(name, values, { replaces: true })
      return { kind: 'put', name, type, ttl: this.#challengeTtl, values: values.map(quoteText).sort() }
    }
    const set = this.#toSet(name, type, change)
    if (!isData) this.#checkPlace(set)
    const others = this.records.sets.filter(other => !this.#isSameOwn(other, set))
    this.#replace({ ...this.records, sets: [...others, set] }, name)
    const { ttl, values } = set
    const shown = values.map(value => toShownValue(type, value)).sort()
    return { kind: 'put', name, type, ttl, values: shown, ...(isData ? { isPublished: false } : {}) }
  }

  get #challengeTtl(): number {
    return this.#rules.template.challengeTtl ?? this.#rules.template.ttl
  }

  #isSameOwn = (a: { name: string; type: string; owner: string }, b: { name: string; type: string }): boolean =>
    a.owner === this.#context.owner && a.name === b.name && a.type === b.type

  /** Data can have a name that is not below that of the tenant. */
  #isOwnData({ kind, name: text }: SetChange, type: string): boolean {
    const name = toDataName(text)
    const isOwn = (set: StoredSet) => !set.isPublished && this.#isSameOwn(set, { name: name ?? '', type })
    return kind === 'delete' && this.records.sets.some(isOwn)
  }

  #toName(text: string, canBeData: boolean): string {
    const name = toRecordName(text) ?? (canBeData ? toDataName(text) : null)
    return name ?? refuse('invalid-record', explainName(text))
  }

  #checkScope(name: string, isChallenge: boolean, canBeElsewhere: boolean): void {
    const { fqdn, scope } = this.#context
    const isOther =
      !isAtOrBelow(name, fqdn) || this.#rules.pools.some(pool => isBelow(pool, fqdn) && isAtOrBelow(name, pool))
    if (limitScope(scope, this.#rules.maxScope) === 'acme') {
      if (!isChallenge || isOther) {
        refuse('outside-scope', `The token is for TXT records at _acme-challenge names at and below ${fqdn} only.`)
      }
    } else if (isOther && !canBeElsewhere) refuse('outside-scope', `The token is for names at and below ${fqdn} only.`)
  }

  #delete(name: string, type: string): SetChange {
    const { owner } = this.#context
    const isOwn = (own: { name: string; type?: string; owner: string }) =>
      this.#isSameOwn({ type: 'TXT', ...own }, { name, type })
    const foreign = findAt(this.records, name).find(set => set.type === type && set.owner !== owner)
    const { sets, challenges } = this.records
    const hasOwn = sets.some(isOwn) || challenges.some(isOwn)
    if (foreign && !hasOwn)
      refuse('record-conflict', `The ${type} records at ${name} are those of the owner ${foreign.owner}.`)
    this.records = { sets: sets.filter(set => !isOwn(set)), challenges: challenges.filter(value => !isOwn(value)) }
    return { kind: 'delete', name, type }
  }

  #addChallenges(name: string, values: readonly string[], { replaces = false } = {}): void {
    const { owner, now } = this.#context
    if (!values.every(value => CHALLENGE_VALUE.test(value)) || values.length === 0) {
      refuse('invalid-record', 'The value of a challenge must be 43 characters of base64url.')
    }
    const alias = [...this.#ofTarget, ...findAt(this.records, name)].find(
      set => set.name === name && set.type === 'CNAME',
    )
    if (alias) refuse('record-conflict', `${name} has a CNAME; delete it, or set the challenge at its target.`)
    this.#checkCut(name, 'TXT')
    const isReplaced = (own: { name: string; value: string; owner: string }) =>
      own.name === name && (values.includes(own.value) || (replaces && own.owner === owner))
    const added = Array.from(new Set(values), value => ({ name, value, owner, setAt: now }))
    const challenges = [...this.records.challenges.filter(value => !isReplaced(value)), ...added]
    this.#replace(dropOldChallenges({ ...this.records, challenges }, now), name)
  }

  #toSet(name: string, type: string, change: Extract<SetChange, { kind: 'put' }>): StoredSet {
    const { types, minTtlSeconds, template } = this.#rules
    const isPublished = change.isPublished !== false
    const allowed = isPublished ? types : ['TXT']
    if (!allowed.includes(type))
      refuse('type-not-allowed', `Records of type ${type} are not allowed; use one of ${allowed.join(', ')}.`)
    const ttl = change.ttl ?? Math.min(template.ttl, MAX_TTL)
    if (!Number.isInteger(ttl) || ttl < 0 || ttl > MAX_TTL)
      refuse('invalid-record', `The TTL must be from 0 to ${MAX_TTL} seconds.`)
    const values = change.values.map(
      value => toRecordValue(type, value, this.#rules) ?? refuse('invalid-record', explainValue(type, value)),
    )
    const distinct = Array.from(new Set(values)).sort()
    if (distinct.length === 0 || distinct.length > MAX_VALUES) {
      refuse('invalid-record', `A record set must have 1 to ${MAX_VALUES} values.`)
    }
    if (type === 'CNAME' && (distinct.length > 1 || distinct[0] === `${name}.`)) {
      refuse('invalid-record', 'A CNAME must have one value: the name of another host.')
    }
    if (type === 'NS' && (name.startsWith('*') || isChallengeName(name, this.#context.fqdn))) {
      refuse(name.startsWith('*') ? 'invalid-record' : 'delegated', `${name} cannot be delegated.`)
    }
    return { name, type, ttl: Math.max(ttl, minTtlSeconds), values: distinct, owner: this.#context.owner, isPublished }
  }

  /** Whether a set can be at its name beside what is there. */
  #checkPlace({ name, type }: StoredSet): void {
    const { fqdn, owner } = this.#context
    const { names } = this.#rules.template
    const isOfTemplate = names.some(relative => name === (relative === '@' ? fqdn : `${relative}.${fqdn}`))
    if (TARGET_TYPES.includes(type) && (isOfTemplate || (type === 'NS' && name === fqdn))) {
      refuse(
        'template-record',
        `${name} has the records of the name's target; change them with an update of the target.`,
      )
    }
    const present = findAt(this.records, name).filter(set => !this.#isSameOwn(set, { name, type }))
    const foreign = present.find(set => set.type === type && set.owner !== owner)
    if (foreign) refuse('record-conflict', `The ${type} records at ${name} are those of the owner ${foreign.owner}.`)
    const others = [
      ...this.#ofTarget.filter(set => set.name === name && !(type === 'CNAME' && set.type === 'TXT')),
      ...present,
    ]
    const alias = type === 'CNAME' ? others[0] : others.find(set => set.type === 'CNAME')
    if (alias)
      refuse(
        'record-conflict',
        `A CNAME must be the only record at a name, and ${name} has records of type ${alias.type}.`,
      )
    this.#checkCut(name, type)
    const hidden = [...this.#ofTarget, ...this.records.sets.filter(set => set.isPublished), ...this.records.challenges]
    const below =
      type === 'NS'
        ? hidden.find(set => isAtOrBelow(set.name, name) && !('type' in set && set.name === name && set.type === 'NS'))
        : undefined
    if (below)
      refuse('delegated', `A delegation of ${name} would hide the records at ${below.name}; delete these first.`)
  }

  /** Whether another server answers for the name. */
  #checkCut(name: string, type: string): void {
    const cut = this.records.sets.find(
      set => set.type === 'NS' && set.isPublished && (isBelow(name, set.name) || (name === set.name && type !== 'NS')),
    )
    if (cut) refuse('delegated', `${cut.name} is delegated to name servers; set the records there.`)
  }

  #replace(records: StoredRecords, name: string): void {
    const { fqdn, target } = this.#context
    const { limit, template } = this.#rules
    const names = new Set(records.challenges.map(challenge => challenge.name))
    if (records.sets.length + names.size > limit) {
      refuse('too-many-records', `A name can have ${limit} record sets; delete others first.`)
    }
    const texts = [
      ...records.sets.flatMap(set => [set.name, ...set.values]),
      ...records.challenges.flatMap(({ name: own, value }) => [own, value]),
    ]
    if (texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0) > MAX_RECORDS_SIZE) {
      refuse('too-many-records', `The records of a name can have ${MAX_RECORDS_SIZE} bytes; delete others first.`)
    }
    // Only a name more than one label below can need copies.
    if (name.split('.').length > fqdn.split('.').length + 1) {
      this.#isDerivedFull ||=
        deriveRecords(fqdn, target, records, template).length > this.#ofTarget.length + MAX_DERIVED * limit
      if (this.#isDerivedFull)
        refuse(
          'too-many-records',
          'The names are too deep: each level needs copies of the wildcard. Use names with fewer labels.',
        )
    }
    this.records = records
  }
}

const isRemoval = ({ kind }: SetChange): boolean => kind === 'delete' || kind === 'remove-challenge'

/** Applies what the rules allow: removals first, so that a record can take the place of another one of the same request. */
export const changeRecords = (
  records: StoredRecords,
  changes: readonly SetChange[],
  context: ChangeContext,
  rules: RecordRules,
): ChangeResult => {
  const name = new NameChanges(dropOldChallenges(records, context.now), context, rules)
  const results = new Map<SetChange, SetChange | Refusal>()
  for (const change of changes.toSorted((a, b) => Number(isRemoval(b)) - Number(isRemoval(a)))) {
    try {
      results.set(change, name.apply(change))
    } catch (error) {
      if (!(error instanceof RefusedError)) throw error
      results.set(change, { kind: error.kind, detail: error.message, change })
    }
  }
  const inOrder = changes.flatMap(change => results.get(change) ?? [])
  return {
    records: name.records,
    accepted: inOrder.filter((result): result is SetChange => !('detail' in result)),
    refusals: inOrder.filter((result): result is Refusal => 'detail' in result),
  }
}

/** Why the records of a tenant cannot be beside those of `target`; null: they can. Form 3 removes them. */
export const findTargetConflict = (
  fqdn: string,
  target: Target,
  records: StoredRecords,
  template: RecordTemplate,
): string | null => {
  if (target.loadBalancerHostname === undefined) return null
  const aliases = createRecords(fqdn, target, template).filter(({ type }) => type === 'CNAME')
  const found = aliases.find(({ name }) => findAt(records, name).length > 0)
  return found
    ? `${found.name} has records of its tenant, and a CNAME must be the only record there; delete them first.`
    : null
}
