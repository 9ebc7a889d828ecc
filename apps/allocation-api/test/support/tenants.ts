import { randomUUID } from 'node:crypto'
import { until } from '@pool/test-kit/poll.ts'
import { expect } from 'vitest'
import type { FindBucket } from '../../src/credentials/find-bucket.ts'
import type { CallerWithToken } from '../../src/deployments/commands/call.ts'
import type { Call } from '../../src/deployments/domain/lifecycle.ts'
import type { DeploymentSpec } from '../../src/deployments/domain/types.ts'
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
import { hashToken } from '../../src/lib/token.ts'
import {
  caller,
  credentials,
  type DeploymentReplica,
  LEASE_MS,
  operator,
  specFor,
  toKeys,
  type useDeployments,
  withStorage,
} from './deployments-fixture.ts'

/** How far an apply or a destroy gets. `waits`: it changes something, and then waits for the signal. */
export type Extent = 'all' | 'part' | 'nothing' | 'waits'

interface CloudState {
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
class CloudProvisioner implements Provisioner {
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

  async describeExposure(): Promise<null> {
    return null
  }

  async makesBucket(): Promise<boolean> {
    return true
  }

  async describeLimits(): Promise<null> {
    return null
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
    await request.onState?.({ lineage: stateKey, serial: 1 })
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
    const text = `${request.destroy ? 'Destroy' : 'Keep'} ${machines.join()}.`
    return { kind: 'planned', text, json: { machines }, planHash: text }
  }

  async inspect({ stateKey }: StateRequest): Promise<StateInspection> {
    const state = this.cloud.states.get(stateKey)
    const resources = [...(state?.machines ?? [])]
    return { kind: 'inspected', isEmpty: resources.length === 0, hasKeptBucket: state?.bucket !== null, resources }
  }

