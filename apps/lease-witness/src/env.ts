import type { PlacementSettings } from './object/domain/placement.ts'
import type { LeaseObject } from './object/lease-object.ts'
import type { ObjectEnv } from './object/slot.ts'
import type { WitnessSettings } from './settings.ts'

/** A secret of Cloudflare's Secrets Store. */
export interface StoredSecret {
  readonly get: () => Promise<string>
}

/** The bindings of wrangler.toml, and the secrets of the deployment. */
export interface WorkerEnv extends ObjectEnv, Omit<WitnessSettings, 'TOKEN_POLICIES'>, PlacementSettings {
  /** The policies themselves, or a secret of a store that holds them. */
  readonly TOKEN_POLICIES?: string | StoredSecret
  readonly LEASES: DurableObjectNamespace<LeaseObject>
  /** Counts the requests of each token in one location of the platform. Optional. */
  readonly REQUEST_LIMIT?: RateLimit
  /** Gets a data point for each request. Optional. */
  readonly METRICS?: AnalyticsEngineDataset
}
