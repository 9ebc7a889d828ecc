import { createHash } from 'node:crypto'
import type { DeploymentLogLine, KnownState, StateLock } from '../../src/deployments/domain/types.ts'
import type {
  DestroyResult,
  PlanResult,
  Provisioner,
  ProvisioningRequest,
  ProvisioningResult,
  StateInspection,
  StateRequest,
  UnlockResult,
} from '../../src/deployments/provisioner.ts'
import { findStateMismatch } from '../../src/deployments/terraform/state.ts'

interface FakeCall<Result> {
  readonly request: ProvisioningRequest
  readonly signal: AbortSignal
  log(line: DeploymentLogLine): void
  end(result: Result): void
}

export type FakeApply = FakeCall<ProvisioningResult>
export type FakeDestroy = FakeCall<DestroyResult>

const waitForAbort = (signal: AbortSignal): Promise<void> =>
  new Promise(resolve => {
    if (signal.aborted) resolve()
    signal.addEventListener('abort', () => resolve())
  })

const toFakePlan = (destroy: boolean, resources: readonly string[]) => {
  const text = `${destroy ? 'destroy' : 'apply'} with ${resources.length} existing`
  const planHash = createHash('sha256').update(text).digest('hex')
  return { kind: 'planned', text, json: { resources }, planHash } as const
}

export const FAKE_MODULE = 'fake@sha256:000000000000'

export const applied = (address = '192.0.2.1', outputs: object = {}): ProvisioningResult => ({
  kind: 'applied',
  outputs: { load_balancer_ip: address, ...outputs },
})

/** A state: addresses of resources, and the bucket. `version` is null until the first apply. */
export interface FakeState {
  readonly resources: Set<string>
  bucket: string | null
  version: KnownState | null
}

/** The states of a backend, which all replicas share. An apply creates `machine` and the bucket. */
export class FakeStates {
  readonly #states = new Map<string, FakeState>()
  /** The buckets of the account. A destroy keeps them. */
  readonly buckets = new Set<string>()
  /** Keys of archived states. */
  readonly archived: string[] = []

