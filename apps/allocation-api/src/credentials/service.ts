import type { ObjectStorageKeys } from '@pool/contract'
import type { Config } from '../config/config.ts'
import { createRateLimiter } from '../lib/rate-limiter.ts'
import { createTokenCheck, type ProviderToken } from './check-token.ts'
import { createHttpsGet } from './https-client.ts'
import { createKeyCheck } from './s3/check-keys.ts'
import { type Validate, type ValidationOutcome, validate } from './validate.ts'

export type CredentialKind = 'object-storage' | 'token'

export interface CredentialOptions {
  readonly config: Pick<Config, 'objectStorage' | 'credentials'>
  /** PEM of authorities that the object storage's certificate may come from, besides the system's. */
  readonly objectStorageCa: string | null
  /** Over one whole check. */
  readonly deadlineMs: number
  /** Milliseconds, of a clock that never goes back. */
  readonly now: () => number
  /** Milliseconds since the epoch. */
  readonly wallClock: () => number
  readonly onOutcome: (kind: CredentialKind, outcome: ValidationOutcome) => void
}

export interface Credentials {
  readonly validateKeys: Validate<ObjectStorageKeys>
  readonly validateToken: Validate<ProviderToken>
}

/** Callers whose attempts are remembered: some 100 bytes each. */
const CALLERS = 10_000

/** The checks of credentials, from the configuration to the providers. */
export const createCredentialService = (options: CredentialOptions): Credentials => {
  const { objectStorage, credentials } = options.config
  const { objectStorageCa, deadlineMs, now, wallClock, onOutcome } = options
  const attempts = createRateLimiter({ perMinute: credentials.attemptsPerMinute, maxCallers: CALLERS })
  const checkKeys = createKeyCheck({
    domain: objectStorage.domain,
    get: createHttpsGet({ deadlineMs, extraCa: objectStorageCa }),
    now: wallClock,
  })
  const checkToken = createTokenCheck({
    urls: credentials.tokenUrls,
    get: createHttpsGet({ deadlineMs, extraCa: null }),
  })
  return {
    validateKeys: validate({
      check: checkKeys,
      attempts,
      now,
      onOutcome: outcome => onOutcome('object-storage', outcome),
    }),
    validateToken: validate({ check: checkToken, attempts, now, onOutcome: outcome => onOutcome('token', outcome) }),
  }
}
