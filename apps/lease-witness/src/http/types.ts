import type { BodyFailure } from '@pool/runtime/service/body-error'
import type { LeaseDirectory, LeaseDrain, LeaseService } from '../lease-service.ts'
import type { WitnessSettings } from '../settings.ts'
import type { Caller } from './tokens.ts'

export interface WitnessHttpEnv {
  /** `incoming`: on Node, where the body can still be read when the head has been decided. */
  Bindings: { readonly incoming?: { readBody(maxBytes: number): Promise<Uint8Array> } }
  /** What middleware and handlers store for each other and for the access log. */
  Variables: {
    settings: WitnessSettings
    requestId: string
    /** Of a request that has no `incoming`. */
    body: Uint8Array | BodyFailure
    /** The result of the request: an outcome of the lease service or an error code. */
    outcome: string
    /** The parts of `Authorization` that may be a token: log lines must not contain them. */
    secrets: readonly string[]
    /** The name or the fingerprint of the token, accepted or not. */
    tokenName?: string
    /** Set after authentication. */
    caller: Caller
    slot: string
    generation: number
    /** The first of the slots whose leases a request did not renew, and how many there are. */
    notRenewed?: { readonly count: number; readonly slots: readonly string[] }
    /** Whether the access line is written at `debug` only. */
    isRoutine?: boolean
    /** Logged at `debug` only. */
    request: Readonly<Record<string, unknown>>
  }
}

/** Counts a request of a token in a limit that several processes share. Whether the request is within it. */
export type SharedRequestLimit = (tokenName: string) => Promise<boolean>

/** One request and its response. Nothing in it is a slot, a holder or a token. */
export interface ObservedRequest {
  readonly method: string
  /** The pattern of the path, such as `/lease/:slot`; `none` if the path is not one of the witness. */
  readonly route: string
  readonly outcome: string
  readonly status: number
  /** Seconds until the response headers were ready, which includes a wait. */
  readonly seconds: number
}

/** The metrics of this process, in the text format of Prometheus. */
export interface MetricsSource {
  readonly contentType: string
  readonly text: () => Promise<string>
}

export interface Services {
  readonly leases: LeaseService
  readonly directory: LeaseDirectory
  /** Undefined: the leases are not in Durable Objects. */
  readonly drain?: LeaseDrain
  /** Undefined: each process has its own limit only. */
  readonly sharedRequestLimit?: SharedRequestLimit | undefined
  /** Called for each request when its response headers are ready. */
  readonly onRequest?: ((request: ObservedRequest) => void) | undefined
  /** Undefined: the platform has the metrics. */
  readonly metrics?: MetricsSource
  /** Whether the policies could not be read yet: it is unknown whether a token has one. */
  readonly lacksPolicies?: boolean
}
