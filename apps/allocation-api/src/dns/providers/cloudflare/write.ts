import { chunkBySize } from '../../../lib/chunk.ts'
import type { JsonObject } from '../../../lib/text.ts'
import { type BatchResult, bisect } from '../../bisect.ts'
import { type ApplyResult, toZoneRefusal, type Unavailable } from '../../domain/result.ts'
import {
  createNameFilter,
  isAtOrBelow,
  type OwnerChanges,
  type RecordChange,
  toApplyResult,
  toOwnerName,
} from '../../domain/rrset.ts'
import { type CloudflareApi, isOutdated, type Operations, type StaleZoneError } from './api.ts'
import { type CloudflareRecord, toContent, toPresentation } from './record.ts'
import { type ListedRecords, listRecords, toSuffixes, type ZoneRef } from './zone.ts'

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

const mergeOperations = (operations: readonly Operations[]): Operations => ({
  deletes: operations.flatMap(({ deletes }) => deletes),
  patches: operations.flatMap(({ patches }) => patches),
  posts: operations.flatMap(({ posts }) => posts),
})

const countOperations = ({ deletes, patches, posts }: Operations): number =>
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

/**
 * Rejected batches of one apply: more than the logarithm of the largest batch, and few enough for the timeout of one
 * call. Cloudflare allows the user of a token 1200 calls in five minutes.
 */
const MAX_REJECTIONS = 24

/** Cloudflare has no room for more records in the zone. */
interface ZoneFull {
  readonly kind: 'full'
  readonly reason: string
}

type Failure = StaleZoneError | Unavailable | ZoneFull

const nothing: Operations = { deletes: [], patches: [], posts: [] }

export interface WriteContext {
  /** The records at the names, if the previous read returned them. */
  readonly known: ListedRecords | undefined
  /** Owner name to reason: changes that are not sent. */
  readonly rejected: ReadonlyMap<string, string>
}

