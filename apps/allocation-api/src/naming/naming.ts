import { asciiLowerCase } from '@pool/contract'
import { reservedLabels } from './reserved-labels.ts'

export type NameRejection =
  | { readonly kind: 'unsupported-pool'; readonly detail: string }
  | { readonly kind: 'pool-draining'; readonly detail: string }
  | { readonly kind: 'reserved'; readonly detail: string }

const reserved = new Set(reservedLabels)

/** A name of a pool. Both parts are in canonical form. */
export interface PoolName {
  readonly poolDomain: string
  readonly subdomain: string
}

/**
 * The lineage of a name that no client may have because its records were in the zone before the service was: no
 * lineage has this id. An operator decides, by adopting or removing the records.
 */
export const UNKNOWN_LINEAGE = '00000000-0000-0000-0000-000000000000'

export const toFqdn = (poolDomain: string, subdomain: string): string => `${subdomain}.${poolDomain}`

/** Case-insensitive. */
export const isReservedLabel = (label: string): boolean => reserved.has(label.toLowerCase())

/** The pools at one moment. */
export interface Pools {
  /** Those in the configuration of this process. */
  readonly managed: readonly string[]
  /** Those with names or records that are not in the configuration: they get no new names. */
  readonly draining: readonly string[]
  /** The above, and those in the configuration of other replicas. No label may cover one of them. */
  readonly known: readonly string[]
}

export const createPools = (
  managed: readonly string[],
  {
    draining = [],
    registered = [],
  }: { readonly draining?: readonly string[]; readonly registered?: readonly string[] } = {},
): Pools => ({ managed, draining, known: [...new Set([...managed, ...draining, ...registered])] })

/** A name that is at or above a pool, by its label and the domain around it. */
export interface CoveringName {
  readonly poolDomain: string
  readonly subdomain: string
  /** The pool that the name covers. */
  readonly coveredPool: string
}

/** Every name that would cover the pool: `b.c` in `d` and `c` in `d` for the pool `b.c.d`, if `d` is a pool. */
export const toCoveringNames = (coveredPool: string): readonly CoveringName[] => {
  const labels = coveredPool.split('.')
  return labels.slice(1).map((_, at) => ({
    poolDomain: labels.slice(at + 1).join('.'),
    subdomain: labels[at] ?? '',
    coveredPool,
  }))
}

/** For every operation except a reservation. */
export const validatePool = (poolDomain: string, { managed, draining }: Pools): NameRejection | null =>
  managed.includes(poolDomain) || draining.includes(poolDomain)
    ? null
    : {
        kind: 'unsupported-pool',
        detail: `This service does not manage that pool. Use one of: ${managed.join(', ')}.`,
      }

/** For a reservation. */
export const validateOpenPool = (poolDomain: string, pools: Pools): NameRejection | null => {
  if (pools.managed.includes(poolDomain)) return null
  const detail = `The pool gives no new names, because it is no longer configured. Use one of: ${pools.managed.join(', ')}.`
  return validatePool(poolDomain, pools) ?? { kind: 'pool-draining', detail }
}

/**
 * Whether a tenant could ever have this well-formed label: it is not reserved, and is not at or above a pool. The tenant of
 * `eu` in `pool.example` would control every name of the pool `eu.pool.example`.
 */
export const canBeGranted = (poolDomain: string, subdomain: string, { known }: Pools): boolean => {
  if (isReservedLabel(subdomain)) return false
  const fqdn = toFqdn(poolDomain, subdomain)
  return !known.some(domain => domain === fqdn || domain.endsWith(`.${fqdn}`))
}

/** The reason why no tenant can have this well-formed label, or null. */
export const validateName = (poolDomain: string, subdomain: string, pools: Pools): NameRejection | null => {
  const rejection = validateOpenPool(poolDomain, pools)
  if (rejection) return rejection
  return canBeGranted(poolDomain, subdomain, pools)
    ? null
    : { kind: 'reserved', detail: `"${subdomain}" is reserved; choose another name.` }
}

export type BucketNameResult =
  | { readonly kind: 'bucket'; readonly name: string }
  /** `reason`: one or two sentences for the caller. */
  | { readonly kind: 'invalid'; readonly reason: string }

/** Amazon S3 User Guide, "General purpose bucket naming rules". */
const MIN_BUCKET_NAME_LENGTH = 3
const MAX_BUCKET_NAME_LENGTH = 63
/** S3 also reserves the suffix `.mrap`, which a name without dots cannot have. */
const RESERVED_BUCKET_AFFIX = /^(?:xn--|sthree-|amzn-s3-demo-)|(?:-s3alias|--ol-s3|--x-s3|--table-s3)$/

const findBucketNameError = (name: string, fqdn: string): string | null => {
  if (name.length < MIN_BUCKET_NAME_LENGTH || name.length > MAX_BUCKET_NAME_LENGTH) {
    const excess = name.length - MAX_BUCKET_NAME_LENGTH
    const advice = excess > 0 ? ` Choose a name that is shorter by ${excess}.` : ''
    return `The bucket name for ${fqdn} would have ${name.length} characters; ${MIN_BUCKET_NAME_LENGTH} to ${MAX_BUCKET_NAME_LENGTH} are allowed.${advice}`
  }
  if (!/^[a-z0-9](?:[a-z0-9-]*[a-z0-9])$/.test(name)) {
    return `The bucket name for ${fqdn} would be invalid: only a-z, 0-9 and "-" are allowed, with a letter or digit at both ends.`
  }
  const affix = RESERVED_BUCKET_AFFIX.exec(name)?.[0]
  return affix ? `The bucket name for ${fqdn} would be ${name}, but S3 reserves "${affix}".` : null
}

/**
 * The bucket name of a deployment: the prefix and the FQDN, with hyphens instead of dots. Two FQDNs can have the same bucket
 * name (`a-b.c.io` and `a.b.c.io`); the database assigns a bucket to one FQDN only.
 */
export const toBucketName = (prefix: string, fqdn: string): BucketNameResult => {
  const name = `${prefix}-${asciiLowerCase(fqdn).replaceAll('.', '-')}`
  const reason = findBucketNameError(name, fqdn)
  return reason === null ? { kind: 'bucket', name } : { kind: 'invalid', reason }
}

/** The origin of a request, for the history. */
export interface Caller {
  /** The listener that received the request, or the component that acts without one; `tenant`: with a token for records. */
  readonly actor: 'in-cluster' | 'operator' | 'deployment' | 'tenant' | 'sweeper'
  readonly address: string | null
  readonly requestId: string
}
