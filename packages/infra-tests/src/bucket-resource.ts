import { ApiError, type ResourceBehavior } from './resource.ts'
import type { Attributes } from './schema.ts'

/** The connection settings of the provider. */
export interface S3Connection {
  /** host[:port] */
  readonly server: string
  readonly region: string
  readonly user: string
  readonly password: string
  readonly tls: boolean
}

/** The S3 calls that the provider makes for a bucket. They reject with `ApiError`. */
export interface BucketApi {
  exists(bucket: string): Promise<boolean>
  create(bucket: string, locking: boolean): Promise<void>
  hasObjectLock(bucket: string): Promise<boolean>
  /** The bucket policy as JSON; empty: no policy, so the bucket is private. */
  getPolicy(bucket: string): Promise<string>
  deletePolicy(bucket: string): Promise<void>
  isEmpty(bucket: string): Promise<boolean>
  delete(bucket: string): Promise<void>
}

/** The bucket resource, after the source of the real provider (3.5). */
export function bucketResource(getConnected: () => { store: BucketApi; connection: S3Connection }): ResourceBehavior {
  const computedAttributes = (name: string): Attributes => {
    const { server, tls } = getConnected().connection
    return {
      id: name,
      bucket: name,
      arn: `arn:aws:s3:::${name}`,
      bucket_domain_name: `${tls ? 'https' : 'http'}://${server}/${name}`,
    }
  }

  return {
    async write(planned, prior) {
      const { store } = getConnected()
      const name = String(planned.bucket)
      if (planned.acl !== 'private') throw new Error('no test needs a bucket that is not private')
      if (prior === null) {
        // The provider checks first, because S3 returns 200 when a user creates its own bucket again.
        if (await store.exists(name)) throw new ApiError('bucket already exists!', name)
        await store.create(name, planned.object_locking === true)
      }
      if (prior?.acl !== planned.acl) await store.deletePolicy(name)
      return { ...planned, ...computedAttributes(name) }
    },

    // The provider does not read policy, lock or quota: manual changes are not detected.
    async read(state) {
      const name = String(state.id)
      return (await getConnected().store.exists(name)) ? { ...state, ...computedAttributes(name) } : null
    },

    async remove(state) {
      const { store } = getConnected()
      const name = String(state.id)
      if (state.force_destroy !== true && !(await store.isEmpty(name))) {
        throw new ApiError('bucket is not empty', `${name}: set force_destroy`)
      }
      await store.delete(name)
    },

    // An import does not set force_destroy, so the next plan shows an update in place.
    async import(name) {
      const { store } = getConnected()
      if (!(await store.exists(name))) throw new ApiError('404 Not Found', `could not read bucket ${name}`)
      const acl = (await store.getPolicy(name)) === '' ? 'private' : 'custom'
      return { id: name, acl, object_locking: await store.hasObjectLock(name) }
    },
  }
}
