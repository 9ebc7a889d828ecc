import { type BucketApi, type BucketVersion, bucketResource, type S3Connection } from './bucket-resource.ts'
import { bucket, minioProvider } from './minio-schema.ts'
import type { Provider } from './resource.ts'

/** `connect` reaches the server that the provider is configured with. Default of `version`: as 3.11.1. */
export function minio(
  connect: (connection: S3Connection) => BucketApi,
  version: BucketVersion = { removesPolicy: false },
): Provider {
  let connected: { store: BucketApi; connection: S3Connection } | undefined
  const getConnected = () => {
    if (!connected) throw new Error('the provider is not configured')
    return connected
  }
  return {
    name: 'Minio',
    source: 'aminueza/minio',
    schema: minioProvider,
    resources: { minio_s3_bucket: { schema: bucket, behavior: bucketResource(getConnected, version) } },
    hasLegacyTypes: true,
    configure({ minio_server, minio_region, minio_user, minio_password, minio_ssl }) {
      const connection = {
        server: String(minio_server),
        // Both defaults are the real provider's.
        region: String(minio_region ?? 'us-east-1'),
        tls: minio_ssl === true,
        user: String(minio_user),
        password: String(minio_password),
      }
      connected = { store: connect(connection), connection }
    },
  }
}
