import type { ObjectStorageKeys } from '@pool/contract'
import { AwsV4Signer } from 'aws4fetch'
import { XMLParser, XMLValidator } from 'fast-xml-parser'
import * as z from 'zod'
import {
  acceptedResult,
  type CredentialCheckResult,
  describeNetworkFailure,
  type HttpsGet,
  rejectedResult,
  unavailableResult,
} from './https-client.ts'

/** The relevant part of a response to ListBuckets. */
export type ListBucketsResponse =
  | { readonly kind: 'buckets'; readonly owner: string }
  | { readonly kind: 'error'; readonly code: string }
  | { readonly kind: 'other' }

// Entities are not expanded, so that no document grows. Codes and ids are text even if they look like numbers.
const parser = new XMLParser({ ignoreAttributes: true, processEntities: false, parseTagValue: false })
const utf8 = new TextDecoder('utf-8', { fatal: true })

const declaration = z.unknown().optional()
/** Exactly one root element. */
const listBucketsDocument = z.union([
  z
    .strictObject({ '?xml': declaration, ListAllMyBucketsResult: z.object({ Owner: z.object({ ID: z.string() }) }) })
    .transform(({ ListAllMyBucketsResult: { Owner } }): ListBucketsResponse => ({ kind: 'buckets', owner: Owner.ID })),
  z
    .strictObject({ '?xml': declaration, Error: z.object({ Code: z.string() }) })
    .transform(({ Error: { Code } }): ListBucketsResponse => ({ kind: 'error', code: Code })),
])

export const parseXml = (body: Uint8Array): unknown => {
  try {
    const text = utf8.decode(body)
    // No S3 response has a document type declaration.
    if (/<!doctype/i.test(text)) return undefined
    const tree: unknown = parser.parse(text)
    // The parser accepts a truncated document; the validator does not.
    return XMLValidator.validate(text) === true ? tree : undefined
  } catch {
    return undefined
  }
}

/** A response to a request with `keys`. A code that quotes one of them is no code. */
export const parseS3Response = (
  body: Uint8Array,
  { accessKey, secretKey }: Pick<ObjectStorageKeys, 'accessKey' | 'secretKey'>,
): ListBucketsResponse => {
  const { data = { kind: 'other' } } = listBucketsDocument.safeParse(parseXml(body))
  const quotes = (key: string) => data.kind === 'error' && (data.code.includes(key) || key.includes(data.code))
  return quotes(accessKey) || quotes(secretKey) ? { kind: 'other' } : data
}

/** The owner that Ceph's gateway reports for an unsigned request. */
const ANONYMOUS = 'anonymous'

/** Codes that reject credentials (Amazon S3 API Reference, "Error responses"; UserSuspended is Ceph's). */
const rejections: ReadonlyMap<string, string> = new Map([
  [
    'InvalidAccessKeyId',
    'The object storage does not know this access key. Check that it is complete and belongs to this project.',
  ],
  ['SignatureDoesNotMatch', 'The secret key does not belong to this access key. Check that it is complete.'],
  [
    'AccessDenied',
    'The object storage denies ListBuckets for these credentials: they are wrong, or valid and restricted. A deployment needs permission to list and create buckets.',
  ],
  ['UserSuspended', 'The owner of these credentials is suspended at the object storage.'],
  ['AccountProblem', 'The object storage reports a problem with the account; contact its support.'],
  ['ExpiredToken', 'These credentials have expired; issue new ones.'],
  ['InvalidToken', 'These credentials are temporary and incomplete without a session token; issue permanent ones.'],
  ['InvalidSecurity', 'The object storage reports that these credentials are not valid.'],
])

const RATE_LIMITED = 'The object storage is limiting the request rate. Try again later.'

