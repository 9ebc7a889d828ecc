import { holder as holderSchema, putLeaseRequest, slot as slotSchema } from '@pool/contract/lease'
import { firstLeaseViolation, type LeaseErrorCode } from '@pool/contract/lease-problem'
import type { KnownGenerations, LeaseWrite } from './lease.ts'

/** Why a request is rejected. Without `detail`, the code has a standard text. */
export interface RequestError {
  readonly code: LeaseErrorCode
  readonly detail?: string
}

export type ParsedRequest<Value> =
  | { readonly ok: true; readonly value: Value }
  | { readonly ok: false; readonly error: RequestError }

const accept = <Value>(value: Value): ParsedRequest<Value> => ({ ok: true, value })
const reject = (code: LeaseErrorCode): ParsedRequest<never> => ({ ok: false, error: { code } })

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

/** Decodes the path after `/lease/` exactly once, so that `ns/name` and `ns%2Fname` are the same slot. */
export const parseSlot = (encoded: string): SlotAddress | undefined => {
  try {
    const parsed = slotSchema.safeParse(decodeURIComponent(encoded))
    return parsed.success ? { slot: parsed.data, encoded } : undefined
  } catch {
    return undefined
  }
}

/** `7`, `"7"` or `W/"7"`. A bare number is not an entity tag (RFC 9110 section 8.8.3), but clients of this API send it. */
const GENERATION_TAG = /^(?:(0|[1-9]\d{0,15})|(?:W\/)?"(0|[1-9]\d{0,15})")$/

const parseGeneration = (tag: string): number | undefined => {
  const [, bare, quoted] = GENERATION_TAG.exec(tag) ?? []
  const generation = Number(bare ?? quoted)
  return Number.isSafeInteger(generation) ? generation : undefined
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
  const generation = ifMatch === undefined ? 0 : parseGeneration(ifMatch.trim())
  if (generation === undefined) return reject('invalid-if-match')
  const isConsistent = ifNoneMatch === undefined || (mayCreate && ifNoneMatch.trim() === '*' && generation === 0)
  return isConsistent ? accept(generation) : reject('invalid-if-none-match')
}

/** `If-None-Match` of a read (RFC 9110 section 13.1.2). An entity tag that is not a generation matches nothing. */
export const parseKnownGenerations = (ifNoneMatch: string | undefined): KnownGenerations => {
  if (ifNoneMatch === undefined) return []
  if (ifNoneMatch.trim() === '*') return 'any'
  return ifNoneMatch
    .split(',')
    .map(tag => parseGeneration(tag.trim()))
    .filter(generation => generation !== undefined)
}

export const MAX_WAIT_SECONDS = 60
/** In characters. The time to match the patterns below grows with the square of the length. */
const MAX_PREFER_LENGTH = 512

/** A list member; a quoted string may contain commas (RFC 7240 section 2, RFC 9110 section 5.6). */
const PREFERENCE = /(?:[^",]|"(?:[^"\\]|\\.)*")+/g
const WAIT_PREFERENCE = /^\s*wait\s*=\s*(?:"(\d{1,9})"|(\d{1,9}))\s*(?:;.*)?$/is

/**
 * The seconds of the first `wait` in `Prefer` (RFC 7240 section 4.3), at most MAX_WAIT_SECONDS. 0 if it is absent or
 * invalid: a server ignores a preference that it cannot honor (section 2).
 */
export const parseWaitSeconds = (prefer: string | undefined): number => {
  if (prefer === undefined || prefer.length > MAX_PREFER_LENGTH) return 0
  const first = prefer.match(PREFERENCE)?.find(text => /^\s*wait\s*(?:[=;]|$)/i.test(text))
  const [, quoted, bare] = WAIT_PREFERENCE.exec(first ?? '') ?? []
  return Math.min(Number(quoted ?? bare ?? 0), MAX_WAIT_SECONDS)
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
  const ttlMs = Math.round(put.value.ttlSeconds * 1_000)
  return accept({ kind: put.value.op, holder: holder.value, ttlMs, generation: generation.value })
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
