import type { ProvisioningFailed } from './domain/provisioner-failure.ts'
import type { Creation, DeploymentLogLine, KnownState, StateLock } from './domain/types.ts'

/** Identifies one state and the process that works on it. */
export interface StateRequest {
  /** Of the deployment. */
  readonly id: string
  /** The generation of the run: an earlier run of the same deployment may still be ending. */
  readonly run: number
  /** Identifies the state: applying the same key again resumes from where the last apply ended. */
  readonly stateKey: string
  /** Name of the bucket, by which its resource is found in the state; null without object storage. */
  readonly bucket: string | null
  /** What earlier runs reported. An operation fails, and changes nothing, if it finds another or an older state. */
  readonly knownState: KnownState | null
}

export interface ProvisioningRequest extends StateRequest {
  /** Input variables of the module, by name; lists as JSON. */
  readonly variables: Readonly<Record<string, string>>
  /** Further input variables, whose values appear in no file, argument or log line. */
  readonly secrets: Readonly<Record<string, string>>
  /**
   * Whether an earlier run has created the bucket. If it exists and is not in the state, it is imported instead of
   * created. Default: false.
   */
  readonly mayImportBucket?: boolean
  /** Of the plan that the caller has seen: if the changes differ by now, nothing is done. */
  readonly planHash?: string
  /** Ends Terraform at once, without waiting for what it creates. */
  readonly force?: AbortSignal
  /**
   * Called with the state lock that this run took, and with null when it is known to be released. A rejected promise
   * does not stop the run.
   */
  readonly onLock?: (lock: StateLock | null) => Promise<void>
  /**
   * Called before an apply changes anything, when the creation of a resource starts, and after each apply and destroy. A
   * rejected promise ends the operation, except that of a start.
   */
  readonly onState?: (state: KnownState) => Promise<void>
  /** Called, perhaps several times, when the bucket is known to come from this state. Rejected promises are ignored. */
  readonly onBucketCreated?: () => Promise<void>
}

/** Stopped by the signal. The state, and what was reported as unfinished, show what may exist. */
export interface ProvisioningStopped {
  readonly kind: 'stopped'
}

export type ProvisioningResult =
  /** The outputs of the module: `load_balancer_ip`, `control_plane_ip`, `details`. */
  | { readonly kind: 'applied'; readonly outputs: Readonly<Record<string, unknown>> }
  | ProvisioningFailed
  | ProvisioningStopped

export type DestroyResult = { readonly kind: 'destroyed' } | ProvisioningFailed | ProvisioningStopped

export type PlanResult =
  /** `json` is Terraform's plan representation. Secrets are masked in both. `planHash` identifies the changes in `json`. */
  | { readonly kind: 'planned'; readonly text: string; readonly json: unknown; readonly planHash: string }
  | ProvisioningFailed
  | ProvisioningStopped

/** What a state holds. */
export type StateInspection =
  | {
      readonly kind: 'inspected'
      /** Whether it holds nothing, or only the kept bucket. */
      readonly isEmpty: boolean
      readonly hasKeptBucket: boolean
      /** Addresses of all other resources. */
      readonly resources: readonly string[]
      /** What earlier runs started to create and the state does not have. Absent: nothing. */
      readonly unfinished?: readonly Creation[]
    }
  | ProvisioningFailed

export type UnlockResult =
  | { readonly kind: 'unlocked' | 'not-locked' }
  /** Another process holds the state. */
  | { readonly kind: 'other-lock'; readonly id: string }
  | ProvisioningFailed

type Log = (line: DeploymentLogLine) => void

/**
 * Creates and destroys the infrastructure of a deployment. Calls with the same state key never overlap within a process. Any of
 * them can reject with a `ProvisionerFailedError`.
 */
export interface Provisioner {
  /**
   * What is missing for a call to work, as a sentence, or null. Called before each operation, so it must be fast. Rejects with
   * the reason of `signal` when it aborts.
   */
  preflight(signal?: AbortSignal): Promise<string | null>
  /** What a module can read besides what its run needs, as a sentence; null if Terraform is isolated. */
  describeExposure(): Promise<string | null>
  /** Whether the module makes the bucket of a deployment with object storage. */
  makesBucket(): Promise<boolean>
  /** What the module does not make, as sentences, or null. */
  describeLimits(): Promise<string | null>
  /**
   * Identifies the content of the module that an apply with this bucket uses, for people: `cluster@sha256:0123456789ab`.
   */
  moduleVersion(bucket: string | null): Promise<string>
  /**
   * Creates the infrastructure, resumes creating it, or changes it to the current module. Output goes to `log` line by line, with secrets masked. A timeout ends as `failed`.
   */
  apply(request: ProvisioningRequest, log: Log, signal: AbortSignal): Promise<ProvisioningResult>
  /** Destroys everything in the state but the bucket, which stays in it. Can be repeated, also after a kill. */
  destroy(request: ProvisioningRequest, log: Log, signal: AbortSignal): Promise<DestroyResult>
  /** What an apply or a destroy would do. Changes nothing and leaves no lock behind. */
  plan(request: ProvisioningRequest & { readonly destroy: boolean }, signal: AbortSignal): Promise<PlanResult>
  /** Reads the state. An absent one is empty. It needs no secrets. */
  inspect(request: StateRequest, signal: AbortSignal): Promise<StateInspection>
  /**
   * Keeps the state where no later call finds it: a local one is moved, a remote one stays under its key, which must not be
   * used again. Can be repeated, also after a kill. Returns a sentence for the history that says where the state is.
   */
  archive(request: StateRequest): Promise<string>
  /** Removes the files of a state that holds nothing. The deployment must not exist any more. */
  discard(request: StateRequest): Promise<void>
  /** Whether the process group that took the lock has ended; `unknown` if that cannot be checked from this machine. */
  findLockHolder(lock: StateLock): Promise<'running' | 'ended' | 'unknown'>
  /** Lifts exactly this lock. */
  unlock(request: StateRequest, lockId: string): Promise<UnlockResult>
  /** Removes what crashed runs before this one left on this machine. States are kept. */
  cleanUp(id: string, run: number, log: Log): Promise<void>
}
