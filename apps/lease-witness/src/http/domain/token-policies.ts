import { MAX_SLOT_BYTES } from '@pool/contract/lease'

/** What the bearer of one token may do. An entry of TOKEN_POLICIES; it has the token's hash, never the token. */
export interface TokenPolicy {
  /** Identifies the token in logs and in the history. */
  readonly name: string
  /** SHA-256 of the token in UTF-8, as 64 lower-case hex digits. */
  readonly digest: string
  /** Prefixes of decoded slots. Undefined: all slots. */
  readonly slots: readonly string[] | undefined
  /** `write` includes `read`. */
  readonly access: 'read' | 'write'
  /** The holders in whose name the token may write: a name, or a prefix followed by `*`. Undefined: all holders. */
  readonly holders: readonly string[] | undefined
  /** The first millisecond since the epoch at which the token is rejected. */
  readonly expiresAt: number | undefined
  /** Replaces MAX_REQUESTS_PER_MINUTE for this token. */
  readonly maxRequestsPerMinute: number | undefined
}

/** `full`: a token of BEARER_TOKENS_CSV, which may do everything. */
export type Grant = TokenPolicy | 'full'

export interface ParsedPolicies {
  readonly policies: readonly TokenPolicy[]
  /** What is wrong with the other entries, which grant nothing. No text contains a value that may be a secret. */
  readonly errors: readonly string[]
}

const utf8 = new TextEncoder()

/** No colon, so that a name cannot be mistaken for a fingerprint. */
const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/
const DIGEST = /^sha256:([0-9a-f]{64})$/
const HOLDER_PATTERN = /^[!-~](?:[ -~]{0,252}[!-~])?$/
const RFC3339 = /^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(?:\.\d+)?(?:[Zz]|[+-]\d\d:\d\d)$/
const MAX_REQUESTS_PER_MINUTE = 10_000_000

/** Undefined: the value is invalid. */
type Parse<Value> = (value: unknown) => Value | undefined

const toText =
  (pattern: RegExp): Parse<string> =>
  value =>
    typeof value === 'string' ? pattern.exec(value)?.at(-1) : undefined

const toList =
  (isItem: (text: string) => boolean): Parse<readonly string[]> =>
  value => {
    if (!Array.isArray(value) || value.length === 0) return undefined
    return value.every(item => typeof item === 'string' && isItem(item)) ? value : undefined
  }

const isPrefix = (text: string): boolean =>
  text !== '' && text.isWellFormed() && utf8.encode(text).length <= MAX_SLOT_BYTES

const toTime: Parse<number> = value => {
  if (typeof value !== 'string' || !RFC3339.test(value)) return undefined
  const time = Date.parse(value.toUpperCase())
  return Number.isNaN(time) ? undefined : time
}

const toCount: Parse<number> = value =>
  Number.isSafeInteger(value) && Number(value) >= 1 && Number(value) <= MAX_REQUESTS_PER_MINUTE
    ? Number(value)
    : undefined

const FIELDS = {
  name: {
    parse: toText(NAME),
    rule: 'must be 1 to 63 letters, digits, ".", "_" and "-", and start with a letter or digit',
  },
  token: {
    parse: toText(DIGEST),
    rule: 'must be "sha256:" and 64 lower-case hex digits: the SHA-256 of the token',
  },
  slots: {
    parse: toList(isPrefix),
    rule: `must be a list of prefixes, each of 1 to ${MAX_SLOT_BYTES} bytes; omit it for all slots`,
  },
  access: {
    parse: (value: unknown) => (value === 'read' || value === 'write' ? value : undefined),
    rule: 'must be "read" or "write"',
  },
  holders: {
    parse: toList(text => HOLDER_PATTERN.test(text)),
    rule: 'must be a list of holders, or of prefixes followed by "*"; omit it for all holders',
  },
  expiresAt: { parse: toTime, rule: 'must be a time with an offset, such as "2027-01-31T00:00:00Z"' },
  maxRequestsPerMinute: { parse: toCount, rule: `must be a whole number from 1 to ${MAX_REQUESTS_PER_MINUTE}` },
} as const

type FieldName = keyof typeof FIELDS
const FIELD_NAMES = Object.keys(FIELDS) as FieldName[]
const REQUIRED: readonly FieldName[] = ['name', 'token', 'access']

