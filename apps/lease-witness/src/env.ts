import type { LeaseObject, ObjectEnv } from './object/lease-object.ts'

/** The bindings of wrangler.toml, and the secret of the deployment. */
export interface WorkerEnv extends ObjectEnv {
  readonly LEASES: DurableObjectNamespace<LeaseObject>
  /** The allow-list: tokens separated by commas. If it is empty or absent, every request is rejected. */
  readonly BEARER_TOKENS_CSV?: string
}
