import { until } from '@pool/test-kit/poll.ts'
import { describe, expect, test } from 'vitest'
import { createBucketClaims } from '../../src/deployments/bucket-claims.ts'
import type { DeploymentSpec } from '../../src/deployments/domain/types.ts'
import type { Caller } from '../../src/naming/naming.ts'
import {
  caller,
  createDeployment,
  type DeploymentReplica,
  LEASE_MS,
  operator,
  removeDeployment,
  specFor,
  toBody,
  toKeys,
  useDeployments,
  waitForApply,
  waitUntilFinished,
  withStorage,
} from '../support/deployments-fixture.ts'
import { applied } from '../support/fake-provisioner.ts'

const fixture = useDeployments()
const bucket = 'catalyst-a-b-c-io'
/** Three FQDNs from which the same bucket is derived. */
const specOf = (sovereignFQDN: 'a-b.c.io' | 'a.b.c.io' | 'a.b-c.io'): DeploymentSpec =>
  specFor('x', { sovereignFQDN, name: null, storage: { region: 'fsn1', bucket } })
const lifter: Caller = { actor: 'operator', address: '192.0.2.7', requestId: 'lift-1' }

const claims = () => createBucketClaims(fixture.sql, { timeoutMs: 5_000 })
const listClaims = async () => (await claims().list({})).items
const create = (replica: DeploymentReplica, spec: DeploymentSpec) =>
  replica.deployments.create(toBody(spec), caller, undefined)
const events = async (id: string): Promise<string[]> => {
  const rows = await fixture.sql<{ event: string }[]>`
    select event from deployment_history where deployment_id = ${id} order by id`
  return rows.map(({ event }) => event)
}
const createReady = async (replica: DeploymentReplica, spec: DeploymentSpec): Promise<string> => {
  replica.provisioner.result = applied()
  const id = await createDeployment(replica, spec)
  expect(await waitUntilFinished(replica, id)).toMatchObject({ status: 'ready' })
  return id
}
const destroy = async (replica: DeploymentReplica, id: string, spec: DeploymentSpec): Promise<void> => {
  expect(await replica.deployments.destroy(id, toKeys(spec), operator)).toMatchObject({ kind: 'started' })
  expect(await waitUntilFinished(replica, id)).toMatchObject({ status: 'destroyed' })
}

describe('a claim', () => {
  test('is provisional until the bucket may exist, then permanent', async () => {
    const replica = fixture.replica({ maxConcurrentRuns: 1 })
    const first = await createDeployment(replica, specFor('first'))
    const { end } = await waitForApply(replica)
    const id = await createDeployment(replica, specOf('a.b.c.io'))
    const claim = { bucket, sovereignFQDN: 'a.b.c.io', deploymentId: id, isPermanent: false }
    expect(await listClaims()).toMatchObject([claim])
    end(applied())
    await waitUntilFinished(replica, first)
    await waitForApply(replica, 2)
    expect(await listClaims()).toMatchObject([{ ...claim, isPermanent: true }])
  })

  test.each(['is cancelled', 'is resumed without its credentials'])(
    'ends if its deployment %s before the bucket may exist',
    async how => {
      const replica = fixture.replica({ maxConcurrentRuns: 1 })
      const other = fixture.replica()
      await createDeployment(replica, specFor('first'))
      await waitForApply(replica)
      const id = await createDeployment(replica, specOf('a.b.c.io'))
      expect(await create(other, specOf('a-b.c.io'))).toMatchObject({ kind: 'bucket-conflict' })
      if (how === 'is cancelled') {
        await removeDeployment(replica, id)
      } else {
        replica.kill()
        await fixture.advance(LEASE_MS)
        await other.deployments.tick()
      }
      expect(await waitUntilFinished(other, id)).toMatchObject({ status: 'failed' })
      expect(await listClaims()).toEqual([])
      const next = await createDeployment(other, specOf('a-b.c.io'))
      expect(await listClaims()).toMatchObject([{ bucket, sovereignFQDN: 'a-b.c.io', deploymentId: next }])
    },
  )

  test('ends if the deployment fails and its state has no bucket', async () => {
    const replica = fixture.replica()
    replica.provisioner.result = { kind: 'failed', reason: 'no' }
    const id = await createDeployment(replica, specOf('a.b.c.io'))
    await waitUntilFinished(replica, id)
    expect(await listClaims()).toEqual([])
    await createReady(replica, specOf('a-b.c.io'))
  })

  test('remains if the bucket exists, also after the deletion of the deployment', async () => {
    const replica = fixture.replica()
    const id = await createReady(replica, specOf('a.b.c.io'))
    await destroy(replica, id, specOf('a.b.c.io'))
    expect(await removeDeployment(replica, id)).toEqual({ kind: 'removed' })
    const [claim] = await listClaims()
    expect(claim).toMatchObject({ bucket, isPermanent: true })
    expect(claim).not.toHaveProperty('deploymentId')
    expect(await create(replica, specOf('a-b.c.io'))).toMatchObject({ kind: 'bucket-conflict' })
  })

  test('of 200 concurrent creations of names that map to one bucket, one creates, and the others keep no name', async () => {
    const replicas = [fixture.replica(), fixture.replica()]
    const storage = { region: 'fsn1' as const, bucket }
    const outcomes = await Promise.all(
      Array.from({ length: 200 }, (_, i) =>
        create(replicas[i % 2] as DeploymentReplica, specFor(`n${i}`, { storage })),
      ),
    )
    const kinds = outcomes.map(({ kind }) => kind)
    expect(kinds.filter(kind => kind === 'created')).toHaveLength(1)
    expect(kinds.filter(kind => kind === 'bucket-conflict')).toHaveLength(199)
    expect(await listClaims()).toHaveLength(1)
    expect(await fixture.sql`select from pool_allocations`).toHaveLength(1)
    expect(await fixture.sql`select from lineages`).toHaveLength(1)
  })
})

