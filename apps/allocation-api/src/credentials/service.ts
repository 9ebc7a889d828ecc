import type { ObjectStorageKeys } from '@pool/contract'
import type { Config } from '../config/config.ts'
import { createRateLimiter, type RateLimitDecision, toRateLimitKey } from '../lib/rate-limiter.ts'
import { createKeyCheck } from './check-s3-keys.ts'
import { createTokenCheck, type ProviderToken } from './check-token.ts'
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
  const checkKeys = createKeyCheck({
    domain: objectStorage.domain,
    get: createHttpsGet({ deadlineMs, extraCa: objectStorageCa }),
    now: wallClock,
  })
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
    /** `address` is the network address of the client. */
    validateKeys(keys: ObjectStorageKeys, address: string | null, signal?: AbortSignal): Promise<ValidationOutcome> {
      return checkWithinLimit('object-storage', address, () => checkKeys(keys, signal))
    },

    validateToken(token: ProviderToken, address: string | null, signal?: AbortSignal): Promise<ValidationOutcome> {
      return checkWithinLimit('token', address, () => checkToken(token, signal))
    },
  }
}
