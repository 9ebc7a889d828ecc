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
    const checked = () => {
      const secret = this.users.get(connection.user)
      if (secret === undefined) throw new ApiError('403 Forbidden', 'InvalidAccessKeyId')
      if (secret !== connection.password) throw new ApiError('403 Forbidden', 'SignatureDoesNotMatch')
      return this.buckets
    }
    const found = (name: string): Bucket => {
      const bucket = checked().get(name)
      if (!bucket) throw new ApiError('404 Not Found', 'NoSuchBucket')
      return bucket
    }
    return {
      has: async name => checked().has(name),
      create: async (name, locking) => {
        checked()
        this.put(name, { region: connection.region, locking })
      },
      isLocking: async name => found(name).locking,
      policyOf: async name => found(name).policy,
      dropPolicy: async name => {
        found(name).policy = ''
      },
      isEmpty: async name => found(name).objects.size === 0,
      remove: async name => void checked().delete(name),
    }
  }
}
