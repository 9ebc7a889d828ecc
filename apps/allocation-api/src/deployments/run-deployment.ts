import { setTimeout as sleep } from 'node:timers/promises'
import type { DeploymentResult } from '@pool/contract'
import { sanitizeText } from '../lib/text.ts'
import type { LogWriter } from './deployment-log.ts'
import type { Operation } from './domain/lifecycle.ts'
import {
  CANCELLED,
  decideResume,
  parseModuleOutputs,
  type StorageProvider,
  toModuleSecrets,
  toModuleVariables,
  toRetryAdvice,
} from './domain/run.ts'
import type { AccessKeyPair, DeploymentLogLine, KnownState, RunState } from './domain/types.ts'
import type {
  Provisioner,
  ProvisioningFailed,
  ProvisioningRequest,
  ProvisioningStopped,
  StateInspection,
  StateRequest,
} from './provisioner.ts'
import type { ReservationClient } from './reservation.ts'
import type { RunRepository } from './run-repository.ts'

/** Another process runs the deployment now, or may do so: no write of this run counts any more. */
export class LeaseLostError extends Error {
  override readonly name = 'LeaseLostError'
}

/** Ends the operation as `failed`. The message is the reason that users see. */
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

/** Fails the operation only if it has credentials; without them, another process can resume it. */
export class ShutdownError extends DeploymentFailedError {
  override readonly name = 'ShutdownError'
  constructor(operation: Operation) {
    super(`The service was stopped during this deployment. ${toRetryAdvice(operation)}`)
  }
}

export type StopError = LeaseLostError | CancelledError | ReservationLostError | ShutdownError

/** `released`: another process resumes the run. */
export type RunOutcome = 'ready' | 'destroyed' | 'failed' | 'released' | 'lease-lost'

const RETRY_PAUSE_MS = 500
/** For reading a state: `init` may download providers. */
const INSPECTION_TIMEOUT_MS = 60_000
const INTERNAL_ERROR = 'Internal error. Quote the id of the deployment when reporting it.'

export interface DeploymentRunOptions {
  readonly state: RunState
  readonly credentials: AccessKeyPair | null
  readonly repository: RunRepository
  readonly reservations: ReservationClient
  readonly provisioner: Provisioner
  readonly storage: StorageProvider
  readonly logWriter: LogWriter
  /** Whether an error means that the database is temporarily unavailable. */
  readonly isUnavailable: (error: unknown) => boolean
  readonly onError: (error: unknown) => void
}

/**
 * One run of an operation. A create or an apply: infrastructure, then the name, then `ready`. A destroy: infrastructure,
 * then the name, then `destroyed`. Each step can be repeated by another process after a crash.
 */
export class DeploymentRun {
  readonly state: RunState
  readonly #options: DeploymentRunOptions
  readonly #stop = new AbortController()
  #isLeaseLost = false
  #hasInfrastructure: boolean
  /** Whether no Terraform of an earlier run can still change the state. */
  #isStateSettled: boolean
  #knownState: KnownState | null

  constructor(options: DeploymentRunOptions) {
    this.state = options.state
    this.#options = options
    this.#hasInfrastructure = options.state.hasInfrastructure
    this.#isStateSettled = !options.state.hasInfrastructure
    this.#knownState = options.state.knownState
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

  /** Runs the operation to an end. Errors are reported and mapped to an outcome. */
  async execute(): Promise<RunOutcome> {
    try {
      return await this.#runOperation()
    } catch (error) {
      return this.#end(error)
    }
  }

  async #runOperation(): Promise<RunOutcome> {
    const { state, credentials, provisioner, repository } = this.#options
    const resume = decideResume(state, credentials)
    if (state.generation > 1) await provisioner.cleanUp(state.id, state.generation, this.#log)
    await this.#liftOrphanedLock()
    if (resume.kind === 'fail') throw new DeploymentFailedError(resume.reason)
    if (resume.kind !== 'withdraw') this.signal.throwIfAborted()
    const status = state.operation === 'destroy' ? 'destroying' : 'provisioning'
    await this.#fenced(() => repository.markStarted(state, status))
    switch (resume.kind) {
      case 'apply':
        return this.#publish(await this.#applyInfrastructure())
      case 'commit':
        return this.#publish(resume.result)
      case 'destroy':
        await this.#destroyInfrastructure()
        return this.#withdraw()
      case 'withdraw':
        return this.#withdraw()
    }
  }

  async #applyInfrastructure(): Promise<DeploymentResult> {
    const { state, provisioner, repository } = this.#options
    const { spec } = state
    if (spec.name && state.operation === 'create' && state.attempt === 1) {
      const message = `Reserved the name ${spec.sovereignFQDN}.`
      this.#log({ phase: 'reserve', level: 'info', message })
    }
    await this.#beginInfrastructure()
    const applied = await this.#runTerraform(request => provisioner.apply(request, this.#log, this.signal))
    const outputs = parseModuleOutputs(spec.sovereignFQDN, applied.outputs)
    if (outputs.kind === 'invalid') throw new DeploymentFailedError(outputs.reason)
    await this.#fenced(() => repository.saveResult(state, outputs.result))
    return outputs.result
  }

