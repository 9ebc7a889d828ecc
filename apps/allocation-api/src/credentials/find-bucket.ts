import type { ObjectStorageKeys } from '@pool/contract'
import * as z from 'zod'
import {
  classifyS3Response,
  createSignedGet,
  type KeyCheckOptions,
  parseS3Response,
  parseXml,
} from './check-s3-keys.ts'
import type { BucketLookup } from './domain/bucket-lookup.ts'
import { describeNetworkFailure } from './https-client.ts'

export type FindBucket = (keys: ObjectStorageKeys, bucket: string) => Promise<BucketLookup>

const named = z.object({ Name: z.string() })
/** The parser returns an object for one bucket, and a text for none. */
const bucketList = z.object({
  ListAllMyBucketsResult: z.object({
    Buckets: z.union([z.object({ Bucket: z.union([z.array(named), named.transform(one => [one])]) }), z.literal('')]),
  }),
})

export const parseBucketNames = (body: Uint8Array): readonly string[] => {
  const { data } = bucketList.safeParse(parseXml(body))
  const list = data?.ListAllMyBucketsResult.Buckets
  return list ? list.Bucket.map(({ Name }) => Name) : []
}

/**
 * Looks a bucket up. GetBucketLocation shows whether it exists, and ListBuckets whose it is: an owner can be denied the first,
 * and a public bucket of another account answers it.
 */
export const createBucketLookup = (options: KeyCheckOptions): FindBucket => {
  const get = createSignedGet(options)
  const ask = async (keys: ObjectStorageKeys, path: string) => {
    const { host, response } = await get(keys, path)
    if (response.kind === 'response') return { ...response, answer: parseS3Response(response.body, keys) }
    return { kind: 'unavailable', message: describeNetworkFailure(host, response.cause) } as const
  }
  return async (keys, bucket) => {
    const location = await ask(keys, `${bucket}?location`)
    if (location.kind === 'unavailable') return location
    const { status, answer } = location
    const code = answer.kind === 'error' ? answer.code : ''
    if (status === 404 && code === 'NoSuchBucket') return { kind: 'absent' }
    if (status !== 200 && !(status === 403 && code === 'AccessDenied')) {
      return { kind: 'unavailable', message: classifyS3Response(status, answer).message }
    }
    const list = await ask(keys, '')
    if (list.kind === 'unavailable') return list
    const { kind, message } = classifyS3Response(list.status, list.answer)
    if (kind !== 'accepted') return { kind: 'unavailable', message }
    return { kind: parseBucketNames(list.body).includes(bucket) ? 'owned' : 'foreign' }
  }
}
