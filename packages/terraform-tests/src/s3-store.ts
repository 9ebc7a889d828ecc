import type { Answer } from '@pool/test-ceph/https-call'
import { Refused } from './errors.ts'
import { type Call, type Place, s3Calls } from './s3-call.ts'
import type { Connection, Store } from './store.ts'

const codeOf = (text: string): string => /<Code>(\w+)<\/Code>/.exec(text)?.[1] ?? 'no code'

/** The calls on a real server: https://docs.aws.amazon.com/AmazonS3/latest/API/API_Operations_Amazon_Simple_Storage_Service.html */
export function s3Store(connection: Connection, place: Place): Store {
  const { signed } = s3Calls(connection, place)

  /** Undefined where there is none: 404 with one of these codes, or to HEAD, which has no body. */
  const asked = async (path: string, none: string, wish: Call = {}): Promise<Answer | undefined> => {
    const answer = await signed(path, wish)
    if (answer.status < 300) return answer
    const code = codeOf(answer.text)
    if (answer.status === 404 && (wish.method === 'HEAD' || code === none)) return undefined
    throw new Refused(String(answer.status), code)
  }

  return {
    has: async bucket => (await asked(`/${bucket}`, 'NoSuchBucket', { method: 'HEAD' })) !== undefined,
    async make(bucket, locking) {
      const body = `<CreateBucketConfiguration xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><LocationConstraint>${connection.region}</LocationConstraint></CreateBucketConfiguration>`
      const headers: Record<string, string> = locking ? { 'x-amz-bucket-object-lock-enabled': 'true' } : {}
      await asked(`/${bucket}`, '', { method: 'PUT', headers, body })
    },
    async isLocking(bucket) {
      const answer = await asked(`/${bucket}?object-lock`, 'ObjectLockConfigurationNotFoundError')
      return answer?.text.includes('<ObjectLockEnabled>Enabled</ObjectLockEnabled>') ?? false
    },
    policyOf: async bucket => (await asked(`/${bucket}?policy`, 'NoSuchBucketPolicy'))?.text ?? '',
    async dropPolicy(bucket) {
      await asked(`/${bucket}?policy`, 'NoSuchBucketPolicy', { method: 'DELETE' })
    },
    async isEmpty(bucket) {
      const answer = await asked(`/${bucket}?list-type=2&max-keys=1`, '')
      return answer !== undefined && !answer.text.includes('<Contents>')
    },
    async remove(bucket) {
      await asked(`/${bucket}`, 'NoSuchBucket', { method: 'DELETE' })
    },
  }
}
