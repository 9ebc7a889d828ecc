import { setTimeout as sleep } from 'node:timers/promises'
import { type DeploymentResult, loadBalancerIP } from '@pool/contract'
import { isDatabaseUnavailable } from '@pool/runtime/database/errors'
import type { FindBucket } from '../credentials/find-bucket.ts'
import { sanitizeJson, sanitizeText } from '../lib/text.ts'
import type { LogWriter } from './deployment-log.ts'
import { explainFailure, explainMissingBucket } from './domain/bucket-use.ts'
import type { Operation } from './domain/lifecycle.ts'
import { ProvisionerFailedError, type ProvisioningFailed, toFailed } from './domain/provisioner-failure.ts'
import type {
  AccessKeyPair,
  Creation,
  DeploymentLogLine,
  DeploymentSpec,
  KnownState,
  RunState,
} from './domain/types.ts'
import type { ReservationClient } from './fqdn.ts'
import type {
  Provisioner,
  ProvisioningRequest,
  ProvisioningStopped,
  StateInspection,
  StateRequest,
} from './provisioner.ts'
import type { RunRepository } from './run-repository.ts'

/** How a new or orphaned run continues. */
export type ResumeDecision =
  | { readonly kind: 'apply' | 'destroy' }
  /** The infrastructure is up; only the name remains to be committed. */
  | { readonly kind: 'commit'; readonly result: DeploymentResult }
  /** The infrastructure is gone; only the name remains to be withdrawn. */
  | { readonly kind: 'withdraw' }
  | { readonly kind: 'fail'; readonly reason: string }

/** A deployment that crashes every process must not crash them indefinitely. Releases at shutdown count too. */
const MAX_RUNS = 20

const CANCELLED = 'Cancelled.'

/** What a client does after an operation that did not finish. */
const toRetryAdvice = (operation: Operation): string =>
  operation === 'destroy'
    ? 'Destroy the deployment again.'
    : 'Apply the deployment again; Terraform resumes from the saved state.'

/** In the reason of a failure. */
const MAX_ADDRESSES = 20

/** What may exist without being in the state, and what to do; empty if there is nothing. */
export const explainUnfinished = (unfinished: readonly Creation[], operation: Operation): string => {
  if (unfinished.length === 0) return ''
  const shown = unfinished.slice(0, MAX_ADDRESSES).map(({ address }) => address)
  const more = unfinished.length > shown.length ? ` and ${unfinished.length - shown.length} more` : ''
  return `Terraform did not save that it created ${shown.join(', ')}${more}: these may exist without being in the state. Delete at the provider what exists of them, then ${operation === 'destroy' ? 'destroy' : 'apply or destroy'} the deployment with unfinishedRemoved: true.`
}

const toRunnerStopped = (operation: Operation): string =>
  `The container of Terraform was stopped during this deployment. ${toRetryAdvice(operation)}`

/** The step of the operation that was finished last decides, whether the run was cancelled or not. */
const decideFinalStep = ({
  operation,
  isApplied,
  result,
  hasInfrastructure,
  isCancelled,
}: RunState): ResumeDecision | null => {
  if (operation === 'destroy') return hasInfrastructure ? null : { kind: 'withdraw' }
  return isApplied && result && !isCancelled ? { kind: 'commit', result } : null
}

/**
 * Credentials exist only in the memory of the process that accepted the request. After a crash, a run can resume if it
 * needs no credentials, or if Terraform has finished already.
 */
export const decideResume = (state: RunState, credentials: AccessKeyPair | null): ResumeDecision => {
  const { spec, operation, isCancelled, pendingError, attempt } = state
  // Its name may have been released already, and reserved by another client.
  if (pendingError !== null) return { kind: 'fail', reason: pendingError }
  const final = decideFinalStep(state)
  if (final) return final
  if (isCancelled) return { kind: 'fail', reason: CANCELLED }
  if (attempt > MAX_RUNS) {
    const reason = `Gave up after ${MAX_RUNS} runs: every process running this deployment exited before it finished.`
    return { kind: 'fail', reason }
  }
  if (!spec.storage || credentials) return { kind: operation === 'destroy' ? 'destroy' : 'apply' }
  return {
    kind: 'fail',
    reason: `The process running this deployment exited, and the object storage credentials were only in its memory. ${toRetryAdvice(operation)}`,
  }
}

/** The object storage that the service is configured with. */
export interface StorageProvider {
  /** As written in `providers`, and in the name of the cluster's secret. */
  readonly provider: string
  readonly domain: string
}

/** The input variables of a deployment module. Without object storage, region, bucket and credentials are empty. */
export const toModuleVariables = (id: string, spec: DeploymentSpec, { provider, domain }: StorageProvider) => ({
  deployment_id: id,
  org_name: spec.orgName,
  org_email: spec.orgEmail,
  sovereign_fqdn: spec.sovereignFQDN,
  region: spec.region,
  ssh_public_key: spec.sshPublicKey,
  provider_names: JSON.stringify(spec.providers),
  object_storage_provider: provider,
  object_storage_domain: domain,
  object_storage_region: spec.storage?.region ?? '',
  object_storage_bucket: spec.storage?.bucket ?? '',
})

