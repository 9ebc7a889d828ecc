import {
  type DrainLeasesRequest,
  drainLeasesRequest,
  GENERATION_TAG,
  holder as holderSchema,
  type LeaseListQuery,
  leaseListQuery,
  leaseStatusQuery,
  putLeaseRequest,
  readLeaseQuery,
  renewLeasesRequest,
  slot as slotSchema,
  WAIT,
} from '@pool/contract/lease'
import { firstLeaseViolation, type LeaseErrorCode } from '@pool/contract/lease-problem'
import type { KnownGenerations, LeaseWrite, WaitCondition } from './lease.ts'

/** Why a request is rejected. Without `detail`, the code has a standard text. */
export interface RequestError {
  readonly code: LeaseErrorCode
  readonly detail?: string
}

export type ParsedRequest<Value> =
  | { readonly ok: true; readonly value: Value }
  | { readonly ok: false; readonly error: RequestError }

const accept = <Value>(value: Value): ParsedRequest<Value> => ({ ok: true, value })
const reject = (code: LeaseErrorCode, detail?: string): ParsedRequest<never> => ({
  ok: false,
  error: { code, ...(detail === undefined ? {} : { detail }) },
})

interface Schema<Value> {
  readonly safeParse: (
    value: unknown,
  ) =>
    | { readonly success: true; readonly data: Value }
    | { readonly success: false; readonly error: Parameters<typeof firstLeaseViolation>[0] }
}

/** The value, or the schema's first error in the order of its fields, which is the order that the contract defines. */
export const parseWith = <Value>(schema: Schema<Value>, value: unknown): ParsedRequest<Value> => {
  const result = schema.safeParse(value)
  return result.success ? accept(result.data) : { ok: false, error: firstLeaseViolation(result.error) }
}

export interface SlotAddress {
  /** The name, decoded. */
  readonly slot: string
  /** The name as the request's path encodes it. An older deployment may have stored its record under this form. */
  readonly encoded: string
}

/** The slot with this encoding. Undefined: the encoding or the length is invalid. */
export const decodeSlot = (encoded: string): string | undefined => {
  try {
    return slotSchema.safeParse(decodeURIComponent(encoded)).data
  } catch {
    return undefined
  }
}

/**
 * Decodes the path after `/lease/` exactly once, so that `ns/name` and `ns%2Fname` are the same slot. An empty segment must
 * be encoded: in front of a worker on a custom domain, Cloudflare merges `//`.
 */
export const parseSlot = (encoded: string): SlotAddress | undefined => {
  const slot = `/${encoded}`.includes('//') ? undefined : decodeSlot(encoded)
  return slot === undefined ? undefined : { slot, encoded }
}

/** The address of a slot whose name is in a body or a query. */
export const toSlotAddress = (slot: string): SlotAddress => ({ slot, encoded: encodeURIComponent(slot) })

/** Matches no lease. */
const NO_GENERATION = -1

/** Undefined: not of this form. A number that no lease can have, or with leading zeros, is NO_GENERATION. */
const parseGeneration = (tag: string): { readonly value: number; readonly isWeak: boolean } | undefined => {
  const [, bare, weak, quoted] = GENERATION_TAG.exec(tag) ?? []
  const digits = bare ?? quoted
  if (digits === undefined) return undefined
  const isGeneration = /^(?:0|[1-9]\d{0,15})$/.test(digits) && Number.isSafeInteger(Number(digits))
  return { value: isGeneration ? Number(digits) : NO_GENERATION, isWeak: weak !== undefined }
}

/**
 * The generation that a write names in `If-Match`. On a write that may create (PUT), `If-None-Match: *` means the same as
 * `If-Match: 0`. Any other second header is rejected, because silently ignoring a precondition is unsafe.
 */
export const parsePrecondition = (
  ifMatch: string | undefined,
  ifNoneMatch: string | undefined,
  { mayCreate }: { readonly mayCreate: boolean },
): ParsedRequest<number> => {
  if (ifMatch === undefined && (ifNoneMatch === undefined || !mayCreate)) return reject('missing-if-match')
  const generation = ifMatch === undefined ? 0 : parseGeneration(ifMatch.trim())?.value
  if (generation === undefined) return reject('invalid-if-match')
  const isConsistent = ifNoneMatch === undefined || (mayCreate && ifNoneMatch.trim() === '*' && generation === 0)
  return isConsistent ? accept(generation) : reject('invalid-if-none-match')
}

