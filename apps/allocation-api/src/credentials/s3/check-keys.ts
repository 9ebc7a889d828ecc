import type { ObjectStorageKeys } from '@pool/contract'
import { AwsV4Signer } from 'aws4fetch'
import { verdictOf } from '../domain/classify-s3-response.ts'
import { failureMessage } from '../domain/network-errors.ts'
import { unavailable, type Verdict } from '../domain/result.ts'
import type { HttpsGet } from '../https-client.ts'
import { listAnswerOf } from './list-buckets-response.ts'

/** What the object storage says of keys; never tells the keys or its words. Rejects on a defect alone. */
export type CheckKeys = (keys: ObjectStorageKeys, signal?: AbortSignal) => Promise<Verdict>

export interface KeyCheckOptions {
  /** Host name below which the regions are, with `:port` when it is not 443. */
  readonly domain: string
  readonly get: HttpsGet
  /** Milliseconds since the epoch: a signature is good for 15 minutes about it. */
  readonly now: () => number
}

/** Basic format of ISO 8601, as a signature's date is written. */
const signingTime = (ms: number): string => new Date(ms).toISOString().replace(/[:-]|\.\d{3}/g, '')

/**
 * ListBuckets (Amazon S3 API Reference), signed by AWS Signature Version 4: the one call of S3 that needs no bucket and
 * changes nothing. Once, without retries.
 */
export const createKeyCheck =
  ({ domain, get, now }: KeyCheckOptions): CheckKeys =>
  async ({ region, accessKey, secretKey }, signal) => {
    const url = new URL(`https://${region}.${domain}/`)
    const signed = await new AwsV4Signer({
      url: url.href,
      accessKeyId: accessKey,
      secretAccessKey: secretKey,
      service: 's3',
      region,
      datetime: signingTime(now()),
    }).sign()
    const answer = await get(url, Object.fromEntries(signed.headers), signal)
    return answer.kind === 'answered'
      ? verdictOf(answer.status, listAnswerOf(answer.body))
      : unavailable(failureMessage(url.host, answer.cause))
  }