/** Sends changes in batches. Lists the names first, for the ids of their records, unless `known` has them. */
export const write = async (
  api: CloudflareApi,
  zoneRef: ZoneRef,
  owners: readonly OwnerChanges[],
  { known, rejected: rejectedBefore }: WriteContext,
  signal: AbortSignal,
): Promise<ApplyResult | StaleZoneError> => {
  const changes = new Map(owners.map(owner => [owner.name, owner.changes]))
  const rejected = new Map(rejectedBefore)
  const planned = new Map<string, Operations>()
  /** Names whose records were listed again because the known ones were out of date: once for each name. */
  const renewed = new Set<string>()
  const operationsAt = (name: string): Operations => planned.get(name) ?? nothing

  const plan = async (
    names: readonly string[],
    latest?: ListedRecords,
  ): Promise<StaleZoneError | Unavailable | undefined> => {
    const listed = latest ?? (await listRecords(api, zoneRef, { names, branches: [] }, signal))
    if (listed.kind !== 'listed') return listed
    const present = Map.groupBy(listed.records, record => record.name)
    for (const name of names) {
      const result = planBatch(present.get(name) ?? [], changes.get(name) ?? [], zoneRef.batchLimit)
      if ('fault' in result) rejected.set(name, result.fault)
      planned.set(name, 'fault' in result ? nothing : result)
    }
    return undefined
  }

  const send = async (names: readonly string[]): Promise<BatchResult<string, Failure>> => {
    const operations = mergeOperations(names.map(operationsAt))
    if (countOperations(operations) === 0) return { kind: 'accepted' }
    const answer = await api.batch(zoneRef.id, operations, signal)
    if (answer.kind === 'done') {
      for (const name of names) planned.set(name, nothing)
      return { kind: 'accepted' }
    }
    if (answer.kind !== 'declined') return { kind: 'failed', failure: answer }
    if (answer.scope === 'room') return { kind: 'failed', failure: { kind: 'full', reason: answer.reason } }
    if (answer.scope === 'zone') return { kind: 'failed', failure: toZoneRefusal(`Cloudflare: ${answer.reason}.`) }
    if (isOutdated(answer) && names.some(name => !renewed.has(name))) {
      const failure = await plan(names)
      for (const name of names) renewed.add(name)
      return failure ? { kind: 'failed', failure } : send(names)
    }
    const [list = '', index = -1] = answer.culprit ?? []
    const culprit = Object.entries(operations).find(([key]) => key === list)?.[1][index]
    const ownsCulprit = (name: string) => Object.values(operationsAt(name)).some(own => own.includes(culprit))
    // The pointer format for batches is undocumented, so a named culprit is not certain.
    const suspects = culprit === undefined ? [] : names.filter(ownsCulprit)
    return { kind: 'rejected', reason: answer.reason, suspects, isDoubtful: answer.scope === 'unknown' }
  }

  /** Sends batches; the failure that ended it, or the names that it did not get to. */
  const sendAll = async (batches: readonly (readonly string[])[]): Promise<Failure | readonly string[]> => {
    const result = await bisect(batches, send, { maxRejections: MAX_REJECTIONS })
    if (result.kind === 'failed') return result.failure
    if (result.kind === 'refused') return toZoneRefusal(`Cloudflare refuses changes of the zone: ${result.reason}.`)
    for (const [name, reason] of result.rejected) rejected.set(name, reason)
    return result.skipped
  }
  const toBatches = (names: readonly string[]) => {
    const wanted = names.filter(name => countOperations(operationsAt(name)) > 0 && !rejected.has(name))
    return chunkBySize(wanted, name => countOperations(operationsAt(name)), zoneRef.batchLimit)
  }

  /**
   * Writes to a full zone what needs no room, and then one name after the other, with what is below it, as long as there is
   * room. The others are rejected for that reason, without a search.
   */
  const fill = async ({ reason }: ZoneFull): Promise<Exclude<Failure, ZoneFull> | ReadonlySet<string>> => {
    const grows = (name: string) => operationsAt(name).posts.length > operationsAt(name).deletes.length
    const names = toBatches([...changes.keys()]).flat()
    const growing = names.filter(grows)
    const units = toSuffixes(growing).map(top =>
      growing.filter(name => createNameFilter({ names: [], branches: [top] })(name)),
    )
    const others = names.filter(name => !grows(name))
    // A single unit has been refused already.
    const steps = others.length === 0 && units.length === 1 ? [] : [others, ...units]
    for (const step of steps) {
      const left = await sendAll(toBatches(step))
      if ('kind' in left && left.kind === 'full') break
      if ('kind' in left) return left
    }
    const full = new Set(toBatches(growing).flat())
    for (const name of full) rejected.set(name, reason)
    return full
  }

  /** Sends the deletions of a name that do not fit into one batch with its other operations. */
  const sendSurplus = async (name: string): Promise<StaleZoneError | Unavailable | undefined> => {
    for (;;) {
      const { deletes, ...others } = operationsAt(name)
      const surplus = countOperations({ deletes, ...others }) - zoneRef.batchLimit
      if (surplus <= 0) return undefined
      const first = deletes.slice(0, Math.min(surplus, zoneRef.batchLimit))
      const answer = await api.batch(zoneRef.id, { ...nothing, deletes: first }, signal)
      if (answer.kind === 'declined') rejected.set(name, answer.reason)
      else if (answer.kind !== 'done') return answer
      planned.set(name, answer.kind === 'done' ? { ...others, deletes: deletes.slice(first.length) } : nothing)
    }
  }

  const failure = await plan([...changes.keys()], known)
  if (failure) return failure
  const hasSurplus = (name: string) => countOperations(operationsAt(name)) > zoneRef.batchLimit
  const [first] = changes.keys()
  if (first !== undefined && !hasSurplus(first) && [...changes.keys()].some(hasSurplus)) {
    const sent = await sendAll([[first]])
    if ('kind' in sent && sent.kind !== 'full') return sent
  }
  for (const name of changes.keys()) {
    const surplusFailure = await sendSurplus(name)
    if (surplusFailure) return surplusFailure
  }
  const sent = await sendAll(toBatches([...changes.keys()]))
  if (!('kind' in sent)) return toApplyResult(rejected, sent)
  if (sent.kind !== 'full') return sent
  const full = await fill(sent)
  return 'kind' in full ? full : toApplyResult(rejected, [], full)
}
