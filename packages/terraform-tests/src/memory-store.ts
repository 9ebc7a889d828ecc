import { Refused } from './errors.ts'
import type { Connection, Store } from './store.ts'

interface Bucket {
  readonly region: string
  readonly locking: boolean
  readonly objects: Set<string>
  policy: string
}

/** Object storage in memory: its users, its buckets, and the connections that were made to it. */
export class ObjectStorage {
  readonly users = new Map<string, string>()
  readonly buckets = new Map<string, Bucket>()
  readonly connections: Connection[] = []

  put(name: string, { region = 'fsn1', locking = false, policy = '', objects = [] as string[] } = {}): void {
    this.buckets.set(name, { region, locking, policy, objects: new Set(objects) })
  }

  connect(connection: Connection): Store {
    this.connections.push(connection)
    const checked = () => {
      const secret = this.users.get(connection.user)
      if (secret === undefined) throw new Refused('403 Forbidden', 'InvalidAccessKeyId')
      if (secret !== connection.password) throw new Refused('403 Forbidden', 'SignatureDoesNotMatch')
      return this.buckets
    }
    const found = (name: string): Bucket => {
      const bucket = checked().get(name)
      if (!bucket) throw new Refused('404 Not Found', 'NoSuchBucket')
      return bucket
    }
    return {
      has: async name => checked().has(name),
      make: async (name, locking) => {
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