  get keys(): readonly string[] {
    return [...this.#states.keys()]
  }

  get(stateKey: string): FakeState {
    const state = this.#states.get(stateKey) ?? { resources: new Set(), bucket: null, version: null }
    this.#states.set(stateKey, state)
    return state
  }

  /** Why an operation must not use the state; null if it can. */
  findMismatch({ stateKey, knownState }: StateRequest): string | null {
    return findStateMismatch(this.get(stateKey).version, knownState)
  }

  /** Changes the version of the state, as every write does. */
  async write({ stateKey, onState }: ProvisioningRequest): Promise<void> {
    const state = this.get(stateKey)
    state.version = { lineage: state.version?.lineage ?? stateKey, serial: (state.version?.serial ?? 0) + 1 }
    await onState?.(state.version)
  }

  /** Removes the state, as if the backend had been emptied or changed. */
  lose(stateKey: string): FakeState {
    const state = this.get(stateKey)
    this.#states.delete(stateKey)
    return state
  }

  restore(stateKey: string, state: FakeState): void {
    this.#states.set(stateKey, state)
  }

  archive(stateKey: string): void {
    if (this.#states.delete(stateKey)) this.archived.push(stateKey)
  }
}

/** A provisioner whose applies and destroys the test ends. A signal stops them. */
export class FakeProvisioner implements Provisioner {
  readonly applies: FakeApply[] = []
  readonly destroys: FakeDestroy[] = []
  readonly plans: (ProvisioningRequest & { readonly destroy: boolean })[] = []
  readonly cleanedUp: string[] = []
  readonly unlocked: string[] = []
  missing: string | null = null
  declaresBucket = true
  /** The result of every apply; null if the test ends each one. */
  result: ProvisioningResult | null = null
  /** The result of every destroy; null if the test ends each one. */
  destroyResult: DestroyResult | null = { kind: 'destroyed' }
  /** Whether an apply continues after it was stopped. */
  ignoresStop = false
  /** Whether an apply that does not succeed has created a machine. */
  createsBeforeFailure = false
  /** Why a state cannot be read; null if it can. */
  inspectionFailure: string | null = null
  /** The locks that processes hold on states. */
  readonly locks = new Map<string, string>()
  lockHolder: 'running' | 'ended' | 'unknown' = 'ended'
  maxConcurrent = 0
  readonly states: FakeStates
  #concurrent = 0

  constructor(states = new FakeStates()) {
    this.states = states
  }

  async moduleVersion(): Promise<string> {
    return FAKE_MODULE
  }

  async describeExposure(): Promise<null> {
    return null
  }

  async makesBucket(): Promise<boolean> {
    return this.declaresBucket
  }

  async describeLimits(): Promise<null> {
    return null
  }

  async preflight(): Promise<string | null> {
    return this.missing
  }

  async apply(
    request: ProvisioningRequest,
    log: (line: DeploymentLogLine) => void,
    signal: AbortSignal,
  ): Promise<ProvisioningResult> {
    log({ phase: 'apply', level: 'info', message: `applying ${request.variables.sovereign_fqdn}` })
    const mismatch = this.states.findMismatch(request)
    if (mismatch !== null) return { kind: 'failed', reason: mismatch }
    const changed = this.#findChange(request, false)
    if (changed) return changed
    await this.states.write(request)
    if (this.createsBeforeFailure) this.states.get(request.stateKey).resources.add('machine')
    const result = await this.#run(this.applies, this.result, { request, log, signal })
    const state = this.states.get(request.stateKey)
    if (result.kind === 'applied') {
      state.resources.add('machine')
      state.bucket = request.variables.object_storage_bucket || state.bucket
      if (state.bucket !== null) {
        this.states.buckets.add(state.bucket)
        await request.onBucketCreated?.()
      }
    }
    await this.states.write(request)
    return result
  }

  async destroy(
    request: ProvisioningRequest,
    log: (line: DeploymentLogLine) => void,
    signal: AbortSignal,
  ): Promise<DestroyResult> {
    log({ phase: 'destroy', level: 'info', message: `destroying ${request.variables.sovereign_fqdn}` })
    const mismatch = this.states.findMismatch(request)
    if (mismatch !== null) return { kind: 'failed', reason: mismatch }
    const changed = this.#findChange(request, true)
    if (changed) return changed
    const result = await this.#run(this.destroys, this.destroyResult, { request, log, signal })
    if (result.kind === 'destroyed') this.states.get(request.stateKey).resources.clear()
    await this.states.write(request)
    return result
  }

  async plan(request: ProvisioningRequest & { readonly destroy: boolean }): Promise<PlanResult> {
    this.plans.push(request)
    return toFakePlan(request.destroy, [...this.states.get(request.stateKey).resources])
  }

  #findChange(request: ProvisioningRequest, destroy: boolean) {
    const { planHash } = toFakePlan(destroy, [...this.states.get(request.stateKey).resources])
    if (request.planHash === undefined || request.planHash === planHash) return null
    return { kind: 'failed', reason: 'plan-changed: another plan.', isPlanChanged: true } as const
  }

  async inspect(request: StateRequest): Promise<StateInspection> {
    const { stateKey } = request
    const failure = this.inspectionFailure ?? this.states.findMismatch(request)
    if (failure !== null) return { kind: 'failed', reason: failure }
    const { resources, bucket } = this.states.get(stateKey)
    return {
      kind: 'inspected',
      isEmpty: resources.size === 0,
      hasKeptBucket: bucket !== null,
      resources: [...resources],
      ...(request.knownState?.unfinished && { unfinished: request.knownState.unfinished }),
    }
  }

  async archive({ stateKey }: StateRequest): Promise<string> {
    this.states.archive(stateKey)
    return `The state is in archive/${stateKey}.`
  }

  async discard(): Promise<void> {}

  async findLockHolder(_: StateLock): Promise<'running' | 'ended' | 'unknown'> {
    return this.lockHolder
  }

  async unlock({ stateKey }: StateRequest, lockId: string): Promise<UnlockResult> {
    const id = this.locks.get(stateKey)
    if (id === undefined) return { kind: 'not-locked' }
    if (id !== lockId) return { kind: 'other-lock', id }
    this.locks.delete(stateKey)
    this.unlocked.push(lockId)
    return { kind: 'unlocked' }
  }

  async cleanUp(id: string): Promise<void> {
    this.cleanedUp.push(id)
  }

  async #run<Result>(
    calls: FakeCall<Result>[],
    result: Result | null,
    call: Omit<FakeCall<Result>, 'end'>,
  ): Promise<Result | { readonly kind: 'stopped' }> {
    this.#concurrent += 1
    this.maxConcurrent = Math.max(this.maxConcurrent, this.#concurrent)
    const { promise, resolve } = Promise.withResolvers<Result>()
    calls.push({ ...call, end: resolve })
    if (result) resolve(result)
    const stopped = waitForAbort(call.signal).then(() => ({ kind: 'stopped' }) as const)
    const ended = await Promise.race([promise, ...(this.ignoresStop ? [] : [stopped])])
    this.#concurrent -= 1
    return ended
  }
}
