import { tokenVerdictOf } from './domain/classify-token-response.ts'
import { failureMessage } from './domain/network-errors.ts'
import { unavailable, type Verdict } from './domain/result.ts'
import type { HttpsGet } from './https-client.ts'

export interface ProviderToken {
  readonly provider: string
  readonly token: string
}

/** What a provider says of a token; never tells the token or the provider's words. */
export type CheckToken = (token: ProviderToken, signal?: AbortSignal) => Promise<Verdict>

export interface TokenCheckOptions {
  /** What is read, by the provider's name. */
  readonly urls: ReadonlyMap<string, string>
  readonly get: HttpsGet
}

/** One read with the token as RFC 6750 bearer token. The status decides; the body is not looked at. */
export const createTokenCheck =
  ({ urls, get }: TokenCheckOptions): CheckToken =>
  async ({ provider, token }, signal) => {
    const address = urls.get(provider)
    if (address === undefined) throw new Error('a provider without an address was let through')
    const url = new URL(address)
    const answer = await get(url, { Authorization: `Bearer ${token}`, Accept: 'application/json' }, signal)
    return answer.kind === 'answered'
      ? tokenVerdictOf(provider, answer.status)
      : unavailable(failureMessage(url.host, answer.cause))
  }
