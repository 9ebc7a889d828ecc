import {
  createUpdateRequest,
  holder as holderSchema,
  leaseValue,
  MAX_SLOTS,
  slot as slotSchema,
  splitTarget,
  subdomain as subdomainSchema,
  type TargetChange,
} from '@pool/contract'
import type * as z from 'zod'
import type { Flags } from './command.ts'
import { UsageError } from './exit-codes.ts'

// The values of arguments and flags. Each parser returns the canonical value or throws a UsageError.

const parseWith = <Output>(
  schema: z.ZodType<Output>,
  value: unknown,
  toMessage: (detail: string) => string,
): Output => {
  const result = schema.safeParse(value)
  if (result.success) return result.data
  throw new UsageError(toMessage(result.error.issues[0]?.message ?? 'invalid'))
}

export interface PoolName {
  readonly subdomain: string
  readonly pool: string
}

const HOST_NAME = /^(?=.{1,253}$)(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)(?:\.[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)*$/

export const parsePool = (text: string): string => {
  const pool = text.trim().toLowerCase().replace(/\.$/, '')
  if (HOST_NAME.test(pool)) return pool
  throw new UsageError(`POOL ${JSON.stringify(text)} is not a domain name; use a pool such as pool.example.`)
}

/** `acme pool.example`, or `acme.pool.example`: a name of a pool is always one label. */
export const parsePoolName = (name: string, pool: string | undefined): PoolName => {
  const [label = '', ...rest] = pool === undefined ? name.split('.') : [name]
  const domain = pool ?? rest.join('.')
  if (domain === '') throw new UsageError(`NAME ${JSON.stringify(name)} has no pool; add it: poolctl … ${name} POOL`)
  const subdomain = parseWith(subdomainSchema, label, detail => `NAME ${JSON.stringify(label)}: ${detail}`)
  return { subdomain, pool: parsePool(domain) }
}

export const toFqdn = ({ subdomain, pool }: PoolName): string => `${subdomain}.${pool}`

export const parseSubdomains = (labels: readonly string[]): string[] =>
  labels.map(label => parseWith(subdomainSchema, label, detail => `NAME ${JSON.stringify(label)}: ${detail}`))

/** The flag of each field of a target. */
const TARGET_FLAGS = {
  loadBalancerIP: '--address',
  loadBalancerIPv6: '--ipv6',
  consoleLoadBalancerIP: '--console-address',
  loadBalancerHostname: '--hostname',
  nameservers: '--nameserver',
  ds: '--ds',
} as const

/** The target of the flags. `none` removes an address. */
export const parseTarget = (flags: Flags, isRequired: boolean): TargetChange => {
  const toAddress = (value: unknown) => (value === 'none' && !isRequired ? null : value)
  const toDs = (text: string) => {
    const [keyTag, algorithm, digestType, ...digest] = text.trim().split(/\s+/)
    const numbers = { keyTag: Number(keyTag), algorithm: Number(algorithm), digestType: Number(digestType) }
    return { ...numbers, digest: digest.join('') }
  }
  const given = {
    loadBalancerIP: toAddress(flags.address),
    loadBalancerIPv6: toAddress(flags.ipv6),
    consoleLoadBalancerIP: toAddress(flags.consoleAddress),
    loadBalancerHostname: flags.hostname,
    nameservers: flags.nameserver,
    ds: (flags.ds as readonly string[] | undefined)?.map(toDs),
  }
  const schema = createUpdateRequest({ acceptsLoopback: true }, true)
  const toMessage = (detail: string) =>
    detail.replace(/\b[a-zA-Z0-9]+\b/g, word => TARGET_FLAGS[word as keyof typeof TARGET_FLAGS] ?? word)
  const { target } = splitTarget(parseWith(schema, { subdomain: 'name', ...given }, toMessage))
  if (Object.keys(target).length > 0) return target
  throw new UsageError('the target is missing; name it with --address, --ipv6, --hostname or --nameserver.')
}

export const parseSlot = (text: string): string =>
  parseWith(slotSchema, text, () => 'SLOT must be text of 1 to 506 bytes in UTF-8.')

export const parseSlots = (slots: readonly string[]): string[] => {
  const parsed = slots.map(parseSlot)
  if (new Set(parsed).size < parsed.length) throw new UsageError('SLOT is repeated; name each slot once.')
  if (parsed.length > MAX_SLOTS) throw new UsageError(`at most ${MAX_SLOTS} slots fit in one request; name fewer.`)
  return parsed
}

export const parseHolder = (text: string): string =>
  parseWith(
    holderSchema,
    text,
    () => '--holder must be 1 to 253 printable ASCII characters without a leading or trailing space.',
  )

/** The value of a lease. Undefined: the flag is absent. */
export const parseLeaseValue = (text: string | undefined): string | undefined =>
  text === undefined
    ? undefined
    : parseWith(leaseValue, text, () => '--value must be at most 1,024 bytes in UTF-8, without control characters.')

export const parseDeploymentId = (text: string): string => {
  const id = text.trim().toLowerCase()
  if (/^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(id)) return id
  throw new UsageError(`DEPLOYMENT ${JSON.stringify(text)} is not an id; "poolctl deployments list" shows the ids.`)
}

const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 }

/** A duration in Go's syntax, in milliseconds: `90s`, `1h30m`, `500ms`. */
export const parseDuration = (text: string, flag: string, { min, max }: { min: number; max: number }): number => {
  const parts = Array.from(text.matchAll(/(\d+(?:\.\d+)?)(ms|s|m|h)/g))
  const isComplete = parts.length > 0 && parts.map(([part]) => part).join('') === text
  const total = parts.reduce((sum, [, amount, unit]) => sum + Number(amount) * (UNITS[unit ?? ''] ?? 0), 0)
  if (!isComplete)
    throw new UsageError(`${flag} ${JSON.stringify(text)} is not a duration; use a form such as 30s, 500ms or 1h30m.`)
  if (total < min || total > max) {
    throw new UsageError(`${flag} must be from ${formatDuration(min)} to ${formatDuration(max)}.`)
  }
  return total
}

/** The shortest form in Go's syntax, in whole units down to the millisecond. */
export const formatDuration = (ms: number): string => {
  const rounded = Math.round(ms)
  if (rounded < 1_000) return `${rounded}ms`
  const parts: string[] = []
  let rest = rounded
  for (const [unit, size] of [
    ['h', 3_600_000],
    ['m', 60_000],
  ] as const) {
    if (rest >= size) parts.push(`${Math.floor(rest / size)}${unit}`)
    rest %= size
  }
  if (rest > 0) parts.push(`${Math.round(rest) / 1_000}s`)
  return parts.join('')
}

/** A whole number of a flag. */
export const parseCount = (text: string, flag: string, { min, max }: { min: number; max: number }): number => {
  const value = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN
  if (value >= min && value <= max) return value
  const range = max === Number.MAX_SAFE_INTEGER ? `of at least ${min}` : `from ${min} to ${max}`
  throw new UsageError(`${flag} must be a whole number ${range}.`)
}
