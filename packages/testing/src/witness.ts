import { randomBytes } from 'node:crypto'
import { rejectOtherTypes, rejectUnknown, startHostWith } from './host-client.ts'
import { createTestService, type TestService } from './test-service.ts'

export interface StartWitnessOptions {
  /**
   * What runs the witness: `workerd`, the open-source runtime of Cloudflare Workers (default), or a process on Postgres. Both
   * have the same API.
   */
  readonly on?: 'workerd' | 'postgres'
  /** Tokens with full power. Default: one random token. */
  readonly tokens?: readonly string[]
  /** Further settings of the witness, such as TOKEN_POLICIES, MAX_WAIT_SECONDS and LOG_LEVEL. */
  readonly env?: Readonly<Record<string, string>>
}

export interface TestWitness extends TestService {
  /** The first token. Send it as `Authorization: Bearer TOKEN`. */
  readonly token: string
}

/**
 * Starts a lease witness without leases, which shares nothing with another one.
 *
 * @throws {TestServiceError} if it does not start; the message says why.
 */
export const startWitness = async (options: StartWitnessOptions = {}): Promise<TestWitness> => {
  rejectUnknown('startWitness', options, ['on', 'tokens', 'env'])
  const { on = 'workerd', tokens = [randomBytes(24).toString('base64url')], env = {} } = options
  if (on !== 'workerd' && on !== 'postgres') throw new TypeError(`on must be workerd or postgres, not ${on}.`)
  rejectOtherTypes({ tokens }, env)
  const { host, address } = await startHostWith({ kind: 'lease-witness', on, tokens, env })
  return { ...createTestService(address.url, host), token: tokens[0] ?? '' }
}