/** A create with object storage runs about a dozen statements. */
const kills = Array.from({ length: 13 }, (_, i) => i + 1).flatMap(n => [[n, 'before'] as const, [n, 'after'] as const])

describe('a process that is killed at any statement of a creation', () => {
  test.each(kills)(
    '%i, %s it is executed: the claim ends, or is permanent because the bucket may exist',
    async (n, moment) => {
      const replica = fixture.replica()
      replica.provisioner.result = { kind: 'failed', reason: 'no' }
      const killed = replica.killAt(n, moment)
      // How many statements a run needs varies: the lines of its log are stored in batches.
      const ended = create(replica, withStorage('acme')).then(() =>
        until('the run has ended', () => replica.deployments.activeCount() === 0),
      )
      await Promise.race([killed, ended])
      const other = fixture.replica()
      await fixture.advance(LEASE_MS)
      await other.deployments.tick()
      const [row] = await fixture.sql<{ id: string }[]>`select id from deployments`
      if (!row) return expect(await listClaims()).toEqual([])
      await until('finished', async () => {
        await other.deployments.tick()
        const found = await other.deployments.get(row.id)
        return found.kind === 'found' && found.deployment.finishedAt !== null
      })
      expect(await events(row.id)).toEqual(['created', 'failed'])
      const list = await listClaims()
      if (list.length > 0) expect(list).toMatchObject([{ isPermanent: true }])
    },
  )
})

describe('an apply that adds storage and ends before the bucket may exist', () => {
  const spec = specFor('acme')
  const addition = { providers: ['hetzner'], objectStorageRegion: 'fsn1', ...toKeys(withStorage('acme')) }
  const claim = { bucket: 'catalyst-acme-pool-test', isPermanent: false }

  /** Cancels the apply while it is queued. */
  const applyInVain = async (replica: DeploymentReplica, id: string) => {
    const busy = await createDeployment(replica, specFor('busy'))
    const { end } = await waitForApply(replica, replica.provisioner.applies.length + 1)
    expect(await replica.deployments.apply(id, addition, operator)).toMatchObject({ kind: 'started' })
    await removeDeployment(replica, id)
    expect(await waitUntilFinished(replica, id)).toMatchObject({
      status: 'failed',
      objectStorageBucket: claim.bucket,
    })
    end(applied())
    await waitUntilFinished(replica, busy)
  }

  test('keeps the claim with the input while the deployment has infrastructure', async () => {
    const replica = fixture.replica({ maxConcurrentRuns: 1 })
    const id = await createReady(replica, spec)
    replica.provisioner.result = null
    await applyInVain(replica, id)
    expect(await listClaims()).toMatchObject([claim])
    await destroy(replica, id, withStorage('acme'))
    expect(await listClaims()).toEqual([])
  })

  test('drops the claim if the deployment has no infrastructure, and the next apply claims the bucket again', async () => {
    const replica = fixture.replica({ maxConcurrentRuns: 1 })
    const id = await createReady(replica, spec)
    await destroy(replica, id, spec)
    replica.provisioner.result = null
    await applyInVain(replica, id)
    expect(await listClaims()).toEqual([])
    replica.provisioner.result = applied()
    await replica.deployments.apply(id, addition, operator)
    await waitUntilFinished(replica, id)
    expect(await listClaims()).toMatchObject([{ ...claim, isPermanent: true }])
  })
})

