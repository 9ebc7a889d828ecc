import type { DeploymentLogLine } from './domain/types.ts'

export interface ProvisioningRequest {
  readonly id: string
  /** The generation of the run: an earlier run of the same deployment may still be ending. */
  readonly run: number
  /** Identifies the state: applying the same key again resumes from where the last apply ended. */
  readonly stateKey: string
  /** Input variables of the module, by name; lists as JSON. */
  readonly variables: Readonly<Record<string, string>>
  /** Further input variables, whose values appear in no file, argument or log line. */
  readonly secrets: Readonly<Record<string, string>>
}

export type ProvisioningResult =
  /** The outputs of the module: `load_balancer_ip`, `control_plane_ip`, `details`. */
  | { readonly kind: 'applied'; readonly outputs: Readonly<Record<string, unknown>> }
  /** `reason` is a sentence for users, without secrets. */
  | { readonly kind: 'failed'; readonly reason: string }
  /** Stopped by the signal. The state keeps what had been created. */
  | { readonly kind: 'stopped' }

/** Creates the infrastructure of a deployment. */
export interface Provisioner {
  /** What is missing for an apply to work, as a sentence, or null. Called before each deployment, so it must be fast. */
  preflight(): Promise<string | null>
  /**
   * Creates the infrastructure, or resumes creating it. Applies with the same state key never overlap within a process.
   * Output goes to `log` line by line, with secrets masked. A timeout of the provisioner ends as `failed`.
   */
  apply(
    request: ProvisioningRequest,
    log: (line: DeploymentLogLine) => void,
    signal: AbortSignal,
  ): Promise<ProvisioningResult>
  /** Removes what crashed runs before this one left on this machine. States are kept. */
  cleanUp(id: string, run: number, log: (line: DeploymentLogLine) => void): Promise<void>
}
