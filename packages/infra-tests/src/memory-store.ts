import type { BucketApi, S3Connection } from './bucket-resource.ts'
import { ApiError } from './resource.ts'

interface Bucket {
  readonly region: string
  readonly locking: boolean
  readonly objects: Set<string>
  policy: string
}

/** Object storage in memory: users, buckets and connections. */
export class ObjectStorage {
  readonly users = new Map<string, string>()
  readonly buckets = new Map<string, Bucket>()
  readonly connections: S3Connection[] = []

  put(name: string, { region = 'fsn1', locking = false, policy = '', objects = [] as string[] } = {}): void {
    this.buckets.set(name, { region, locking, policy, objects: new Set(objects) })
  }

  connect(connection: S3Connection): BucketApi {
    this.connections.push(connection)
    const authenticate = () => {
      const secret = this.users.get(connection.user)
      if (secret === undefined) throw new ApiError('403 Forbidden', 'InvalidAccessKeyId')
      if (secret !== connection.password) throw new ApiError('403 Forbidden', 'SignatureDoesNotMatch')
      return this.buckets
    }
    const getBucket = (name: string): Bucket => {
      const bucket = authenticate().get(name)
      if (!bucket) throw new ApiError('404 Not Found', 'NoSuchBucket')
      return bucket
    }
    return {
      exists: async name => authenticate().has(name),
      create: async (name, locking) => {
        authenticate()
        this.put(name, { region: connection.region, locking })
      },
      hasObjectLock: async name => getBucket(name).locking,
      getPolicy: async name => getBucket(name).policy,
      deletePolicy: async name => {
        getBucket(name).policy = ''
      },
      isEmpty: async name => getBucket(name).objects.size === 0,
      delete: async name => void authenticate().delete(name),
    }
  }
}