describe('a bucket that exists', () => {
  const spec = withStorage('acme')
  const bucketName = 'catalyst-acme-pool-test'
  const adopt = (replica: DeploymentReplica, wanted: DeploymentSpec = spec) =>
    replica.deployments.create({ ...toBody(wanted), adoptBucket: true }, caller, undefined)
  /** The deployment was destroyed and, unless it `isKept`, deleted. */
  const leaveBucket = async (replica: DeploymentReplica, isKept = false): Promise<string> => {
    const id = await createReady(replica, spec)
    await destroy(replica, id, spec)
    if (!isKept) expect(await removeDeployment(replica, id)).toEqual({ kind: 'removed' })
    return id
  }

  test.each([false, true])('of an earlier deployment is taken up, if that was kept: %s', async isKept => {
    const replica = fixture.replica()
    const former = await leaveBucket(replica, isKept)
    const rejected = await create(replica, spec)
    expect(rejected).toMatchObject({ kind: 'bucket-exists', detail: expect.stringContaining('adoptBucket: true') })
    const outcome = await adopt(replica)
    if (outcome.kind !== 'created') throw new Error(outcome.kind)
    expect(await waitUntilFinished(replica, outcome.id)).toMatchObject({ status: 'ready' })
    expect(replica.provisioner.applies.at(-1)?.request).toMatchObject({ id: outcome.id, mayImportBucket: true })
    expect(await listClaims()).toMatchObject([{ bucket: bucketName, deploymentId: outcome.id, isPermanent: true }])
    expect(await events(former)).toContain('bucket-claim-lifted')
    if (isKept)
      expect(await replica.deployments.apply(former, toKeys(spec), operator)).toMatchObject({
        kind: 'fqdn-remains',
      })
  })

  test('that no deployment made is taken up by a create or by an apply that adds storage', async () => {
    const replica = fixture.replica()
    fixture.states.buckets.add(bucketName)
    expect(await create(replica, spec)).toMatchObject({ kind: 'bucket-exists' })
    const id = await createReady(replica, specFor('acme'))
    const addition = { providers: ['hetzner'], objectStorageRegion: 'fsn1', ...toKeys(spec) }
    expect(await replica.deployments.apply(id, addition, operator)).toMatchObject({ kind: 'bucket-exists' })
    expect(await replica.deployments.apply(id, { ...addition, adoptBucket: true }, operator)).toMatchObject({
      kind: 'started',
    })
    expect(await waitUntilFinished(replica, id)).toMatchObject({ status: 'ready' })
    expect(replica.provisioner.applies.at(-1)?.request).toMatchObject({ id, mayImportBucket: true })
  })

  test('and that other credentials own is 409, and nothing happens', async () => {
    const replica = fixture.replica({ findBucket: async () => ({ kind: 'foreign' }) })
    for (const outcome of [await create(replica, spec), await adopt(replica)]) {
      expect(outcome).toMatchObject({ kind: 'bucket-conflict', detail: expect.stringContaining('do not own it') })
    }
    expect(await fixture.sql`select from pool_allocations`).toHaveLength(0)
    expect(await fixture.sql`select from lineages`).toHaveLength(0)
    expect(replica.provisioner.applies).toEqual([])
  })

  test('of another FQDN is not taken up, not even by its owner', async () => {
    const replica = fixture.replica()
    const id = await createReady(replica, specOf('a.b.c.io'))
    await destroy(replica, id, specOf('a.b.c.io'))
    expect(await adopt(replica, specOf('a-b.c.io'))).toMatchObject({ kind: 'bucket-conflict' })
    expect(await listClaims()).toMatchObject([{ deploymentId: id }])
  })

  test('and that its owner has deleted keeps nobody from the name', async () => {
    const replica = fixture.replica()
    await leaveBucket(replica)
    fixture.states.buckets.clear()
    const id = await createReady(replica, spec)
    expect(await listClaims()).toMatchObject([{ deploymentId: id }])
  })

  test('of a deployment that is up stays with it', async () => {
    const replica = fixture.replica()
    const id = await createReady(replica, spec)
    for (const outcome of [await create(replica, spec), await adopt(replica)]) {
      expect(outcome).toMatchObject({ kind: 'subdomain-conflict' })
    }
    expect(await listClaims()).toMatchObject([{ deploymentId: id }])
  })
})

