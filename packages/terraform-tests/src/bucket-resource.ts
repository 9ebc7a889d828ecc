import { Refused } from './errors.ts'
import type { Resource } from './resource.ts'
import type { Connection, Store } from './store.ts'
import type { Attributes } from './value.ts'

/** The bucket as the real provider handles it, as far as its source of 3.5 was read. `connected` is who it reaches. */
export function bucketResource(connected: () => { store: Store; connection: Connection }): Resource {
  const told = (name: string): Attributes => {
    const { server, tls } = connected().connection
    return {
      id: name,
      bucket: name,
      arn: `arn:aws:s3:::${name}`,
      bucket_domain_name: `${tls ? 'https' : 'http'}://${server}/${name}`,
    }
  }

  return {
    async write(planned, prior) {
      const { store } = connected()
      const name = String(planned.bucket)
      if (planned.acl !== 'private') throw new Error('no test needs a bucket that is not private')
      if (prior === null) {
        // The provider asks before it makes: S3 itself answers 200 to whoever makes a bucket of his own again.
        if (await store.has(name)) throw new Refused('bucket already exists!', name)
        await store.make(name, planned.object_locking === true)
      }
      if (prior?.acl !== planned.acl) await store.dropPolicy(name)
      return { ...planned, ...told(name) }
    },

    // Neither policy nor lock nor quota is looked at again: what somebody changes by hand does not show.
    async read(state) {
      const name = String(state.id)
      return (await connected().store.has(name)) ? { ...state, ...told(name) } : null
    },

    async remove(state) {
      const { store } = connected()
      const name = String(state.id)
      if (state.force_destroy !== true && !(await store.isEmpty(name))) {
        throw new Refused('bucket is not empty', `${name}: set force_destroy`)
      }
      await store.remove(name)
    },

    // An import leaves force_destroy open, so that the next plan shows it as a change in place.
    async named(name) {
      const { store } = connected()
      if (!(await store.has(name))) throw new Refused('404 Not Found', `could not read bucket ${name}`)
      const acl = (await store.policyOf(name)) === '' ? 'private' : 'custom'
      return { id: name, acl, object_locking: await store.isLocking(name) }
    },
  }
}
