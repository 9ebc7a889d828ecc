import type { IncomingMessage } from 'node:http'
import { Agent, request } from 'node:https'
import { createSecureContext, getCACertificates } from 'node:tls'
import { proxyEnv } from '../lib/proxy.ts'

/** Why there is no complete response. */
export type NetworkFailure =
  | 'dns'
  | 'refused'
  | 'unreachable'
  | 'reset'
  | 'tls'
  | 'not-http'
  | 'truncated'
  | 'too-large'
  | 'timeout'
  | 'aborted'

export interface HttpsResponse {
  readonly kind: 'response'
  readonly status: number
  readonly body: Buffer
}

/** Contains nothing that the server sent. */
export interface HttpsFailure {
  readonly kind: 'failed'
  readonly cause: NetworkFailure
}

export interface HttpsGetOptions {
  /** For the whole request: DNS, connect, TLS, headers and body. Milliseconds. */
  readonly deadlineMs: number
  /** PEM of certificate authorities trusted in addition to those of the process. */
  readonly extraCa: string | null
}

export type HttpsGet = (
  url: URL,
  headers: Readonly<Record<string, string>>,
  signal?: AbortSignal,
) => Promise<HttpsResponse | HttpsFailure>

/** More than any valid response, such as a list of a thousand buckets. */
const MAX_BODY_BYTES = 1_024 * 1_024

/** Codes of the system (errno(3), getaddrinfo(3)), of OpenSSL as Node names them, and of Node's HTTP parser. */
const failuresByCode: readonly (readonly [code: RegExp, failure: NetworkFailure])[] = [
  [/^(?:ENOTFOUND|EAI_[A-Z]+)$/, 'dns'],
  [/^ECONNREFUSED$/, 'refused'],
  [/^(?:ECONNRESET|EPIPE|ECONNABORTED)$/, 'reset'],
  [/^HPE_/, 'not-http'],
  [
    /^(?:ERR_TLS_|ERR_SSL_|ERR_OSSL_|CERT_|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_)|^(?:EPROTO|INVALID_CA|HOSTNAME_MISMATCH)$/,
    'tls',
  ],
]

/** Classifies an error of `node:https` that came before the response headers. */
export const toNetworkFailure = (error: unknown): NetworkFailure => {
  const code = error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : ''
  return failuresByCode.find(([pattern]) => pattern.test(code))?.[1] ?? 'unreachable'
}

const explanations: Readonly<Record<NetworkFailure, string>> = {
  dns: 'its name could not be resolved',
  refused: 'the connection was refused',
  unreachable: 'it could not be reached',
  reset: 'it ended the connection without a response',
  tls: 'the secure connection failed (TLS or its certificate)',
  'not-http': 'the response is not HTTP',
  truncated: 'the response was truncated',
  'too-large': 'the response is too large',
  timeout: 'it did not respond in time',
  aborted: 'the client disconnected',
}

/** Completes a sentence about a host. */
export const explainNetworkFailure = (failure: NetworkFailure): string => explanations[failure]

/**
 * What a provider's response means for the credentials. `unavailable`: it means nothing for them. `message` is for
 * users and is always our own text, as a provider's response may quote the credentials.
 */
export interface CredentialCheckResult {
  readonly kind: 'accepted' | 'rejected' | 'unavailable'
  readonly message: string
}

export const acceptedResult = (message: string): CredentialCheckResult => ({ kind: 'accepted', message })
export const rejectedResult = (message: string): CredentialCheckResult => ({ kind: 'rejected', message })
export const unavailableResult = (message: string): CredentialCheckResult => ({ kind: 'unavailable', message })

/** For users. `host` comes from the configuration. */
export const describeNetworkFailure = (host: string, failure: NetworkFailure): string =>
  `Request to ${host} failed: ${explanations[failure]}. The credentials could not be checked. Try again later.`

/** Undefined if the body is too large. Rejects if it is truncated. */
const readBody = async (response: IncomingMessage): Promise<Buffer | undefined> => {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of response as AsyncIterable<Buffer>) {
    size += chunk.byteLength
    if (size > MAX_BODY_BYTES) return undefined
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

/**
 * One GET on a new TLS connection, so that no other request shares a connection with the credentials in `headers`. The
 * certificate is always verified, whatever NODE_TLS_REJECT_UNAUTHORIZED says. Redirects are not followed.
 */
export const createHttpsGet = ({ deadlineMs, extraCa }: HttpsGetOptions): HttpsGet => {
  // Created once: reading some 150 certificates takes longer than the rest of a request.
  const trust =
    extraCa === null ? {} : { secureContext: createSecureContext({ ca: [...getCACertificates('default'), extraCa] }) }
  const agent = new Agent({ keepAlive: false, maxCachedSessions: 0, rejectUnauthorized: true, proxyEnv, ...trust })
  return async (url, headers, signal) => {
    const deadline = AbortSignal.timeout(deadlineMs)
    const ended = signal ? AbortSignal.any([deadline, signal]) : deadline
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>()
    const sent = request(url, { agent, headers, signal: ended })
    sent.on('response', resolve).on('error', reject).end()
    let response: IncomingMessage | undefined
    try {
      response = await promise
      const body = await readBody(response)
      // A body without Content-Length ends with its connection (RFC 9112 section 6.3), also if we end that.
      ended.throwIfAborted()
      if (body === undefined) return { kind: 'failed', cause: 'too-large' }
      return { kind: 'response', status: response.statusCode ?? 0, body }
    } catch (error) {
      if (deadline.aborted) return { kind: 'failed', cause: 'timeout' }
      if (signal?.aborted) return { kind: 'failed', cause: 'aborted' }
      return { kind: 'failed', cause: response ? 'truncated' : toNetworkFailure(error) }
    } finally {
      sent.destroy()
    }
  }
}
