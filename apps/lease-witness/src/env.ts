import type { LeaseObject, ObjectEnv } from './object/lease-object.ts'
import type { WitnessSettings } from './settings.ts'

/** The bindings of wrangler.toml, and the secrets of the deployment. */
export interface WorkerEnv extends ObjectEnv, WitnessSettings {
  readonly LEASES: DurableObjectNamespace<LeaseObject>
}