describe('a deployment with object storage', () => {
  const spec = withStorage('acme')

  test.each([
    ['absent', /^The module did not create the bucket catalyst-acme-pool-test: correct the module/],
    ['foreign', /these credentials do not own it/],
  ] as const)('whose bucket is %s after the apply is not ready', async (kind, error) => {
    let isApplied = false
    const replica = fixture.replica({ findBucket: async () => ({ kind: isApplied ? kind : 'absent' }) })
    const id = await createDeployment(replica, spec)
    const { end } = await waitForApply(replica)
    isApplied = true
    end(applied())
    expect(await waitUntilFinished(replica, id)).toMatchObject({
      status: 'failed',
      error: expect.stringMatching(error),
    })
  })

  test('is rejected before anything starts if the module makes no bucket', async () => {
    const replica = fixture.replica()
    replica.provisioner.declaresBucket = false
    expect(await create(replica, spec)).toMatchObject({
      kind: 'invalid-deployment',
      faults: [{ field: 'objectStorageRegion', detail: expect.stringContaining('object_storage_bucket') }],
    })
    expect(await fixture.sql`select from pool_allocations`).toHaveLength(0)
    const id = await createReady(replica, specFor('acme'))
    const addition = { providers: ['hetzner'], objectStorageRegion: 'fsn1', ...toKeys(spec) }
    expect(await replica.deployments.apply(id, addition, operator)).toMatchObject({ kind: 'invalid-deployment' })
  })
})

test.each([
  ['198.18.0.1', false, 'failed'],
  ['198.19.255.255', false, 'failed'],
  ['198.17.255.255', false, 'ready'],
  ['198.20.0.1', false, 'ready'],
  ['198.18.0.1', true, 'ready'],
])('a load balancer %s, with test addresses accepted: %s, is %s', async (address, acceptsTestAddresses, status) => {
  const replica = fixture.replica({ acceptsTestAddresses })
  replica.provisioner.result = applied(address)
  const deployment = await waitUntilFinished(replica, await createDeployment(replica, specFor('acme')))
  expect(deployment.status).toBe(status)
  if (status === 'failed') expect(deployment.error).toContain('PDM_ACCEPT_TEST_ADDRESSES')
})