/** An entry of the list, or what is wrong with it. */
const parseEntry = (entry: unknown): TokenPolicy | { readonly errors: readonly string[] } => {
  if (typeof entry !== 'object' || entry === null || Array.isArray(entry)) return { errors: ['it must be an object'] }
  const fields: Readonly<Record<string, unknown>> = { ...entry }
  // A misspelled restriction must not grant more than the operator meant.
  const hasUnknown = Object.keys(fields).some(name => !FIELD_NAMES.some(known => known === name))
  const isAbsent = (name: FieldName) => fields[name] === undefined && !REQUIRED.includes(name)
  const errors = FIELD_NAMES.flatMap(name =>
    isAbsent(name) || FIELDS[name].parse(fields[name]) !== undefined ? [] : [`${name} ${FIELDS[name].rule}`],
  )
  if (hasUnknown) errors.push(`it has an unknown field; the fields are ${FIELD_NAMES.join(', ')}`)
  const name = FIELDS.name.parse(fields.name)
  const digest = FIELDS.token.parse(fields.token)
  const access = FIELDS.access.parse(fields.access)
  if (errors.length > 0 || name === undefined || digest === undefined || access === undefined) return { errors }
  return {
    name,
    digest,
    access,
    slots: FIELDS.slots.parse(fields.slots),
    holders: FIELDS.holders.parse(fields.holders),
    expiresAt: FIELDS.expiresAt.parse(fields.expiresAt),
    maxRequestsPerMinute: FIELDS.maxRequestsPerMinute.parse(fields.maxRequestsPerMinute),
  }
}

const parseJson = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Parses TOKEN_POLICIES. An invalid entry does not affect the others. */
export const parseTokenPolicies = (text: string | undefined): ParsedPolicies => {
  if (text === undefined || text.trim() === '') return { policies: [], errors: [] }
  const list = parseJson(text)
  if (!Array.isArray(list)) return { policies: [], errors: ['must be a JSON array of policies'] }
  const policies: TokenPolicy[] = []
  const errors: string[] = []
  list.forEach((entry: unknown, index) => {
    const parsed = parseEntry(entry)
    const found = 'errors' in parsed ? [...parsed.errors] : []
    if (!('errors' in parsed)) {
      if (policies.some(({ name }) => name === parsed.name)) found.push('it has the name of an earlier policy')
      if (policies.some(({ digest }) => digest === parsed.digest)) found.push('it has the token of an earlier policy')
      if (found.length === 0) policies.push(parsed)
    }
    errors.push(...found.map(error => `policy ${index + 1}: ${error}`))
  })
  return { policies, errors }
}

/** Compares texts of equal length in a time that depends on their length only. */
const isEqual = (a: string, b: string): boolean => {
  let difference = a.length ^ b.length
  for (let at = 0; at < b.length; at += 1) difference |= a.charCodeAt(at) ^ b.charCodeAt(at)
  return difference === 0
}

/** The policy of a token by its digest. Compares with every policy, so that the time does not depend on the position. */
export const findPolicy = (policies: readonly TokenPolicy[], digest: string): TokenPolicy | undefined =>
  policies.filter(policy => isEqual(digest, policy.digest))[0]

export const isExpired = ({ expiresAt }: TokenPolicy, now: number): boolean =>
  expiresAt !== undefined && now >= expiresAt

/** The name of a token without a policy in logs and in the history: it identifies the token and does not reveal it. */
export const toFingerprint = (digest: string): string => `sha256:${digest.slice(0, 8)}`

/** `slot` is decoded: the encodings of a slot have the same rights. */
export const canRead = (grant: Grant, slot: string): boolean =>
  grant === 'full' || grant.slots === undefined || grant.slots.some(prefix => slot.startsWith(prefix))

export const canWrite = (grant: Grant, slot: string): boolean =>
  (grant === 'full' || grant.access === 'write') && canRead(grant, slot)

/** Whether the token may acquire, renew and release leases of the holder. */
export const canActAs = (grant: Grant, holder: string): boolean =>
  grant === 'full' ||
  grant.holders === undefined ||
  grant.holders.some(pattern => (pattern.endsWith('*') ? holder.startsWith(pattern.slice(0, -1)) : holder === pattern))

/** Whether the token may list the slots with this prefix, all of which it must be able to read. */
export const canList = canRead