export const toModuleSecrets = (credentials: AccessKeyPair | null) => ({
  object_storage_access_key: credentials?.accessKey ?? '',
  object_storage_secret_key: credentials?.secretKey ?? '',
})

/** Reserved for benchmarks (RFC 2544). */
const TEST_NETWORK = /^198\.1[89]\./

type OutputsResult =
  | { readonly kind: 'valid'; readonly result: DeploymentResult }
  | { readonly kind: 'invalid'; readonly reason: string }

/** Validates the outputs of a deployment module. */
const parseModuleOutputs = (
  sovereignFQDN: string,
  outputs: Readonly<Record<string, unknown>>,
  acceptsTestAddresses: boolean,
): OutputsResult => {
  const { load_balancer_ip, control_plane_ip, details } = outputs
  const address = loadBalancerIP.safeParse(load_balancer_ip)
  if (!address.success) {
    return {
      kind: 'invalid',
      reason: 'The infrastructure is up, but its module has no output load_balancer_ip with a unicast IPv4 address.',
    }
  }
  if (!acceptsTestAddresses && TEST_NETWORK.test(address.data)) {
    return {
      kind: 'invalid',
      reason: `The load balancer ${address.data} is in 198.18.0.0/15, which is not routed, so the records of the name would lead nowhere: use a module that creates machines (PDM_TERRAFORM_MODULE), or set PDM_ACCEPT_TEST_ADDRESSES=true for a test.`,
    }
  }
  return {
    kind: 'valid',
    result: {
      sovereignFQDN,
      loadBalancerIP: address.data,
      ...(typeof control_plane_ip === 'string' ? { controlPlaneIP: sanitizeText(control_plane_ip) } : {}),
      ...(details ? { details: sanitizeJson(details) } : {}),
    },
  }
}

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
/** For a lookup of the bucket that gets no answer. */
const MAX_LOOKUPS = 4
const LOOKUP_PAUSE_MS = 3_000
/** For reading a state: `init` may download providers. */
const INSPECTION_TIMEOUT_MS = 60_000
/** What a state holds that no run has written. */
const UNTOUCHED: StateInspection = { kind: 'inspected', isEmpty: true, hasKeptBucket: false, resources: [] }
const INTERNAL_ERROR = 'Internal error. Quote the id of the deployment when reporting it.'

export interface DeploymentRunOptions {
  readonly state: RunState
  readonly credentials: AccessKeyPair | null
  readonly repository: RunRepository
  readonly reservations: ReservationClient
  readonly provisioner: Provisioner
  readonly storage: StorageProvider
  readonly findBucket: FindBucket
  readonly acceptsTestAddresses: boolean
  readonly logWriter: LogWriter
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
  readonly #force = new AbortController()
  #isLeaseLost = false
  #hasInfrastructure: boolean
  /** Whether no Terraform of an earlier run can still change the state. */
  #isStateSettled: boolean
  #isPlanChanged = false
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

  /** Ends Terraform at once. What it was creating may then exist without being in the state. */
  force(): void {
    this.#force.abort()
  }

  /** Runs the operation to an end. Errors are reported and mapped to an outcome. */
  async execute(): Promise<RunOutcome> {
    try {
      return await this.#runOperation()
    } catch (error) {
      const isOfMachine = error instanceof ProvisionerFailedError
      return this.#end(isOfMachine ? new DeploymentFailedError(error.message) : error)
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
    const { state, provisioner, repository, acceptsTestAddresses } = this.#options
    const { spec } = state
    if (spec.name && state.operation === 'create' && state.attempt === 1) {
      const message = `Reserved the name ${spec.sovereignFQDN}.`
      this.#log({ phase: 'reserve', level: 'info', message })
    }
    await this.#beginInfrastructure()
    const applied = await this.#runTerraform(request => provisioner.apply(request, this.#log, this.signal))
    await this.#requireBucket()
    const outputs = parseModuleOutputs(spec.sovereignFQDN, applied.outputs, acceptsTestAddresses)
    if (outputs.kind === 'invalid') throw new DeploymentFailedError(outputs.reason)
    await this.#fenced(() => repository.saveResult(state, outputs.result))
    return outputs.result
  }

  /** A deployment with object storage is ready only if its bucket exists, whatever the module says. */
  async #requireBucket(): Promise<void> {
    const { state, credentials, findBucket, repository } = this.#options
    const { storage } = state.spec
    if (!storage || !credentials) return
    const { bucket, region } = storage
    for (let attempt = 1; ; attempt += 1) {
      this.signal.throwIfAborted()
      const lookup = await findBucket({ region, ...credentials }, bucket)
      const reason = explainMissingBucket(bucket, lookup)
      if (reason === null) break
      if (lookup.kind !== 'unavailable' || attempt === MAX_LOOKUPS) throw new DeploymentFailedError(reason)
      await sleep(LOOKUP_PAUSE_MS, undefined, { signal: this.signal }).catch(() => {})
    }
    await this.#fenced(() => repository.recordBucket(state))
  }