describe('lifting a claim', () => {
  test('is rejected while a run or infrastructure uses the bucket', async () => {
    const replica = fixture.replica()
    const id = await createDeployment(replica, specOf('a.b.c.io'))
    const { end } = await waitForApply(replica)
    expect(await claims().lift(bucket, lifter)).toEqual({
      kind: 'in-progress',
      detail: `A run of deployment ${id} uses the bucket; wait for its end or cancel it.`,
    })
    end(applied())
    await waitUntilFinished(replica, id)
    expect(await claims().lift(bucket, lifter)).toEqual({
      kind: 'still-up',
      detail: `Infrastructure of deployment ${id} may use the bucket; destroy or abandon the deployment first.`,
    })
    expect(await listClaims()).toHaveLength(1)
  })

  test('lets another deployment have the bucket, and the history has who lifted it', async () => {
    const replica = fixture.replica()
    const id = await createReady(replica, specOf('a.b.c.io'))
    await destroy(replica, id, specOf('a.b.c.io'))
    expect(await create(replica, specOf('a-b.c.io'))).toMatchObject({ kind: 'bucket-conflict' })
    expect(await claims().lift(bucket, lifter)).toEqual({ kind: 'lifted' })
    expect(await claims().lift(bucket, lifter)).toEqual({ kind: 'not-found' })
    fixture.states.buckets.clear()
    await createReady(replica, specOf('a-b.c.io'))
    expect(await replica.deployments.apply(id, toKeys(specOf('a.b.c.io')), operator)).toMatchObject({
      kind: 'bucket-conflict',
    })
    expect((await replica.deployments.history({ deployment: id })).items[0]).toMatchObject({
      event: 'bucket-claim-lifted',
      actor: 'operator',
      address: '192.0.2.7',
      requestId: 'lift-1',
      detail: bucket,
      orgName: 'Acme',
    })
  })

  test('does not let the next deployment import the bucket, only the one that created it', async () => {
    const replica = fixture.replica()
    const [former, next] = [specOf('a.b.c.io'), specOf('a-b.c.io')]
    const id = await createReady(replica, former)
    await destroy(replica, id, former)
    const lastApply = () => replica.provisioner.applies.at(-1)?.request
    await replica.deployments.apply(id, toKeys(former), operator)
    await waitUntilFinished(replica, id)
    expect(lastApply()).toMatchObject({ id, mayImportBucket: true })
    await destroy(replica, id, former)
    await claims().lift(bucket, lifter)

    fixture.states.buckets.clear()
    replica.provisioner.result = { kind: 'failed', reason: 'The bucket exists.' }
    const nextId = await createDeployment(replica, next)
    await waitUntilFinished(replica, nextId)
    expect(await replica.deployments.apply(nextId, toKeys(next), operator)).toMatchObject({ kind: 'started' })
    await waitUntilFinished(replica, nextId)
    expect(lastApply()).toMatchObject({ id: nextId, mayImportBucket: false })
    await replica.deployments.plan(nextId, toKeys(next), operator, new AbortController().signal)
    expect(replica.provisioner.plans.at(-1)).toMatchObject({ id: nextId, mayImportBucket: false })
  })

  test('of a deleted deployment leaves no lineage behind', async () => {
    const replica = fixture.replica()
    const id = await createReady(replica, specOf('a.b.c.io'))
    await destroy(replica, id, specOf('a.b.c.io'))
    expect(await removeDeployment(replica, id)).toEqual({ kind: 'removed' })
    expect(await create(replica, specOf('a.b.c.io'))).toMatchObject({ kind: 'bucket-exists' })
    expect(await claims().lift(bucket, lifter)).toEqual({ kind: 'lifted' })
    expect(await fixture.sql`select from lineages`).toHaveLength(0)
    expect((await events(id)).at(-1)).toBe('bucket-claim-lifted')
    fixture.states.buckets.clear()
    await createReady(replica, specOf('a.b.c.io'))
  })

  test('of an apply at the same time: no run is without its claim', async () => {
    const replica = fixture.replica()
    const id = await createReady(replica, specOf('a.b.c.io'))
    for (let round = 0; round < 25; round += 1) {
      await destroy(replica, id, specOf('a.b.c.io'))
      replica.provisioner.result = null
      const applies = replica.provisioner.applies.length
      const [started] = await Promise.all([
        replica.deployments.apply(id, { ...toKeys(specOf('a.b.c.io')), adoptBucket: true }, operator),
        claims().lift(bucket, lifter),
      ])
      expect(started).toMatchObject({ kind: 'started' })
      const { end } = await waitForApply(replica, applies + 1)
      expect(await listClaims()).toMatchObject([{ bucket, deploymentId: id, isPermanent: true }])
      end(applied())
      expect(await waitUntilFinished(replica, id)).toMatchObject({ status: 'ready' })
    }
  })
})

test('the list is by bucket, paginated without gaps, at most 1,000 on a page', async () => {
  await fixture.sql`
    with lineage as (
      insert into lineages (id, sovereign_fqdn, infrastructure_changed_at, created_at)
      select gen_random_uuid(), 'n' || i || '.test', now(), now() from generate_series(1, 1100) i
      returning id, sovereign_fqdn
    )
    insert into bucket_claims (bucket, lineage_id, sovereign_fqdn, is_permanent, claimed_at)
    select 'catalyst-' || replace(sovereign_fqdn, '.', '-'), id, sovereign_fqdn, true, now() from lineage`
  const first = await claims().list({ limit: 5_000 })
  expect(first.items).toHaveLength(1_000)
  const rest = await claims().list({ limit: 5_000, cursor: first.nextCursor })
  expect(rest.nextCursor).toBeUndefined()
  const names = [...first.items, ...rest.items].map(claim => claim.bucket)
  expect(names).toEqual([...new Set(names)].sort())
  expect(names).toHaveLength(1_100)
  expect((await claims().list({})).items).toHaveLength(100)
})
