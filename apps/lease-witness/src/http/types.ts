import type { LeaseDirectory, LeaseService } from '../lease-service.ts'
import type { WitnessSettings } from '../settings.ts'

/** Why a body could not be read. After `over-drain-limit` and `aborted` the connection is unusable. */
export type BodyError = 'too-large' | 'over-drain-limit' | 'aborted'

/** What middleware and handlers store for each other and for the access log. */
export interface WitnessHttpEnv {
  Variables: {
    settings: WitnessSettings
    requestId: string
    /** Set unless `bodyError` is. */
    body: Uint8Array
    bodyError?: BodyError
    /** The result of the request: an outcome of the lease service or an error code. */
    outcome: string
    slot: string
    generation: number
    /** Logged at `debug` only. */
    request: Readonly<Record<string, unknown>>
  }
}

export interface Services {
  readonly leases: LeaseService
  readonly directory: LeaseDirectory
}