  /** From here on, the state may hold infrastructure, so the name stays with the lineage until the state was read. */
  async #beginInfrastructure(): Promise<void> {
    const { state, repository, provisioner } = this.#options
    const moduleVersion = await provisioner.moduleVersion(state.spec.storage?.bucket ?? null)
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
    if (remaining !== null) throw new DeploymentFailedError(`The destroy is not complete. ${remaining}`.trim())
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
      ...(state.plan && { planHash: state.plan.hash }),
      force: this.#force.signal,
      onLock: async lock => {
        await this.#retryUntilAvailable(() => repository.recordLock(state, lock))
      },
      onState: known => this.#recordState(known),
      onBucketCreated: async () => {
        await this.#retryUntilAvailable(() => repository.recordBucket(state))
      },
    }).catch(toFailed)
    this.#isStateSettled = true
    if (result.kind === 'stopped') {
      throw this.signal.aborted ? this.signal.reason : new DeploymentFailedError(toRunnerStopped(state.operation))
    }
    if (result.kind === 'failed') {
      // An earlier run of the operation may have done a part of it.
      this.#isPlanChanged = result.isPlanChanged === true && state.attempt === 1
      throw new DeploymentFailedError(explainFailure(result.reason, state.spec.storage?.bucket ?? null))
    }
    return result
  }

  async #recordState(known: KnownState): Promise<void> {
    const { state, repository } = this.#options
    this.#knownState = known
    await this.#fenced(() => repository.recordState(state, known))
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

  /**
   * Reads the state. Null if it is empty but for the kept bucket, and nothing is missing in it; otherwise what remains, as a
   * sentence, which is empty if that is only what is missing: the failure lists it.
   */
  async #clearInfrastructure(): Promise<string | null> {
    const { state, repository } = this.#options
    const inspection = this.#isUntouched ? UNTOUCHED : await this.#inspectState()
    if (inspection.kind === 'failed') return `Its state could not be read: ${inspection.reason}`
    if (!inspection.isEmpty) return `Its state still holds: ${inspection.resources.join(', ')}.`
    if (inspection.unfinished) return ''
    await this.#fenced(() => repository.clearInfrastructure(state, inspection.hasKeptBucket))
    this.#hasInfrastructure = false
    return null
  }

  /** This run would have been the first to change anything, and a run reports the state before it does. */
  get #isUntouched(): boolean {
    return !this.state.hasInfrastructure && this.#knownState === null
  }

  /** An error does not keep the run from ending: what cannot be read may hold infrastructure. */
  async #inspectState(): Promise<StateInspection> {
    const { provisioner, onError } = this.#options
    try {
      const signal = AbortSignal.timeout(INSPECTION_TIMEOUT_MS)
      const inspection = await provisioner.inspect(this.#stateRequest, signal).catch(toFailed)
      if (inspection.kind === 'inspected' && this.#knownState) {
        const { unfinished: _, ...known } = this.#knownState
        const { unfinished } = inspection
        await this.#recordState({ ...known, ...(unfinished && { unfinished }) })
      }
      return inspection
    } catch (error) {
      if (error instanceof LeaseLostError) throw error
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
    if (this.#knownState?.unfinished) await this.#inspectState()
    const message = sanitizeText(
      `${reason} ${explainUnfinished(this.#knownState?.unfinished ?? [], state.operation)}`.trim(),
    )
    // Before the name is released: without the lease, another run may have made the deployment ready under this name.
    await this.#fenced(() => repository.markFailing(state, message))
    this.#log({ phase: 'end', level: 'error', message })
    if (state.operation !== 'destroy') await this.#withdrawFailed()
    await this.#flushLog()
    const operation = this.#isPlanChanged ? state.plan?.operationBefore : undefined
    await this.#fenced(() => repository.markFailed(state, operation))
    return 'failed'
  }

  /** A failed create has no records. A failed apply keeps them while its machines exist. */
  async #withdrawFailed(): Promise<void> {
    if (this.#hasInfrastructure && this.#isStateSettled) await this.#clearInfrastructure()
    const remains = this.#hasInfrastructure
    if (this.state.operation === 'create' || !remains) await this.#releaseName()
    if (!remains || !this.state.spec.name) return
    const message = 'No other deployment gets this name until the infrastructure of this one is destroyed.'
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
        if (!isDatabaseUnavailable(error)) throw error
        await sleep(RETRY_PAUSE_MS)
      }
    }
  }
}
