import {
  acceptedResult,
  type CredentialCheckResult,
  describeNetworkFailure,
  type HttpsGet,
  rejectedResult,
  unavailableResult,
} from './https-client.ts'

export interface ProviderToken {
  readonly provider: string
  readonly token: string
}

export interface TokenCheckOptions {
  /** The URL to read, by provider. */
  readonly urls: ReadonlyMap<string, string>
  readonly get: HttpsGet
}

/** What the status of a read means for its token. `provider` is the configured name. */
export const classifyTokenResponse = (provider: string, status: number): CredentialCheckResult => {
  if (status >= 200 && status < 300) return acceptedResult(`${provider} accepts this token.`)
  if (status === 401 || status === 403) {
    return rejectedResult(`${provider} rejects this token. Check that it is complete and has read permission.`)
  }
  if (status === 429) return unavailableResult(`${provider} is limiting the request rate. Try again later.`)
  if (status >= 300 && status < 400) {
    return unavailableResult(`${provider} answered with a redirect. Redirects are not followed with a token.`)
  }
  return unavailableResult(`${provider} gave no answer about the token (status ${status}). Try again later.`)
}

/** One read with the token as bearer token (RFC 6750). Only the status of the response counts. */
export const createTokenCheck =
  ({ urls, get }: TokenCheckOptions) =>
  async ({ provider, token }: ProviderToken, signal?: AbortSignal): Promise<CredentialCheckResult> => {
    const address = urls.get(provider)
    if (address === undefined) throw new Error(`no URL is configured for the provider ${provider}`)
    const url = new URL(address)
    const response = await get(url, { Authorization: `Bearer ${token}`, Accept: 'application/json' }, signal)
    return response.kind === 'response'
      ? classifyTokenResponse(provider, response.status)
      : unavailableResult(describeNetworkFailure(url.host, response.cause))
  }
