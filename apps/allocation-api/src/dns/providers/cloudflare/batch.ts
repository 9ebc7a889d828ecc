import type { JsonObject } from '../../../lib/text.ts'
import { isAtOrBelow, type RecordChange, toOwnerName } from '../../domain/rrset.ts'
import { type CloudflareRecord, toContent, toPresentation } from './record.ts'

export interface Operations {
  readonly deletes: readonly JsonObject[]
  /** Not puts: a put would remove a record's comment and tags. */
  readonly patches: readonly JsonObject[]
  readonly posts: readonly JsonObject[]
}

/** Operations that apply `change` to the records of its name: keep matching records, patch others, delete surplus ones. */
export const toOperations = (present: readonly CloudflareRecord[], change: RecordChange): Operations => {
  const { name, type } = change.kind === 'upsert' ? change.set : change
  const there = present.filter(record => record.name === name && record.type === type)
  if (change.kind === 'delete') return { deletes: there.map(({ id }) => ({ id })), patches: [], posts: [] }

  const { ttl, values } = change.set
  const contents = new Map(values.map(value => [toPresentation({ type, ...toContent(type, value) }), value]))
  const matching = new Map<string, CloudflareRecord>()
  for (const record of there)
    if (contents.has(record.value) && !matching.has(record.value)) matching.set(record.value, record)
  const spare = there.filter(record => matching.get(record.value) !== record)
  const patches: JsonObject[] = []
  const posts: JsonObject[] = []
  for (const [presentation, value] of contents) {
    const fields = { name, type, ttl, proxied: false, ...toContent(type, value) }
    const record = matching.get(presentation) ?? spare.shift()
    if (!record) posts.push(fields)
    else if (record.value !== presentation || record.ttl !== ttl || record.isProxied)
      patches.push({ id: record.id, ...fields })
  }
  return { deletes: spare.map(({ id }) => ({ id })), patches, posts }
}

export const mergeOperations = (operations: readonly Operations[]): Operations => ({
  deletes: operations.flatMap(({ deletes }) => deletes),
  patches: operations.flatMap(({ patches }) => patches),
  posts: operations.flatMap(({ posts }) => posts),
})

export const countOperations = ({ deletes, patches, posts }: Operations): number =>
  deletes.length + patches.length + posts.length

/** Why Cloudflare cannot store the records of `change`; undefined: no reason is known. */
export const validateCloudflareChange = (zone: string, change: RecordChange): string | undefined => {
  if (!isAtOrBelow(toOwnerName(change), zone)) return 'the name is not in the zone'
  if (change.kind === 'delete') return undefined
  const { type, ttl, values } = change.set
  // At least 30 for Enterprise zones and 60 for others: Cloudflare checks which. 1 would mean "automatic".
  if (!Number.isInteger(ttl) || ttl < 30 || ttl > 86_400) return 'Cloudflare requires a TTL of 60 to 86400 seconds'
  if (values.length === 0) return 'there is no value'
  if (type === 'CNAME' && values.length > 1) return 'a name can have only one CNAME record'
  if (values.some(value => toContent(type, value) === undefined)) return `a value is not a valid ${type} record`
  return undefined
}

/**
 * The API's documentation excludes A and AAAA records beside a CNAME. This check avoids a bisection of the rejected
 * batch. Cloudflare itself checks other types: it allows a CNAME beside MX and TXT records at the zone apex.
 */
const findCnameConflict = (
  present: readonly CloudflareRecord[],
  changes: readonly RecordChange[],
): string | undefined => {
  const types = new Set(present.map(record => record.type))
  for (const change of changes) {
    if (change.kind === 'delete') types.delete(change.type)
    else types.add(change.set.type)
  }
  const hasConflict = types.has('CNAME') && (types.has('A') || types.has('AAAA'))
  return hasConflict ? 'a name cannot have both a CNAME and an address record' : undefined
}

/**
 * The operations for one name whose records are `present`, or why the changes cannot be sent. Only the deletions can be too
 * many for one batch.
 */
export const planBatch = (
  present: readonly CloudflareRecord[],
  changes: readonly RecordChange[],
  batchLimit: number,
): Operations | { readonly fault: string } => {
  const operations = mergeOperations(changes.map(change => toOperations(present, change)))
  const isLarge = countOperations({ ...operations, deletes: [] }) > batchLimit
  const fault = isLarge
    ? `the name has more than ${batchLimit} records to change, the limit of a batch`
    : findCnameConflict(present, changes)
  return fault === undefined ? operations : { fault }
}
