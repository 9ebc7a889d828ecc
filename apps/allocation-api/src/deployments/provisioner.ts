import type { Line } from './domain/types.ts'

/** One making of the infrastructure of a deployment. */
export interface Making {
  readonly id: string
  /** Counts up with whoever takes it up: an earlier one can still be ending when a later one has begun. */
  readonly run: number
  /** Names what is made: another making of the same goes on from what the last one left. */
  readonly stateKey: string
  /** By the names of the module's interface; lists as JSON. Without those that are secret. */
  readonly variables: Readonly<Record<string, string>>
  /** The same, for the values that are in no file, argument or line. */
  readonly secrets: Readonly<Record<string, string>>
}

export type Made =
  /** What the module tells, by the names of its interface: `load_balancer_ip`, `control_plane_ip`, `details`. */
  | { readonly kind: 'made'; readonly outputs: Readonly<Record<string, unknown>> }
  /** `reason`: one sentence for a person, without secrets. */
  | { readonly kind: 'failed'; readonly reason: string }
  /** By the signal; what had been made by then is remembered under the state key. */
  | { readonly kind: 'stopped' }

/** What makes the infrastructure of a deployment. */
export interface Provisioner {
  /** What is missing for it to work, as a sentence; null: nothing. Quick: it is asked before each deployment. */
  lacks(): Promise<string | null>
  /**
   * Makes it, or goes on making it; never twice at the same time for one state key. Every line of what it says goes to
   * `tell`, in order, secrets masked. Its own deadline ends it as `failed`.
   */
  make(making: Making, tell: (line: Line) => void, signal: AbortSignal): Promise<Made>
  /** Removes what runs before this one, whose processes died, have left on this machine, apart from any state. */
  clear(id: string, run: number, tell: (line: Line) => void): Promise<void>
}
