import type { IncomingMessage } from 'node:http'
import { Agent, request } from 'node:https'
import { createSecureContext, getCACertificates } from 'node:tls'
import { causeOf, type FailureCause } from './domain/network-errors.ts'

export interface Got {
  readonly kind: 'answered'
  readonly status: number
  readonly body: Buffer
}

/** No whole answer; `cause` says how far it came. Nothing of what the other side sent is kept. */
export interface Failed {
  readonly kind: 'failed'
  readonly cause: FailureCause
}

export interface HttpsGetOptions {
  /** Over everything: look-up, connect, TLS, headers and the whole body. */
  readonly deadlineMs: number
  /** PEM of authorities that are trusted besides those of the process. */
  readonly extraCa: string | null
}

export type HttpsGet = (
  url: URL,
  headers: Readonly<Record<string, string>>,
  signal?: AbortSignal,
) => Promise<Got | Failed>

/** Larger than any answer that counts: S3 lists a thousand buckets in 200 KB. */
const LARGEST_BODY_BYTES = 1_024 * 1_024

/** The whole body; undefined: it is larger than any that counts. A body that breaks off rejects. */
const bodyOf = async (response: IncomingMessage): Promise<Buffer | undefined> => {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of response as AsyncIterable<Buffer>) {
    size += chunk.byteLength
    if (size > LARGEST_BODY_BYTES) return undefined
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

/**
 * One GET over TLS, on a connection of its own, so that no other request shares what is known of the credentials in
 * `headers`. The certificate is always verified, whatever NODE_TLS_REJECT_UNAUTHORIZED says; a redirect is an answer
 * like any other.
 */
export const createHttpsGet = ({ deadlineMs, extraCa }: HttpsGetOptions): HttpsGet => {
  // Made once: reading some 150 certificates takes longer than the rest of a request.
  const trust =
    extraCa === null ? {} : { secureContext: createSecureContext({ ca: [...getCACertificates('default'), extraCa] }) }
  const agent = new Agent({ keepAlive: false, maxCachedSessions: 0, rejectUnauthorized: true, ...trust })
  return async (url, headers, signal) => {
    const deadline = AbortSignal.timeout(deadlineMs)
    const ended = signal ? AbortSignal.any([deadline, signal]) : deadline
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>()
    const asked = request(url, { agent, headers, signal: ended })
    asked.on('response', resolve).on('error', reject).end()
    let response: IncomingMessage | undefined
    try {
      response = await promise
      const body = await bodyOf(response)
      // A body whose length is not told ends with its connection (RFC 9112 section 6.3), also where we end that.
      ended.throwIfAborted()
      if (body === undefined) return { kind: 'failed', cause: 'too-large' }
      return { kind: 'answered', status: response.statusCode ?? 0, body }
    } catch (error) {
      if (deadline.aborted) return { kind: 'failed', cause: 'deadline' }
      if (signal?.aborted) return { kind: 'failed', cause: 'given-up' }
      return { kind: 'failed', cause: response ? 'half-a-body' : causeOf(error) }
    } finally {
      asked.destroy()
    }
  }
}
