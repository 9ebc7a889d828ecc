import type { LeaseObject } from './lease-object.ts'

/** The bindings of wrangler.toml, and the secret of the deployment. */
export interface Env {
  readonly OPENOVA_LEASES: KVNamespace
  readonly LEASES: DurableObjectNamespace<LeaseObject>
  /** The allow-list: tokens separated by commas. Empty or absent: nobody is let in. */
  readonly BEARER_TOKENS_CSV?: string
  /** `error`, `info` or `debug`; anything else is `info`. */
  readonly LOG_LEVEL?: string
}
