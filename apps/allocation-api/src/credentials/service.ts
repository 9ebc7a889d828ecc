import { type ObjectStorageKeys, toCanonicalFqdn, type ValidationResult } from '@pool/contract'
import type { Config } from '../config/config.ts'
import { createRateLimiter, type RateLimitDecision, toRateLimitKey } from '../lib/rate-limiter.ts'
import { toBucketName } from '../naming/naming.ts'
import { createKeyCheck } from './check-s3-keys.ts'
import { createTokenCheck, type ProviderToken } from './check-token.ts'
import { createBucketLookup } from './find-bucket.ts'
import { type CredentialCheckResult, createHttpsGet } from './https-client.ts'

export type CredentialKind = 'object-storage' | 'token'

export type ValidationOutcome = CredentialCheckResult | Exclude<RateLimitDecision, { kind: 'allowed' }>

export interface CredentialServiceOptions {
  readonly config: Pick<Config, 'objectStorage' | 'credentials'>
  /** PEM of certificate authorities trusted for the object storage in addition to the system's. */
  readonly objectStorageCa: string | null
  /** For one whole check. Milliseconds. */
  readonly deadlineMs: number
  /** Monotonic clock, in milliseconds. */
  readonly now: () => number
  /** Milliseconds since the epoch. */
  readonly wallClock: () => number
  readonly onOutcome: (kind: CredentialKind, outcome: ValidationOutcome) => void
}

/** Clients whose attempts are remembered, at some 100 bytes each. */
const MAX_CLIENTS = 10_000

export type CredentialService = ReturnType<typeof createCredentialService>

/** Checks credentials at their providers. One rate limit per client covers both kinds of checks. */
export const createCredentialService = (options: CredentialServiceOptions) => {
  const { config, objectStorageCa, deadlineMs, now, wallClock, onOutcome } = options
  const { objectStorage, credentials } = config
  const limit = createRateLimiter({ perMinute: credentials.attemptsPerMinute, maxCallers: MAX_CLIENTS })
  const storage = {
    domain: objectStorage.domain,
    get: createHttpsGet({ deadlineMs, extraCa: objectStorageCa }),
    now: wallClock,
  }
  const checkKeys = createKeyCheck(storage)
  const findBucket = createBucketLookup(storage)
  const checkToken = createTokenCheck({
    urls: credentials.tokenUrls,
    get: createHttpsGet({ deadlineMs, extraCa: null }),
  })

  /** Without the limit, clients could guess credentials through this service at any rate. */
  const checkWithinLimit = async (
    kind: CredentialKind,
    address: string | null,
    check: () => Promise<CredentialCheckResult>,
  ): Promise<ValidationOutcome> => {
    const attempt = limit(toRateLimitKey(address), now())
    const outcome = attempt.kind === 'allowed' ? await check() : attempt
    onOutcome(kind, outcome)
    return outcome
  }

  return {
    /** For credentials that were accepted: it is not limited. */
    findBucket,

    /** The bucket of a deployment of this FQDN, for its creation; undefined if it has none or cannot be looked up. */
    async findBucketOf(keys: ObjectStorageKeys, fqdn: string): Promise<ValidationResult['bucket']> {
      const bucket = toBucketName(objectStorage.platformPrefix, toCanonicalFqdn(fqdn))
      const found = bucket.kind === 'bucket' ? await findBucket(keys, bucket.name) : null
      if (bucket.kind !== 'bucket' || found === null || found.kind === 'unavailable') return undefined
      return { name: bucket.name, found: found.kind }
    },

    /** `address` is the network address of the client. */
    validateKeys(keys: ObjectStorageKeys, address: string | null, signal?: AbortSignal): Promise<ValidationOutcome> {
      return checkWithinLimit('object-storage', address, () => checkKeys(keys, signal))
    },

    validateToken(token: ProviderToken, address: string | null, signal?: AbortSignal): Promise<ValidationOutcome> {
      return checkWithinLimit('token', address, () => checkToken(token, signal))
    },
  }
}