/** A list of entity tags, or `*`. A tag that is not a generation matches nothing. */
const parseTagList = (header: string, isCompared: (isWeak: boolean) => boolean): KnownGenerations => {
  if (header.trim() === '*') return 'any'
  return header.split(',').flatMap(text => {
    const tag = parseGeneration(text.trim())
    return tag && tag.value !== NO_GENERATION && isCompared(tag.isWeak) ? [tag.value] : []
  })
}

/** `If-None-Match` of a read: weak comparison (RFC 9110 section 13.1.2). */
export const parseKnownGenerations = (ifNoneMatch: string | undefined): KnownGenerations =>
  parseTagList(ifNoneMatch ?? '', () => true)

/** `If-Match` of a read: strong comparison (RFC 9110 section 13.1.1). Undefined: any state is expected. */
export const parseExpectedGenerations = (ifMatch: string | undefined): KnownGenerations | undefined =>
  ifMatch === undefined ? undefined : parseTagList(ifMatch, isWeak => !isWeak)

/** Undefined: not a whole number of seconds from 1 to 60. An absent or blank setting is the default. */
export const parseMaxWaitSeconds = (text: string | undefined): number | undefined => {
  const trimmed = text?.trim() ?? ''
  if (trimmed === '') return WAIT.default
  const seconds = /^\d{1,2}$/.test(trimmed) ? Number(trimmed) : 0
  return seconds >= WAIT.min && seconds <= WAIT.max ? seconds : undefined
}

/** In characters. The time to match the patterns below grows with the square of the length. */
const MAX_PREFER_LENGTH = 512

