import { type Answer, httpsCall } from '@pool/test-ceph/https-call'
import { AwsClient } from 'aws4fetch'
import type { Connection } from './store.ts'

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
export const s3Calls = ({ server, region, user, password, tls }: Connection, { host, ca }: Place) => {
  if (!tls) throw new Error('nothing is sent without TLS')
  const { hostname, port } = new URL(`https://${server}`)
  const client = new AwsClient({ accessKeyId: user, secretAccessKey: password, service: 's3', region, retries: 0 })
  const send = (path: string, method: string, headers: Record<string, string>, body?: string): Promise<Answer> =>
    httpsCall({ host, port, servername: hostname, path, method, ca, headers: { ...headers, host: server } }, body)
  return {
    async signed(path: string, { method = 'GET', headers = {}, body }: Call = {}): Promise<Answer> {
      const sent = { method, headers, ...(body === undefined ? {} : { body }) }
      const request = await client.sign(`https://${server}${path}`, sent)
      return send(path, method, Object.fromEntries(request.headers), body)
    },
    anonymous: (path: string): Promise<Answer> => send(path, 'GET', {}),
  }
}
