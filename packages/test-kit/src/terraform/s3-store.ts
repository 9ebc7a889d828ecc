import { AwsClient } from 'aws4fetch'
import { type HttpsResponse, httpsCall } from '../ceph/https-call.ts'
import { type BucketApi, type S3Connection, S3Error } from './bucket-resource.ts'

export interface ServerAddress {
  /** Address to connect to. The certificate must be valid for the host name of the connection, not for this address. */
  readonly host: string
  /** PEM of the only trusted CA. */
  readonly ca: string
}

export interface RequestOptions {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
}

/** Sends S3 requests as one user over TLS, each on a new connection, signed with SigV4 unless `anonymous`. */
export const createS3Client = ({ server, region, user, password, tls }: S3Connection, { host, ca }: ServerAddress) => {
  if (!tls) throw new Error('the client requires TLS')
  const { hostname, port } = new URL(`https://${server}`)
  const client = new AwsClient({ accessKeyId: user, secretAccessKey: password, service: 's3', region, retries: 0 })
  const send = (path: string, method: string, headers: Record<string, string>, body?: string): Promise<HttpsResponse> =>
    httpsCall({ host, port, servername: hostname, path, method, ca, headers: { ...headers, host: server } }, body)
  return {
    async signed(path: string, { method = 'GET', headers = {}, body }: RequestOptions = {}): Promise<HttpsResponse> {
      const sent = { method, headers, ...(body === undefined ? {} : { body }) }
      const request = await client.sign(`https://${server}${path}`, sent)
      return send(path, method, Object.fromEntries(request.headers), body)
    },
    anonymous: (path: string): Promise<HttpsResponse> => send(path, 'GET', {}),
  }
}

const parseErrorCode = (text: string): string => /<Code>(\w+)<\/Code>/.exec(text)?.[1] ?? 'no code'

/** The S3 calls of the provider on a real server: https://docs.aws.amazon.com/AmazonS3/latest/API/API_Operations_Amazon_Simple_Storage_Service.html */
export function createS3Store(connection: S3Connection, server: ServerAddress): BucketApi {
  const { signed } = createS3Client(connection, server)

  /** Returns undefined for a 404 with the code `notFoundCode`, or for a 404 to HEAD, which has no body. */
  const request = async (
    path: string,
    notFoundCode: string,
    options: RequestOptions = {},
  ): Promise<HttpsResponse | undefined> => {
    const answer = await signed(path, options)
    if (answer.status < 300) return answer
    const code = parseErrorCode(answer.text)
    if (answer.status === 404 && (options.method === 'HEAD' || code === notFoundCode)) return undefined
    throw new S3Error(answer.status, code)
  }

  return {
    async exists(bucket) {
      // As the provider: it asks for the location first, whose response, unlike that of HEAD, has the reason of a rejection.
      if ((await request(`/${bucket}?location`, 'NoSuchBucket')) === undefined) return false
      return (await request(`/${bucket}`, 'NoSuchBucket', { method: 'HEAD' })) !== undefined
    },
    async create(bucket, locking) {
      const body = `<CreateBucketConfiguration xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><LocationConstraint>${connection.region}</LocationConstraint></CreateBucketConfiguration>`
      const headers: Record<string, string> = locking ? { 'x-amz-bucket-object-lock-enabled': 'true' } : {}
      await request(`/${bucket}`, '', { method: 'PUT', headers, body })
    },
    async hasObjectLock(bucket) {
      const answer = await request(`/${bucket}?object-lock`, 'ObjectLockConfigurationNotFoundError')
      return answer?.text.includes('<ObjectLockEnabled>Enabled</ObjectLockEnabled>') ?? false
    },
    getPolicy: async bucket => (await request(`/${bucket}?policy`, 'NoSuchBucketPolicy'))?.text ?? '',
    deletePolicy: async bucket => (await signed(`/${bucket}?policy`, { method: 'DELETE' })).status,
    async isEmpty(bucket) {
      const answer = await request(`/${bucket}?list-type=2&max-keys=1`, '')
      return answer !== undefined && !answer.text.includes('<Contents>')
    },
    async delete(bucket) {
      await request(`/${bucket}`, 'NoSuchBucket', { method: 'DELETE' })
    },
  }
}