/** A list member; a quoted string may contain commas (RFC 7240 section 2, RFC 9110 section 5.6). */
const PREFERENCE = /(?:[^",]|"(?:[^"\\]|\\.)*")+/g
const WAIT_PREFERENCE = /^\s*wait\s*=\s*(?:"(\d{1,9})"|(\d{1,9}))\s*(?:;.*)?$/is

/**
 * The seconds of the first `wait` in `Prefer` (RFC 7240 section 4.3), at most `max`. 0 if it is absent or invalid: a server
 * ignores a preference that it cannot honor (section 2).
 */
export const parseWaitSeconds = (prefer: string | undefined, max: number): number => {
  if (prefer === undefined || prefer.length > MAX_PREFER_LENGTH) return 0
  const first = prefer.match(PREFERENCE)?.find(text => /^\s*wait\s*(?:[=;]|$)/i.test(text))
  const [, quoted, bare] = WAIT_PREFERENCE.exec(first ?? '') ?? []
  return Math.min(Number(quoted ?? bare ?? 0), max)
}

export interface ReadHeaders {
  readonly ifMatch: string | undefined
  readonly ifNoneMatch: string | undefined
  readonly prefer: string | undefined
}

export interface LeaseRead {
  /** The generations that the reader has. */
  readonly known: KnownGenerations
  /** One of these must be the current generation; undefined: any. */
  readonly expected: KnownGenerations | undefined
  /** Undefined: respond immediately. */
  readonly wait: { readonly condition: WaitCondition; readonly seconds: number } | undefined
}

/** A GET. A reader that names neither a generation nor `until` gets the lease immediately, even with `Prefer`. */
export const parseRead = (
  { ifMatch, ifNoneMatch, prefer }: ReadHeaders,
  query: Readonly<Record<string, string>>,
  maxWaitSeconds: number,
): ParsedRequest<LeaseRead> => {
  const parsed = parseWith(readLeaseQuery, query)
  if (!parsed.ok) return parsed
  const known = parseKnownGenerations(ifNoneMatch)
  const expected = parseExpectedGenerations(ifMatch)
  const isUntilVacant = parsed.value.until === 'vacant' || known === 'any'
  const canWait = expected === undefined && (isUntilVacant || known.length > 0)
  const seconds = canWait ? parseWaitSeconds(prefer, maxWaitSeconds) : 0
  const condition: WaitCondition = isUntilVacant ? { kind: 'vacant' } : { kind: 'changed', known }
  return accept({ known, expected, wait: seconds > 0 ? { condition, seconds } : undefined })
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: false })

/** The body as JSON, whatever its Content-Type; an empty body is `{}`. */
const parseJson = (body: Uint8Array): ParsedRequest<unknown> => {
  if (body.byteLength === 0) return accept({})
  try {
    return accept(JSON.parse(utf8.decode(body)))
  } catch {
    return reject('invalid-json')
  }
}

export interface WriteHeaders {
  readonly ifMatch: string | undefined
  readonly ifNoneMatch: string | undefined
  /** `X-Holder`; empty means absent. */
  readonly holder: string | undefined
}

const toTtlMs = (ttlSeconds: number): number => Math.round(ttlSeconds * 1_000)

/** A PUT: acquire or renew. The holder is in the body or in X-Holder. */
export const parsePut = (headers: WriteHeaders, body: Uint8Array): ParsedRequest<LeaseWrite> => {
  const generation = parsePrecondition(headers.ifMatch, headers.ifNoneMatch, { mayCreate: true })
  if (!generation.ok) return generation
  const json = parseJson(body)
  if (!json.ok) return json
  const put = parseWith(putLeaseRequest, json.value)
  if (!put.ok) return put
  const header = headers.holder || undefined
  const holder = parseWith(holderSchema, put.value.holder ?? header)
  if (!holder.ok) return holder
  if (header !== undefined && header !== holder.value) return reject('holder-mismatch')
  const { op, ttlSeconds, value } = put.value
  return accept({ kind: op, holder: holder.value, ttlMs: toTtlMs(ttlSeconds), generation: generation.value, value })
}

/** One renewal of many. */
export interface Renewal {
  readonly address: SlotAddress
  readonly write: LeaseWrite
}

/** `POST /leases/renew`: renewals of one holder. */
export const parseRenewals = (body: Uint8Array): ParsedRequest<readonly Renewal[]> => {
  const json = parseJson(body)
  if (!json.ok) return json
  const request = parseWith(renewLeasesRequest, json.value)
  if (!request.ok) return request
  const { holder, leases } = request.value
  return accept(
    leases.map(({ slot, generation, ttlSeconds }) => ({
      address: toSlotAddress(slot),
      write: { kind: 'renew', holder, ttlMs: toTtlMs(ttlSeconds), generation },
    })),
  )
}

/** `POST /leases/drain`. */
export const parseDrain = (body: Uint8Array): ParsedRequest<DrainLeasesRequest> => {
  const json = parseJson(body)
  return json.ok ? parseWith(drainLeasesRequest, json.value) : json
}

/** `GET /leases`: a page of the copies, or the exact state of named slots. */
export type LeasesQuery =
  | { readonly kind: 'copies'; readonly query: LeaseListQuery }
  | { readonly kind: 'exact'; readonly addresses: readonly SlotAddress[] }

export const parseLeasesQuery = (query: Readonly<Record<string, readonly string[]>>): ParsedRequest<LeasesQuery> => {
  const { slot, ...list } = query
  if (slot === undefined) {
    const first = Object.fromEntries(Object.entries(list).map(([name, [value]]) => [name, value]))
    const copies = parseWith(leaseListQuery, first)
    return copies.ok ? accept({ kind: 'copies', query: copies.value }) : copies
  }
  const isMixed = Object.keys(leaseListQuery.shape).some(name => name in list)
  if (isMixed)
    return reject('invalid-request', 'slot cannot be combined with prefix, limit or cursor. Send only one kind.')
  const exact = parseWith(leaseStatusQuery, { slot })
  return exact.ok ? accept({ kind: 'exact', addresses: exact.value.slot.map(toSlotAddress) }) : exact
}

/** A DELETE: release, by the holder in X-Holder. */
export const parseRelease = (headers: WriteHeaders): ParsedRequest<LeaseWrite> => {
  const generation = parsePrecondition(headers.ifMatch, headers.ifNoneMatch, { mayCreate: false })
  if (!generation.ok) return generation
  if (!headers.holder) return reject('missing-x-holder')
  const holder = parseWith(holderSchema, headers.holder)
  if (!holder.ok) return holder
  return accept({ kind: 'release', holder: holder.value, generation: generation.value })
}