  /** From here on, the state may hold infrastructure, so the name stays with the lineage until the state was read. */
  async #beginInfrastructure(): Promise<void> {
    const { state, repository, provisioner } = this.#options
    const moduleVersion = await provisioner.moduleVersion()
    const begun = await this.#retryUntilAvailable(() => repository.beginInfrastructure(state, moduleVersion))
    if (begun === 'lease-lost') throw new LeaseLostError()
    if (begun === 'name-lost') throw new ReservationLostError()
    if (begun === 'fqdn-remains') {
      throw new DeploymentFailedError('Infrastructure of another deployment of this FQDN remains.')
    }
    this.#hasInfrastructure = true
  }

  /** Commits the name, or moves it to the new address. */
  async #publish({ loadBalancerIP }: DeploymentResult): Promise<RunOutcome> {
    const { state, repository, reservations } = this.#options
    // At shutdown, infrastructure that is up is worth finishing. After a cancellation it is not.
    if (!(this.signal.reason instanceof ShutdownError)) this.signal.throwIfAborted()
    const commit = await this.#retryUntilAvailable(() => reservations.commit(state, loadBalancerIP))
    if (commit.kind === 'lost') throw new DeploymentFailedError(commit.reason)
    if (state.spec.name) this.#logPublication(commit.isPublished)
    this.#log({ phase: 'end', level: 'info', message: 'The deployment is ready.' })
    await this.#flushLog()
    // Fails also if the lease is lost, which marking it as failing then detects.
    if (!(await this.#retryUntilAvailable(() => repository.markReady(state)))) throw new CancelledError()
    return 'ready'
  }

  #logPublication(isPublished: boolean): void {
    if (isPublished) {
      this.#log({ phase: 'commit', level: 'info', message: 'The name is active and its records are published.' })
    } else {
      const message = 'The name is active; its records are published as soon as the DNS provider accepts them.'
      this.#log({ phase: 'commit', level: 'warn', message })
    }
  }

  async #destroyInfrastructure(): Promise<void> {
    const { provisioner } = this.#options
    await this.#runTerraform(request => provisioner.destroy(request, this.#log, this.signal))
    const remaining = await this.#clearInfrastructure()
    if (remaining !== null) throw new DeploymentFailedError(`The destroy is not complete. ${remaining}`)
  }

  /** The name is withdrawn last: until then, no other client can create a deployment under it. */
  async #withdraw(): Promise<RunOutcome> {
    const { state, repository } = this.#options
    await this.#releaseName()
    this.#log({ phase: 'end', level: 'info', message: 'The deployment is destroyed.' })
    await this.#flushLog()
    await this.#fenced(() => repository.markDestroyed(state))
    return 'destroyed'
  }

  /** Runs Terraform to an end, with the lock of the state recorded. */
  async #runTerraform<Success extends { readonly kind: 'applied' | 'destroyed' }>(
    execute: (request: ProvisioningRequest) => Promise<Success | ProvisioningFailed | ProvisioningStopped>,
  ): Promise<Success> {
    const { state, credentials, storage, repository } = this.#options
    const result = await execute({
      ...this.#stateRequest,
      variables: toModuleVariables(state.id, state.spec, storage),
      secrets: toModuleSecrets(credentials),
      mayImportBucket: state.hasCreatedBucket,
      onLock: async lock => {
        await this.#retryUntilAvailable(() => repository.recordLock(state, lock))
      },
      onState: async known => {
        await this.#fenced(() => repository.recordState(state, known))
        this.#knownState = known
      },
      onBucketCreated: async () => {
        await this.#retryUntilAvailable(() => repository.recordBucket(state))
      },
    })
    this.#isStateSettled = true
    if (result.kind === 'stopped') throw this.signal.reason
    if (result.kind === 'failed') throw new DeploymentFailedError(result.reason)
    return result
  }

  /** An expired lease does not prove that Terraform has stopped. Its process group does, if it ran on this machine. */
  async #liftOrphanedLock(): Promise<void> {
    const { state, provisioner, repository } = this.#options
    const { stateLock } = state
    if (!stateLock || (await provisioner.findLockHolder(stateLock)) !== 'ended') return
    const unlocked = await provisioner.unlock(this.#stateRequest, stateLock.id)
    if (unlocked.kind !== 'unlocked' && unlocked.kind !== 'not-locked') return
    await this.#fenced(() => repository.recordLock(state, null))
    this.#isStateSettled = true
  }

  /** Reads the state. Null if it is empty but for the kept bucket; otherwise what remains, as a sentence. */
  async #clearInfrastructure(): Promise<string | null> {
    const { state, repository } = this.#options
    const inspection = await this.#inspectState()
    if (inspection.kind === 'failed') return `Its state could not be read: ${inspection.reason}`
    if (!inspection.isEmpty) return `Its state still holds: ${inspection.resources.join(', ')}.`
    await this.#fenced(() => repository.clearInfrastructure(state))
    this.#hasInfrastructure = false
    return null
  }

  /** An error does not keep the run from ending: what cannot be read may hold infrastructure. */
  async #inspectState(): Promise<StateInspection> {
    const { provisioner, onError } = this.#options
    try {
      return await provisioner.inspect(this.#stateRequest, AbortSignal.timeout(INSPECTION_TIMEOUT_MS))
    } catch (error) {
      onError(error)
      return { kind: 'failed', reason: INTERNAL_ERROR }
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
    const { state, repository } = this.#options
    const message = sanitizeText(reason)
    // Before the name is released: without the lease, another run may have made the deployment ready under this name.
    await this.#fenced(() => repository.markFailing(state, message))
    this.#log({ phase: 'end', level: 'error', message })
    if (state.operation !== 'destroy') await this.#withdrawFailed()
    await this.#flushLog()
    await this.#fenced(() => repository.markFailed(state))
    return 'failed'
  }

  /** A failed create has no records. A failed apply keeps them while its machines exist. */
  async #withdrawFailed(): Promise<void> {
    if (this.#hasInfrastructure && this.#isStateSettled) await this.#clearInfrastructure()
    const remains = this.#hasInfrastructure
    if (this.state.operation === 'create' || !remains) await this.#releaseName()
    if (!remains || !this.state.spec.name) return
    const message = 'The name stays with this deployment until its infrastructure is destroyed.'
    this.#log({ phase: 'end', level: 'info', message })
  }

  async #releaseName(): Promise<void> {
    const { state, reservations } = this.#options
    if (state.spec.name) this.#log({ phase: 'release', level: 'info', message: 'Released the name.' })
    await this.#retryUntilAvailable(() => reservations.release(state))
  }

  async #releaseLease(): Promise<RunOutcome> {
    const { state, repository } = this.#options
    const message = 'Shutting down; another replica will resume this deployment.'
    this.#log({ phase: 'end', level: 'warn', message })
    await this.#flushLog()
    await this.#fenced(() => repository.releaseLease(state))
    return 'released'
  }

  get #stateRequest(): StateRequest {
    const { id, generation, lineageId, spec } = this.state
    return {
      id,
      run: generation,
      stateKey: lineageId,
      bucket: spec.storage?.bucket ?? null,
      knownState: this.#knownState,
    }
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
