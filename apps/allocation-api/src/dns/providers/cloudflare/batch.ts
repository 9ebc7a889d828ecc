import type { JsonObject } from '../../../lib/json.ts'
import { isAtOrBelow, type RecordChange, toOwnerName } from '../../domain/rrset.ts'
import { toContent, toPresentation } from './rdata.ts'
import type { CloudflareRecord } from './record.ts'

export interface Operations {
  readonly deletes: readonly JsonObject[]
  /** And not puts, which would take away the comment and tags somebody gave a record. */
  readonly patches: readonly JsonObject[]
  readonly posts: readonly JsonObject[]
}

/** What makes of the records of one name what `change` asks: right ones stay, wrong ones are changed, the rest go. */
export const toOperations = (present: readonly CloudflareRecord[], change: RecordChange): Operations => {
  const { name, type } = change.kind === 'upsert' ? change.set : change
  const there = present.filter(record => record.name === name && record.type === type)
  if (change.kind === 'delete') return { deletes: there.map(({ id }) => ({ id })), patches: [], posts: [] }

  const { ttl, values } = change.set
  const contents = new Map(values.map(value => [toPresentation({ type, ...toContent(type, value) }), value]))
  const kept = new Map<string, CloudflareRecord>()
  for (const record of there) if (contents.has(record.value) && !kept.has(record.value)) kept.set(record.value, record)
  const spare = there.filter(record => kept.get(record.value) !== record)
  const patches: JsonObject[] = []
  const posts: JsonObject[] = []
  for (const [presentation, value] of contents) {
    const fields = { name, type, ttl, proxied: false, ...toContent(type, value) }
    const record = kept.get(presentation) ?? spare.shift()
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

/** Why Cloudflare cannot hold what `change` asks for; undefined: nothing is known against it. */
export const validateCloudflareChange = (zone: string, change: RecordChange): string | undefined => {
  if (!isAtOrBelow(toOwnerName(change), zone)) return 'the name is not in the zone'
  if (change.kind === 'delete') return undefined
  const { type, ttl, values } = change.set
  // 30 for Enterprise zones and 60 for the others, which Cloudflare judges; 1 would be «automatic».
  if (!Number.isInteger(ttl) || ttl < 30 || ttl > 86_400) return 'Cloudflare takes a TTL from 60 to 86400 seconds'
  if (values.length === 0) return 'there is no value'
  if (type === 'CNAME' && values.length > 1) return 'a name has one CNAME at most'
  if (values.some(value => toContent(type, value) === undefined)) return `there is a value that is no ${type} record`
  return undefined
}

/**
 * That A and AAAA records do not stand beside a CNAME is in the API's documentation. Seen here, it costs no search for
 * the culprit of a rejected batch. About other types Cloudflare judges: its zone apex has a CNAME beside MX and TXT.
 */
const crowdOf = (present: readonly CloudflareRecord[], changes: readonly RecordChange[]): string | undefined => {
  const types = new Set(present.map(record => record.type))
  for (const change of changes) {
    if (change.kind === 'delete') types.delete(change.type)
    else types.add(change.set.type)
  }
  const isCrowd = types.has('CNAME') && (types.has('A') || types.has('AAAA'))
  return isCrowd ? 'a CNAME and an address cannot be at one name' : undefined
}

/** What is to be sent for one name whose records are `present`, or why nothing can be. */
export const planBatch = (
  present: readonly CloudflareRecord[],
  changes: readonly RecordChange[],
  batchLimit: number,
): Operations | { readonly fault: string } => {
  const operations = mergeOperations(changes.map(change => toOperations(present, change)))
  const isLarge = countOperations(operations) > batchLimit
  const fault = isLarge
    ? `it has more than ${batchLimit} records to change, a batch's limit`
    : crowdOf(present, changes)
  return fault === undefined ? operations : { fault }
}
