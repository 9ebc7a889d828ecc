import type { WorkerEnv } from '../env.ts'
import type { LeaseDirectory, LeaseService } from '../lease-service.ts'

/** Why a body could not be read. After `over-drain-limit` and `aborted` the connection is unusable. */
export type BodyError = 'too-large' | 'over-drain-limit' | 'aborted'

/** What middleware and handlers store for each other and for the access log. */
export interface WitnessHttpEnv {
  Bindings: WorkerEnv
  Variables: {
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

/** Created per request, because a Worker receives its bindings with each request. `onError` gets the platform's error. */
export interface Services {
  readonly leases: (env: WorkerEnv, onError: (error: unknown) => void) => LeaseService
  readonly directory: (env: WorkerEnv, onError: (error: unknown) => void) => LeaseDirectory
}
