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

/** How far an apply or a destroy gets. `waits`: it changes something, and then waits for the signal. */
export type Extent = 'all' | 'part' | 'nothing' | 'waits'

export interface CloudState {
  readonly fqdn: string
  readonly address: string
  /** Names of machines, which contain the id of the deployment that made them. */
  readonly machines: Set<string>
  bucket: string | null
}

/** What exists outside of the service, whichever replicas are killed: Terraform states, machines and buckets. */
export class Cloud {
  readonly states = new Map<string, CloudState>()
  readonly archived = new Map<string, CloudState>()
  /** The state that each bucket was created from. */
  readonly buckets = new Map<string, string>()
  readonly violations: string[] = []
  #count = 0

  open({ stateKey }: StateRequest, fqdn: string): CloudState {
    if (this.archived.has(stateKey)) this.violations.push(`the archived state of ${fqdn} was used again`)
    const existing = this.states.get(stateKey)
    if (existing) return existing
    this.#count += 1
    const address = `198.51.${100 + Math.floor(this.#count / 250)}.${(this.#count % 250) + 1}`
    const state = { fqdn, address, machines: new Set<string>(), bucket: null }
    this.states.set(stateKey, state)
    return state
  }

  createBucket(stateKey: string, bucket: string): void {
    const owner = this.buckets.get(bucket)
    if (owner !== undefined && owner !== stateKey) this.violations.push(`${bucket} has passed to another lineage`)
    this.buckets.set(bucket, stateKey)
  }

  /** States with machines under one FQDN, archived ones excluded. */
  statesUp(fqdn: string): string[] {
    return [...this.states].filter(([, state]) => state.fqdn === fqdn && state.machines.size > 0).map(([key]) => key)
  }
}

const waitForAbort = (signal: AbortSignal): Promise<void> =>
  new Promise(resolve => {
    if (signal.aborted) return resolve()
    signal.addEventListener('abort', () => resolve())
  })

/** Creates and destroys what is in a cloud, as far as the test says. */
export class CloudProvisioner implements Provisioner {
  cloud: Cloud
  applies: Extent = 'all'
  destroys: Extent = 'all'
  isWaiting = false

  constructor(cloud: Cloud) {
    this.cloud = cloud
  }

  async moduleVersion(): Promise<string> {
    return 'cloud@sha256:000000000000'
  }

  async preflight(): Promise<null> {
    return null
  }

  async apply(
    request: ProvisioningRequest,
    log: (line: { phase: 'apply'; level: 'info'; message: string }) => void,
    signal: AbortSignal,
  ): Promise<ProvisioningResult> {
    const { id, stateKey, variables } = request
    if (this.applies === 'nothing') return { kind: 'failed', reason: 'The plan failed.' }
    const state = this.cloud.open(request, variables.sovereign_fqdn ?? '')
    log({ phase: 'apply', level: 'info', message: `Found ${[...state.machines].join()}.` })
    if (state.machines.size === 0) state.machines.add(`machine-${id}`)
    if (this.applies === 'part') return { kind: 'failed', reason: `No network for ${[...state.machines].join()}.` }
    if (this.applies === 'waits') {
      await this.#wait(signal)
      return { kind: 'stopped' }
    }
    if (variables.object_storage_bucket) {
      this.cloud.createBucket(stateKey, variables.object_storage_bucket)
      state.bucket = variables.object_storage_bucket
      await request.onBucketCreated?.()
    }
    const machines = [...state.machines]
    return {
      kind: 'applied',
      outputs: { load_balancer_ip: state.address, details: { machines, org: variables.org_name } },
    }
  }

  async destroy(
    request: ProvisioningRequest,
    log: (line: { phase: 'destroy'; level: 'info'; message: string }) => void,
    signal: AbortSignal,
  ): Promise<DestroyResult> {
    const state = this.cloud.open(request, request.variables.sovereign_fqdn ?? '')
    log({ phase: 'destroy', level: 'info', message: `Destroying ${[...state.machines].join()}.` })
    if (this.destroys === 'waits') {
      await this.#wait(signal)
      return { kind: 'stopped' }
    }
    if (this.destroys !== 'all') return { kind: 'failed', reason: `${[...state.machines].join()} is protected.` }
    state.machines.clear()
    return { kind: 'destroyed' }
  }

  async plan(request: ProvisioningRequest & { readonly destroy: boolean }): Promise<PlanResult> {
    const machines = [...(this.cloud.states.get(request.stateKey)?.machines ?? [])]
    return { kind: 'planned', text: `${request.destroy ? 'Destroy' : 'Keep'} ${machines.join()}.`, json: { machines } }
  }

  async inspect({ stateKey }: StateRequest): Promise<StateInspection> {
    const state = this.cloud.states.get(stateKey)
    const resources = [...(state?.machines ?? [])]
    return { kind: 'inspected', isEmpty: resources.length === 0, hasKeptBucket: state?.bucket !== null, resources }
  }

  async archive({ stateKey }: StateRequest): Promise<string> {
    const state = this.cloud.states.get(stateKey)
    if (state) this.cloud.archived.set(stateKey, state)
    this.cloud.states.delete(stateKey)
    return 'The state is in the archive.'
  }

  async findLockHolder(): Promise<'ended'> {
    return 'ended'
  }

  async unlock(): Promise<UnlockResult> {
    return { kind: 'not-locked' }
  }

  async cleanUp(): Promise<void> {}

  async #wait(signal: AbortSignal): Promise<void> {
    this.isWaiting = true
    await waitForAbort(signal)
    this.isWaiting = false
  }
}
