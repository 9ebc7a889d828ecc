import { type BucketApi, type S3Connection, S3Error } from './minio.ts'

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
  /** The response to the removal of a policy. Ceph before 19.2.2: 200; Hetzner, for a bucket that existed: 403. */
  policyRemovalStatus = 204
  /** Whether a bucket can be created but not looked up, as after a withdrawal of rights. */
  rejectsLookups = false

  put(name: string, { region = 'fsn1', locking = false, policy = '', objects = [] as string[] } = {}): void {
    this.buckets.set(name, { region, locking, policy, objects: new Set(objects) })
  }

  connect(connection: S3Connection): BucketApi {
    this.connections.push(connection)
    const authenticate = () => {
      const secret = this.users.get(connection.user)
      if (secret === undefined) throw new S3Error(403, 'InvalidAccessKeyId')
      if (secret !== connection.password) throw new S3Error(403, 'SignatureDoesNotMatch')
      return this.buckets
    }
    const getBucket = (name: string): Bucket => {
      const bucket = authenticate().get(name)
      if (!bucket) throw new S3Error(404, 'NoSuchBucket')
      return bucket
    }
    return {
      exists: async name => {
        const found = authenticate().has(name)
        if (found && this.rejectsLookups) throw new S3Error(403, 'AccessDenied')
        return found
      },
      create: async (name, locking) => {
        authenticate()
        this.put(name, { region: connection.region, locking })
      },
      hasObjectLock: async name => getBucket(name).locking,
      getPolicy: async name => getBucket(name).policy,
      deletePolicy: async name => {
        if (this.policyRemovalStatus < 300) getBucket(name).policy = ''
        return this.policyRemovalStatus
      },
      isEmpty: async name => getBucket(name).objects.size === 0,
      delete: async name => void authenticate().delete(name),
    }
  }
}
