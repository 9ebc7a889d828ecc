import { setTimeout as sleep } from 'node:timers/promises'
import type { DeploymentResult } from '@pool/contract'
import { sanitizeText } from '../lib/sanitize-text.ts'
import type { LogWriter } from './deployment-log.ts'
import {
  CANCELLED,
  decideResume,
  parseModuleOutputs,
  type StorageProvider,
  toModuleSecrets,
  toModuleVariables,
} from './domain/run.ts'
import type { AccessKeyPair, DeploymentLogLine, RunState } from './domain/types.ts'
import type { Provisioner } from './provisioner.ts'
import type { DeploymentRepository } from './repository.ts'
import type { ReservationClient } from './reservation.ts'

/** Another process runs the deployment now, or may do so: no write of this run counts any more. */
export class LeaseLostError extends Error {
  override readonly name = 'LeaseLostError'
}

/** Ends the deployment as `failed`. The message is the reason that users see. */
export class DeploymentFailedError extends Error {
  override readonly name: string = 'DeploymentFailedError'
}

export class CancelledError extends DeploymentFailedError {
  override readonly name = 'CancelledError'
  constructor() {
    super(CANCELLED)
  }
}

export class ReservationLostError extends DeploymentFailedError {
  override readonly name = 'ReservationLostError'
  constructor() {
    super('Its name was released, or reserved by another client, during the deployment.')
  }
}

/** Fails the deployment only if it has credentials; without them, another process can resume it. */
export class ShutdownError extends DeploymentFailedError {
  override readonly name = 'ShutdownError'
  constructor() {
    super('The service was stopped during this deployment. Create it again; Terraform resumes from the saved state.')
  }
}

export type StopError = LeaseLostError | CancelledError | ReservationLostError | ShutdownError

/** `released`: another process resumes the deployment. */
export type RunOutcome = 'ready' | 'failed' | 'released' | 'lease-lost'

const RETRY_PAUSE_MS = 500
const INTERNAL_ERROR = 'Internal error. Quote the id of the deployment when reporting it.'

export interface DeploymentRunOptions {
  readonly state: RunState
  readonly credentials: AccessKeyPair | null
  readonly repository: DeploymentRepository
  readonly reservations: ReservationClient
  readonly provisioner: Provisioner
  readonly storage: StorageProvider
  readonly logWriter: LogWriter
  /** Whether an error means that the database is temporarily unavailable. */
  readonly isUnavailable: (error: unknown) => boolean
  readonly onError: (error: unknown) => void
}

/**
 * One run of a deployment: infrastructure, then the name, then `ready`. A failure releases the name and then ends as
 * `failed`, so a failed deployment holds nothing. Each step can be repeated by another process after a crash.
 */
export class DeploymentRun {
  readonly state: RunState
  readonly #options: DeploymentRunOptions
  readonly #stop = new AbortController()
  #isLeaseLost = false

  constructor(options: DeploymentRunOptions) {
    this.state = options.state
    this.#options = options
  }

  /** Aborts when the run is stopped. */
  get signal(): AbortSignal {
    return this.#stop.signal
  }

  /** The first reason counts, except that a lost lease overrides every other one. */
  stop(reason: StopError): void {
    if (reason instanceof LeaseLostError) this.#isLeaseLost = true
    this.#stop.abort(reason)
  }

  /** Runs the deployment to an end. Errors are reported and mapped to an outcome. */
  async execute(): Promise<RunOutcome> {
    try {
      return await this.#runToReady()
    } catch (error) {
      return this.#end(error)
    }
  }

