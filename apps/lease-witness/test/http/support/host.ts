import type { LeaseState } from '../../../src/lease/lease.ts'

/** Environment variables of the witness. Undefined: not set. */
export type WitnessSettings = Readonly<Record<string, string | undefined>>

export type RequestBody = string | Uint8Array<ArrayBuffer> | ReadableStream

/** A request as a client sends it: a `Request` of the standard rejects some methods. */
export interface WitnessRequest {
  readonly method: string
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: RequestBody
  readonly signal?: AbortSignal
}

/** What the tests of the HTTP interface need of the witness that they run against, beside its responses. */
export interface WitnessHost {
  /** `settings` replace variables of the same name for this request. */
  readonly send: (request: WitnessRequest, settings: WitnessSettings) => Promise<Response>
  /** Replaces the state of a slot's lease. */
  readonly seed: (slot: string, lease: LeaseState) => Promise<void>
  /** Everything that is stored for a slot, for a comparison. */
  readonly readStored: (slot: string) => Promise<unknown>
  /** The number of slots for which anything is stored. */
  readonly countStored: () => Promise<number>
  /** The number of readers that wait for a change of the slot. */
  readonly countWaiters: (slot: string) => Promise<number>
  /** Updates what `GET /leases` reads, if that is a copy. */
  readonly writeCopy: (slot: string) => Promise<void>
}

let installed: WitnessHost | undefined

/** Called by the setup file of each project that runs the tests. */
export const installHost = (host: WitnessHost): void => {
  installed = host
}

export const getHost = (): WitnessHost => {
  if (!installed) throw new Error('no host is installed; add a setup file that calls installHost to the project')
  return installed
}
