import { type HttpsResponse, httpsCall } from '@pool/test-ceph/https-call'
import { AwsClient } from 'aws4fetch'
import type { BucketApi, S3Connection } from './bucket-resource.ts'
import { ApiError } from './resource.ts'

export interface Place {
  /** Address to connect to, whatever the name of the server resolves to; the certificate must be for the name. */
  readonly host: string
  /** PEM of the authority that is trusted, and no other. */
  readonly ca: string
}

export interface Call {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
}

/** Requests of S3 as one user, over TLS, on a connection each, signed (SigV4) unless they are `anonymous`. */
export const s3Calls = ({ server, region, user, password, tls }: S3Connection, { host, ca }: Place) => {
  if (!tls) throw new Error('nothing is sent without TLS')
  const { hostname, port } = new URL(`https://${server}`)
  const client = new AwsClient({ accessKeyId: user, secretAccessKey: password, service: 's3', region, retries: 0 })
  const send = (path: string, method: string, headers: Record<string, string>, body?: string): Promise<HttpsResponse> =>
    httpsCall({ host, port, servername: hostname, path, method, ca, headers: { ...headers, host: server } }, body)
  return {
    async signed(path: string, { method = 'GET', headers = {}, body }: Call = {}): Promise<HttpsResponse> {
      const sent = { method, headers, ...(body === undefined ? {} : { body }) }
      const request = await client.sign(`https://${server}${path}`, sent)
      return send(path, method, Object.fromEntries(request.headers), body)
    },
    anonymous: (path: string): Promise<HttpsResponse> => send(path, 'GET', {}),
  }
}

const codeOf = (text: string): string => /<Code>(\w+)<\/Code>/.exec(text)?.[1] ?? 'no code'

/** The calls on a real server: https://docs.aws.amazon.com/AmazonS3/latest/API/API_Operations_Amazon_Simple_Storage_Service.html */
export function s3Store(connection: S3Connection, place: Place): BucketApi {
  const { signed } = s3Calls(connection, place)

  /** Undefined where there is none: 404 with one of these codes, or to HEAD, which has no body. */
  const asked = async (path: string, none: string, wish: Call = {}): Promise<HttpsResponse | undefined> => {
    const answer = await signed(path, wish)
    if (answer.status < 300) return answer
    const code = codeOf(answer.text)
    if (answer.status === 404 && (wish.method === 'HEAD' || code === none)) return undefined
    throw new ApiError(String(answer.status), code)
  }

  return {
    has: async bucket => (await asked(`/${bucket}`, 'NoSuchBucket', { method: 'HEAD' })) !== undefined,
    async create(bucket, locking) {
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