/** Codes that say nothing about the credentials. */
const obstacles: ReadonlyMap<string, string> = new Map([
  [
    'RequestTimeTooSkewed',
    'The clocks of this service and of the object storage differ too much for a valid signature. The credentials were not checked; correct the clocks.',
  ],
  ['SlowDown', RATE_LIMITED],
])

/** Codes are words. Anything else in their place is not quoted. */
const CODE = /^[A-Za-z][A-Za-z0-9.]{2,47}$/

const classifyStatus = (status: number, code: string): CredentialCheckResult => {
  const cause = [`status ${status}`, code].filter(Boolean).join(', ')
  if (status >= 300 && status < 400) {
    return unavailableResult(
      `The object storage answered with a redirect (${cause}). Redirects are not followed with credentials.`,
    )
  }
  if (status === 429) return unavailableResult(RATE_LIMITED)
  if (status >= 500) return unavailableResult(`The object storage failed (${cause}). Try again later.`)
  if (status === 401 || status === 403) {
    return rejectedResult(`The object storage rejects these credentials${code && ` (${code})`}.`)
  }
  return unavailableResult(
    code && status >= 400
      ? `The object storage rejects the request (${code}), so the credentials were not checked.`
      : `This is not an S3 response (status ${status}). The credentials were not checked.`,
  )
}

/** What a response to a signed ListBuckets means for the credentials that signed it. */
export const classifyS3Response = (status: number, response: ListBucketsResponse): CredentialCheckResult => {
  if (status === 200 && response.kind === 'buckets') {
    return response.owner !== '' && response.owner !== ANONYMOUS
      ? acceptedResult('The object storage accepts these credentials.')
      : unavailableResult(
          'The object storage treated the signed request as anonymous. The credentials were not checked.',
        )
  }
  const code = response.kind === 'error' && CODE.test(response.code) ? response.code : ''
  const obstacle = obstacles.get(code)
  if (obstacle && status >= 400) return unavailableResult(obstacle)
  // Some rejections have status 400. A redirect, a rate limit or a server error decides nothing, whatever its code.
  const rejection = status >= 400 && status < 500 && status !== 429 ? rejections.get(code) : undefined
  return rejection ? rejectedResult(`${rejection} (${code})`) : classifyStatus(status, code)
}

export interface KeyCheckOptions {
  /** Parent domain of the regions, with `:port` if it is not 443. */
  readonly domain: string
  readonly get: HttpsGet
  /** Milliseconds since the epoch; a signature is valid for 15 minutes before and after. */
  readonly now: () => number
}

/** ISO 8601 basic format, as in the date of a signature. */
const toSigningTime = (ms: number): string => new Date(ms).toISOString().replace(/[:-]|\.\d{3}/g, '')

/** Sends a GET of a path, signed with AWS Signature Version 4, to a region. Without retries. */
export const createSignedGet =
  ({ domain, get, now }: KeyCheckOptions) =>
  async ({ region, accessKey, secretKey }: ObjectStorageKeys, path: string, signal?: AbortSignal) => {
    const url = new URL(`https://${region}.${domain}/${path}`)
    const signed = await new AwsV4Signer({
      url: url.href,
      accessKeyId: accessKey,
      secretAccessKey: secretKey,
      service: 's3',
      region,
      datetime: toSigningTime(now()),
    }).sign()
    return { host: url.host, response: await get(url, Object.fromEntries(signed.headers), signal) }
  }

/**
 * ListBuckets (Amazon S3 API Reference): the only S3 operation that needs no bucket and changes nothing. Rejects only on a
 * defect.
 */
export const createKeyCheck = (options: KeyCheckOptions) => {
  const get = createSignedGet(options)
  return async (keys: ObjectStorageKeys, signal?: AbortSignal): Promise<CredentialCheckResult> => {
    const { host, response } = await get(keys, '', signal)
    return response.kind === 'response'
      ? classifyS3Response(response.status, parseS3Response(response.body, keys))
      : unavailableResult(describeNetworkFailure(host, response.cause))
  }
}