  async #runToReady(): Promise<RunOutcome> {
    const { state, credentials, provisioner, repository } = this.#options
    const { spec } = state
    const resume = decideResume(state, credentials)
    if (state.generation > 1) await provisioner.cleanUp(state.id, state.generation, this.#log)
    if (resume.kind === 'fail') throw new DeploymentFailedError(resume.reason)
    this.signal.throwIfAborted()
    await this.#fenced(() => repository.markProvisioning(state))
    if (spec.name && state.generation === 1) {
      this.#log({ phase: 'reserve', level: 'info', message: `Reserved the name ${spec.sovereignFQDN}.` })
    }
    const result = resume.kind === 'commit' ? resume.result : await this.#applyInfrastructure()
    // At shutdown, infrastructure that is up is worth finishing. After a cancellation it is not.
    if (!(this.signal.reason instanceof ShutdownError)) this.signal.throwIfAborted()
    await this.#commitName(result.loadBalancerIP)
    this.#log({ phase: 'end', level: 'info', message: 'The deployment is ready.' })
    await this.#flushLog()
    // Fails also if the lease is lost, which marking it as failing then detects.
    if (!(await this.#retryUntilAvailable(() => repository.markReady(state)))) throw new CancelledError()
    return 'ready'
  }

  async #applyInfrastructure(): Promise<DeploymentResult> {
    const { state, credentials, provisioner, repository, storage } = this.#options
    const { sovereignFQDN } = state.spec
    const applied = await provisioner.apply(
      {
        id: state.id,
        run: state.generation,
        stateKey: sovereignFQDN,
        variables: toModuleVariables(state.id, state.spec, storage),
        secrets: toModuleSecrets(credentials),
      },
      this.#log,
      this.signal,
    )
    if (applied.kind === 'stopped') throw this.signal.reason
    if (applied.kind === 'failed') throw new DeploymentFailedError(applied.reason)
    const outputs = parseModuleOutputs(sovereignFQDN, applied.outputs)
    if (outputs.kind === 'invalid') throw new DeploymentFailedError(outputs.reason)
    await this.#fenced(() => repository.saveResult(state, outputs.result))
    return outputs.result
  }

  async #commitName(loadBalancerIP: string): Promise<void> {
    const { state, reservations } = this.#options
    const commit = await this.#retryUntilAvailable(() => reservations.commit(state, loadBalancerIP))
    if (commit.kind === 'lost') throw new DeploymentFailedError(commit.reason)
    if (!state.spec.name) return
    if (commit.isPublished) {
      this.#log({ phase: 'commit', level: 'info', message: 'The name is active and its records are published.' })
    } else {
      const message = 'The name is active; its records are published as soon as the DNS provider accepts them.'
      this.#log({ phase: 'commit', level: 'warn', message })
    }
  }

  /** Maps the error that ended the run to its outcome. A defect in a deliberate end fails the deployment as a defect. */
  async #end(error: unknown): Promise<RunOutcome> {
    if (error instanceof LeaseLostError) return 'lease-lost'
    const isDeliberate = error instanceof DeploymentFailedError
    if (!isDeliberate) this.#options.onError(error)
    try {
      if (error instanceof ShutdownError && !this.state.spec.storage) return await this.#releaseLease()
      return await this.#fail(isDeliberate ? error.message : INTERNAL_ERROR)
    } catch (next) {
      if (isDeliberate) return this.#end(next)
      if (!(next instanceof LeaseLostError)) this.#options.onError(next)
      return 'lease-lost'
    }
  }

  async #fail(reason: string): Promise<RunOutcome> {
    const { state, repository, reservations } = this.#options
    const message = sanitizeText(reason)
    // Before the name is released: without the lease, another run may have made the deployment ready under this name.
    await this.#fenced(() => repository.markFailing(state, message))
    this.#log({ phase: 'end', level: 'error', message })
    if (state.spec.name) this.#log({ phase: 'release', level: 'info', message: 'Released the name.' })
    await this.#retryUntilAvailable(() => reservations.release(state))
    await this.#flushLog()
    await this.#fenced(() => repository.markFailed(state))
    return 'failed'
  }

  async #releaseLease(): Promise<RunOutcome> {
    const { state, repository } = this.#options
    const message = 'Shutting down; another replica will resume this deployment.'
    this.#log({ phase: 'end', level: 'warn', message })
    await this.#flushLog()
    await this.#fenced(() => repository.releaseLease(state))
    return 'released'
  }

  readonly #log = (line: DeploymentLogLine): void => this.#options.logWriter.log(line)

  #flushLog(): Promise<void> {
    return this.#retryUntilAvailable(() => this.#options.logWriter.flush())
  }

  /** A write that changes a row only while this run holds the lease. */
  async #fenced(write: () => Promise<boolean>): Promise<void> {
    if (!(await this.#retryUntilAvailable(write))) throw new LeaseLostError()
  }

  /** Retries while the database is unavailable and the lease is not lost. */
  async #retryUntilAvailable<Result>(step: () => Promise<Result>): Promise<Result> {
    for (;;) {
      if (this.#isLeaseLost) throw new LeaseLostError()
      try {
        return await step()
      } catch (error) {
        if (!this.#options.isUnavailable(error)) throw error
        await sleep(RETRY_PAUSE_MS)
      }
    }
  }
}
