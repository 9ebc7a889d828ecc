import { readdirSync, readFileSync } from 'node:fs'
import { AwsClient } from 'aws4fetch'
import { type Gateway, type HttpsResponse, httpsCall, type KeyPair, missingGateway } from '../../src/ceph/gateway.ts'

/** Without Ceph the tests are skipped with one line of output. REQUIRE_ALL_DEPS=1 lets them run and fail. */
export const isSkipped = missingGateway !== undefined && process.env.REQUIRE_ALL_DEPS !== '1'
if (isSkipped) process.stderr.write(`${missingGateway}\n`)

/** The running programs of the cluster in this folder, whose configuration is in their environment (proc(5)). */
export const findRunningPrograms = (folder: string): string[] =>
  readdirSync('/proc')
    .filter(name => /^\d+$/.test(name))
    .flatMap(pid => {
      try {
        const [program = ''] = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')
        const isInCluster = readFileSync(`/proc/${pid}/environ`, 'utf8').includes(`CEPH_CONF=${folder}/`)
        return isInCluster && !program.endsWith('/sh') ? [program] : []
      } catch {
        // The process has exited, or belongs to another user.
        return []
      }
    })

export interface Call {
  readonly headers?: Readonly<Record<string, string>>
  readonly method?: string
  readonly path?: string
  readonly body?: string
  readonly servername?: string
  /** PEM of the only trusted CA. Null: the CAs that the machine trusts. */
  readonly ca?: string | null
}

/** Sends one request on a new connection. Rejects on connection errors. */
export const call = ({ host, port, ca: own }: Gateway, options: Call = {}): Promise<HttpsResponse> => {
  const { headers = {}, method = 'GET', path = '/', body, servername = 'fsn1.storage.example', ca = own } = options
  const trusted = ca === null ? {} : { ca }
  return httpsCall({ host, port, method, path, headers, servername, ...trusted }, body)
}

export interface SignedCall extends Call {
  readonly region?: string
  /** Time of the signature. Default: now. */
  readonly at?: Date
}

/** Signature version 4: https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html */
export const callSigned = async (gateway: Gateway, keys: KeyPair, options: SignedCall = {}): Promise<HttpsResponse> => {
  const { region = 'fsn1', at = new Date(), path = '/', method = 'GET', body } = options
  const client = new AwsClient({
    accessKeyId: keys.accessKey,
    secretAccessKey: keys.secretKey,
    service: 's3',
    region,
    retries: 0,
  })
  const { headers } = await client.sign(`https://${gateway.host}:${gateway.port}${path}`, {
    method,
    ...(body === undefined ? {} : { body }),
    aws: { datetime: at.toISOString().replace(/[:-]|\.\d{3}/g, '') },
  })
  return call(gateway, { ...options, headers: Object.fromEntries(headers) })
}
