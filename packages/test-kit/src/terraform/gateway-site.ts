import { dirname, join } from 'node:path'
import { startGateway } from '../ceph/gateway.ts'
import { type BucketApi, type S3Connection, S3Error } from './bucket-resource.ts'
import { startGatewayProxy } from './gateway-proxy.ts'
import { findProviderEnvironment, usesRealProviders } from './real-providers.ts'
import { createS3Client, createS3Store } from './s3-store.ts'

interface Keys {
  readonly accessKey: string
  readonly secretKey: string
}

/** A Ceph gateway as `fsn1.<domain>`, for the double of the provider or, with REAL_PROVIDERS=1, for the real one. */
export interface GatewaySite {
  /** host:port, without region. */
  readonly domain: string
  /** The CA of the gateway's certificate. */
  readonly caFile: string
  /** Sends requests with the keys of the only user. */
  readonly client: ReturnType<typeof createS3Client>
  /** Connects the double. */
  connect(connection: S3Connection): BucketApi
  /** The variables for the real provider; null for the double. */
  readonly realEnvironment: Readonly<Record<string, string>> | null
  /** Whether the lookup of an existing bucket is rejected with 403, so that a creation fails half-way. */
  rejectLookups(rejects: boolean): void
  /** The status with which the removal of a policy is answered to the real provider. Null: that of the gateway. */
  answerPolicyRemoval(status: 200 | 204 | 403 | null): void
  stop(): Promise<void>
}

const DOMAIN = 'storage.test'

export async function startGatewaySite(keys: Keys): Promise<GatewaySite> {
  const gateway = await startGateway({ names: [`*.${DOMAIN}`] })
  await gateway.addUser(keys)
  const proxy = usesRealProviders
    ? await startGatewayProxy(gateway, { domain: DOMAIN, caFile: join(dirname(gateway.caFile), 'proxy-ca.pem') })
    : null
  let rejects = false
  let removalStatus: number | null = null
  proxy?.intercept((method, query) => {
    if (rejects && method === 'HEAD') return { status: 403, code: 'AccessDenied' }
    const isRemoval = method === 'DELETE' && query === 'policy'
    return isRemoval && removalStatus !== null ? { status: removalStatus, code: 'AccessDenied' } : null
  })
  const domain = `${DOMAIN}:${gateway.port}`
  const connection = {
    server: `fsn1.${domain}`,
    region: 'fsn1',
    user: keys.accessKey,
    password: keys.secretKey,
    tls: true,
  }
  return {
    domain,
    caFile: gateway.caFile,
    client: createS3Client(connection, gateway),
    connect(connection) {
      const store = createS3Store(connection, gateway)
      const exists = async (bucket: string) => {
        const found = await store.exists(bucket)
        if (found && rejects) throw new S3Error(403, 'AccessDenied')
        return found
      }
      return { ...store, exists }
    },
    realEnvironment: proxy && { ...findProviderEnvironment(), ...proxy.environment },
    rejectLookups(next) {
      rejects = next
    },
    answerPolicyRemoval(status) {
      removalStatus = status
    },
    async stop() {
      proxy?.stop()
      await gateway.stop()
    },
  }
}
