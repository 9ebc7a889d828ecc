import type { NamesQuery } from '@pool/contract'

/** Texts from `from`, inclusive, to `to`, exclusive, in the order of their code points. Null: no end. */
export interface TextRange {
  readonly from: string
  readonly to: string | null
}

/** What a search is about. Each condition that is present must hold. */
export interface NameFilter {
  /** Only these pools. */
  readonly pools: readonly string[]
  /** Whether the query names its pool. */
  readonly hasPool: boolean
  readonly subdomain: TextRange | null
  readonly address: { readonly first: string; readonly last: string } | null
  readonly createdBy: TextRange | null
  readonly state: NamesQuery['state'] | null
  readonly dns: NamesQuery['dns'] | null
}

/**
 * The index that a search reads, in the order of its list. `name` is the primary key. `state` is that of the names that are
 * reserved, cooling off or held, and `unpublished` that of the names with a change that is pending or failing.
 */
export type NameOrder = 'name' | 'state' | 'unpublished' | 'address' | 'creator'

const MAX_CODE_POINT = 0x10_ff_ff
const LAST_BEFORE_SURROGATES = 0xd7_ff
const FIRST_AFTER_SURROGATES = 0xe0_00

/** Every text that begins with `prefix`. */
export const toPrefixRange = (prefix: string): TextRange => {
  const codePoints = Array.from(prefix, character => character.codePointAt(0) ?? 0)
  while (codePoints.at(-1) === MAX_CODE_POINT) codePoints.pop()
  const last = codePoints.pop()
  if (last === undefined) return { from: prefix, to: null }
  const next = last === LAST_BEFORE_SURROGATES ? FIRST_AFTER_SURROGATES : last + 1
  return { from: prefix, to: String.fromCodePoint(...codePoints, next) }
}

const toExactRange = (text: string): TextRange => ({ from: text, to: `${text}\u0001` })

/** `203.0` is 203.0.0.0 to 203.0.255.255. */
const toAddressRange = (text: string): NameFilter['address'] => {
  const numbers = text.replace(/\.$/, '').split('.')
  const fill = (number: string) => [...numbers, ...Array<string>(4 - numbers.length).fill(number)].join('.')
  return { first: fill('0'), last: fill('255') }
}

/** The conditions of a query. Null: no name can meet them. `pools` are those that have names, in their order. */
export const toNameFilter = (
  { q = '', pool, address, createdBy, state, dns }: NamesQuery,
  pools: readonly string[],
): NameFilter | null => {
  if (!/^[a-z0-9.-]*$/.test(q)) return null
  const dot = q.indexOf('.')
  const label = dot < 0 ? q : q.slice(0, dot)
  const poolPrefix = dot < 0 ? '' : q.slice(dot + 1).replace(/\.$/, '')
  const wanted = pools.filter(name => (pool === undefined || name === pool) && name.startsWith(poolPrefix))
  if (wanted.length === 0 || (dot === 0 && label === '')) return null
  // Only an active name has an address, and only its records are published.
  const isActiveOnly = address !== undefined || dns === 'published'
  if (isActiveOnly && state !== undefined && state !== 'active') return null
  return {
    pools: wanted,
    hasPool: pool !== undefined,
    subdomain: label === '' ? null : dot < 0 ? toPrefixRange(label) : toExactRange(label),
    address: address === undefined ? null : toAddressRange(address),
    createdBy: createdBy === undefined || createdBy === '' ? null : toPrefixRange(createdBy),
    state: state ?? null,
    dns: dns ?? null,
  }
}

/** The most selective index for a filter. Held names are the fewest. */
export const chooseNameOrder = ({ subdomain, address, createdBy, state, dns }: NameFilter): NameOrder => {
  if (address) return 'address'
  if (dns === 'pending' || dns === 'failing') return 'unpublished'
  if (state === 'held') return 'state'
  if (createdBy && !subdomain) return 'creator'
  return state === null || state === 'active' ? 'name' : 'state'
}

/** Whether a search reads its index one pool at a time, because only then are its names next to each other in the index. */
export const readsByPool = ({ subdomain, hasPool }: NameFilter, order: NameOrder): boolean =>
  order === 'name' || ((order === 'state' || order === 'unpublished') && (subdomain !== null || hasPool))

/** Where a page begins: after the name with these values of the columns of the order. */
export interface NamePosition {
  readonly order: NameOrder
  readonly keys: readonly string[]
}

const KEY_COUNTS: Readonly<Record<NameOrder, number>> = {
  name: 2,
  state: 2,
  unpublished: 2,
  address: 3,
  creator: 3,
}

/** ASCII, as `encodeCursor` requires. */
export const formatNamePosition = ({ order, keys }: NamePosition): string =>
  [order, ...keys].map(encodeURIComponent).join(':')

const IPV4 = /^(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(?:\.(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)){3}$/

/** Null: not a position of this order, so that the cursor belongs to another search. */
export const parseNamePosition = (text: string, order: NameOrder): NamePosition | null => {
  let parts: readonly string[]
  try {
    parts = text.split(':').map(decodeURIComponent)
  } catch {
    return null
  }
  const [found, ...keys] = parts
  const isValid = keys.every(key => key.isWellFormed() && !key.includes('\0'))
  if (found !== order || keys.length !== KEY_COUNTS[order] || !isValid) return null
  return order === 'address' && !IPV4.test(keys[0] ?? '') ? null : { order, keys }
}