  async discard({ stateKey }: StateRequest): Promise<void> {
    if (this.cloud.states.get(stateKey)?.machines.size) this.cloud.violations.push(`a state with machines was removed`)
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

type Fixture = ReturnType<typeof useDeployments>

/** A replica whose Terraform works on the shared cloud. */
export interface CloudReplica extends DeploymentReplica {
  readonly terraform: CloudProvisioner
}

export const startReplica = (
  fixture: Fixture,
  cloud: Cloud,
  applies: Extent = 'all',
  destroys: Extent = 'all',
): CloudReplica => {
  const terraform = Object.assign(new CloudProvisioner(cloud), { applies, destroys })
  const findBucket: FindBucket = async (_, bucket) => ({ kind: cloud.buckets.has(bucket) ? 'owned' : 'absent' })
  return { ...fixture.replica({ provisioner: terraform, findBucket, maxConcurrentRuns: 10 }), terraform }
}

/** A client that wants one FQDN. It keeps what it got, and what it saw about its own deployments. */
export class Tenant {
  readonly spec: DeploymentSpec
  /** Its deployments, newest last, with their tokens. */
  readonly tokens = new Map<string, string>()
  readonly seen: string[] = []

  constructor(name: string, subdomain: string, hasStorage: boolean) {
    const spec = hasStorage ? withStorage(subdomain) : specFor(subdomain)
    this.spec = {
      ...spec,
      orgName: `Tenant ${name}`,
      orgEmail: `${name}@tenant.test`,
      sshPublicKey: `ssh-key-of-${name}`,
    }
  }

  get id(): string {
    return [...this.tokens.keys()].at(-1) ?? '00000000-0000-4000-8000-000000000000'
  }

  get credentials(): CallerWithToken {
    return { caller, token: this.tokens.get(this.id) ?? '00000000-0000-4000-8000-000000000000' }
  }

  async create(replica: DeploymentReplica): Promise<string> {
    const body = { spec: this.spec, credentials: this.spec.storage ? credentials : null }
    const outcome = await replica.deployments.create(body, caller, undefined)
    if (outcome.kind === 'created') this.tokens.set(outcome.id, outcome.deploymentToken)
    this.seen.push(JSON.stringify(outcome))
    return outcome.kind
  }

  async start(replica: DeploymentReplica, operation: 'apply' | 'destroy'): Promise<string> {
    const outcome = await replica.deployments[operation](this.id, toKeys(this.spec), this.credentials)
    this.seen.push(JSON.stringify(outcome))
    return outcome.kind
  }

  async plan(replica: DeploymentReplica, operation: 'apply' | 'destroy'): Promise<string> {
    const body = { ...toKeys(this.spec), operation }
    const outcome = await replica.deployments.plan(this.id, body, this.credentials, new AbortController().signal)
    this.seen.push(JSON.stringify(outcome))
    return outcome.kind
  }

  async remove(replica: DeploymentReplica, shouldAbandon = false): Promise<string> {
    const outcome = await replica.deployments.remove(
      this.id,
      shouldAbandon,
      shouldAbandon ? operator : this.credentials,
    )
    this.seen.push(JSON.stringify(outcome))
    return outcome.kind
  }

  async unlock(replica: DeploymentReplica): Promise<string> {
    return (await replica.deployments.unlock(this.id, operator.caller)).kind
  }

  /** Reads its deployments and their logs. */
  async read(replica: DeploymentReplica): Promise<void> {
    for (const id of this.tokens.keys()) {
      this.seen.push(JSON.stringify(await replica.deployments.get(id)))
      const tail = await replica.deployments.tailLog(id, 0, AbortSignal.timeout(5_000))
      if (tail.kind !== 'following') continue
      for await (const event of tail.events) {
        this.seen.push(JSON.stringify(event))
        if (typeof event === 'object' && 'kind' in event) break
      }
    }
  }

  /** What another tenant must never see. */
  markers(cloud: Cloud, lineages: readonly string[]): string[] {
    const states = lineages.flatMap(key => cloud.states.get(key) ?? cloud.archived.get(key) ?? [])
    return [
      ...[this.spec.orgName, this.spec.orgEmail, this.spec.sshPublicKey],
      ...[...this.tokens].flat(),
      ...lineages,
      ...states.flatMap(({ address, machines }) => [address, ...machines]),
    ]
  }
}

export const invoke = (replica: CloudReplica, tenant: Tenant, call: Call): Promise<string> => {
  switch (call) {
    case 'create':
      return tenant.create(replica)
    case 'apply':
    case 'destroy':
      return tenant.start(replica, call)
    case 'plan':
      return tenant.plan(replica, 'apply')
    case 'plan-destroy':
      return tenant.plan(replica, 'destroy')
    case 'delete':
    case 'abandon':
      return tenant.remove(replica, call === 'abandon')
    case 'unlock':
      return tenant.unlock(replica)
  }
}

/** Waits for the end of the runs in this process, which are in memory and not in the database alone. */
export const waitUntilIdle = (replica: DeploymentReplica): Promise<unknown> =>
  until('no run is in progress', () => replica.deployments.activeCount() === 0)

/** The client of a creation whose response was lost does not know its deployment. An operator does. */
export const adoptUnheardCreations = async (fixture: Fixture, tenants: readonly Tenant[]): Promise<void> => {
  for (const tenant of tenants) {
    const rows = await fixture.sql<{ id: string }[]>`
      select id from deployments
      where sovereign_fqdn = ${tenant.spec.sovereignFQDN} and request ->> 'orgName' = ${tenant.spec.orgName}
        and abandoned_at is null`
    for (const { id } of rows) {
      if (tenant.tokens.has(id)) continue
      const token = randomUUID()
      await fixture.sql`update deployments set token_hash = ${hashToken(token)} where id = ${id}`
      tenant.tokens.set(id, token)
    }
  }
}

/** Another process takes over what a killed one left, and brings every run to an end. */
export const settle = async (fixture: Fixture, survivor: CloudReplica, killed?: CloudReplica): Promise<void> => {
  // Ends what still waits for an answer in the killed replica.
  if (killed) void killed.deployments.tick().catch(() => {})
  await until('every run has ended', async () => {
    // Repeated, because a renewal that was sent before the kill may take effect after it.
    if (survivor.deployments.activeCount() === 0) await fixture.advance(LEASE_MS)
    await survivor.deployments.tick()
    return (await fixture.sql`select from deployments where finished_at is null`).length === 0
  })
  await until('the runs are over in this process', () => survivor.deployments.activeCount() === 0)
  expect(survivor.errors).toEqual([])
}

const readLineages = async (fixture: Fixture, tenant: Tenant): Promise<string[]> => {
  const ids = [...tenant.tokens.keys()]
  if (ids.length === 0) return []
  const rows = await fixture.sql<{ id: string }[]>`
    select lineage_id as id from deployments where id in ${fixture.sql(ids)}`
  return rows.map(({ id }) => id)
}

/** Responses about a tenant's own deployments show nothing of the other one. */
export const expectSeparation = async (fixture: Fixture, cloud: Cloud, tenants: readonly Tenant[]): Promise<void> => {
  for (const tenant of tenants) {
    for (const other of tenants.filter(one => one !== tenant)) {
      const markers = other.markers(cloud, await readLineages(fixture, other))
      const leaks = markers.filter(marker => tenant.seen.some(text => text.includes(marker)))
      expect(leaks, `${tenant.spec.orgName} sees what belongs to ${other.spec.orgName}`).toEqual([])
    }
  }
}

/** The rules that hold whenever no run is in progress. */
export const expectConsistency = async (fixture: Fixture, cloud: Cloud, fqdn: string): Promise<void> => {
  expect(cloud.violations).toEqual([])
  const up = cloud.statesUp(fqdn)
  expect(up.length, 'lineages with machines').toBeLessThanOrEqual(1)
  const lineages = await fixture.sql<{ id: string; hasInfrastructure: boolean }[]>`
    select id, has_infrastructure as "hasInfrastructure" from lineages
    where sovereign_fqdn = ${fqdn} and archived_at is null`
  for (const key of up) {
    expect(
      lineages.find(({ id }) => id === key),
      'machines without a lineage',
    ).toMatchObject({ hasInfrastructure: true })
  }
  const names = await fixture.sql<
    { state: string; lineageId: string | null; address: string | null; isFree: boolean }[]
  >`
    select state, lineage_id as "lineageId", host(load_balancer_ip) as address,
      state <> 'active' and lineage_id is null and greatest(expires_at, cool_off_until) <= now() as "isFree"
    from pool_allocations where sovereign_fqdn = ${fqdn} or subdomain || '.' || pool_domain = ${fqdn}`
  const [name] = names
  if (up.length > 0) expect(name?.lineageId, 'the lineage of a name with machines').toBe(up[0])
  // A destroy that failed after its last machine was gone has not withdrawn the name yet.
  if (name?.state === 'active') {
    const [owner] = [...cloud.states].find(([, { address }]) => address === name.address) ?? []
    expect(owner, 'the lineage of the address of an active name').toBe(name.lineageId)
  }
  const claims = await fixture.sql<{ bucket: string; lineageId: string; isPermanent: boolean }[]>`
    select bucket, lineage_id as "lineageId", is_permanent as "isPermanent" from bucket_claims
    where sovereign_fqdn = ${fqdn}`
  for (const [bucket, lineageId] of cloud.buckets) {
    if (cloud.states.get(lineageId)?.fqdn !== fqdn) continue
    expect(claims).toContainEqual({ bucket, lineageId, isPermanent: true })
  }
}

export const expectNoCredentials = async (fixture: Fixture): Promise<void> => {
  const [row] = await fixture.sql<{ text: string }[]>`
    select coalesce(string_agg(to_jsonb(d)::text, ' '), '') as text from deployments d`
  expect(row?.text).not.toContain('marked')
}
