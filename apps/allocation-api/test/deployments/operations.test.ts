import { randomUUID } from 'node:crypto'
import { until } from '@pool/test-kit/poll.ts'
import { describe, expect, test } from 'vitest'
import type { CallerWithToken } from '../../src/deployments/commands/call.ts'
import { ProvisionerFailedError } from '../../src/deployments/domain/provisioner-failure.ts'
import type { DeploymentSpec } from '../../src/deployments/domain/types.ts'
import {
  caller,
  createDeployment,
  credentials,
  type DeploymentReplica,
  LEASE_MS,
  operator,
  readDeployment,
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

interface Owned {
  readonly id: string
  readonly owner: CallerWithToken
}

const create = async (replica: DeploymentReplica, spec: DeploymentSpec): Promise<Owned> => {
  const outcome = await replica.deployments.create(toBody(spec), caller, undefined)
  if (outcome.kind !== 'created') throw new Error(outcome.kind)
  return { id: outcome.id, owner: { caller, token: outcome.deploymentToken } }
}

const createReady = async (replica: DeploymentReplica, spec: DeploymentSpec): Promise<Owned> => {
  replica.provisioner.result = applied()
  const owned = await create(replica, spec)
  expect(await waitUntilFinished(replica, owned.id)).toMatchObject({ status: 'ready' })
  await until('the run is over', () => replica.deployments.activeCount() === 0)
  return owned
}

const waitForDestroy = (replica: DeploymentReplica) => until('destroy', () => replica.provisioner.destroys[0])

describe('the deployment token', () => {
  test('is required in-cluster and not from an operator', async () => {
    const replica = fixture.replica()
    const { id } = await createReady(replica, specFor('acme'))
    const { deployments } = replica
    const { signal } = new AbortController()
    for (const token of [undefined, '', 'x', '11111111-2222-4333-8444-555555555555']) {
      const stranger = { caller, token }
      const outcomes = [
        await deployments.apply(id, {}, stranger),
        await deployments.destroy(id, {}, stranger),
        await deployments.plan(id, {}, stranger, signal),
        await deployments.remove(id, false, stranger),
      ]
      expect(outcomes).toEqual(outcomes.map(() => ({ kind: 'token-mismatch' })))
    }
    expect(await deployments.plan(id, {}, operator, signal)).toMatchObject({ kind: 'planned', operation: 'apply' })
    expect(replica.provisioner.destroys).toHaveLength(0)
  })

  test('does not allow its client to abandon infrastructure', async () => {
    const replica = fixture.replica()
    const { id, owner } = await createReady(replica, specFor('acme'))
    expect(await replica.deployments.remove(id, true, owner)).toMatchObject({ kind: 'forbidden' })
    expect(await replica.deployments.remove(id, true, operator)).toEqual({ kind: 'removed' })
    expect(fixture.states.archived).toHaveLength(1)
    expect(await fixture.nameState('acme')).toBe('free')
    const { items: entries } = await replica.deployments.history({ deployment: id })
    const detail = `The state is in archive/${fixture.states.archived[0]}.`
    expect(entries.slice(0, 2)).toMatchObject([{ event: 'deleted', detail }, { event: 'abandoned' }])
  })
})

test('an apply that fails before anything was written leaves nothing behind, also if the state cannot be read', async () => {
  const replica = fixture.replica()
  Object.assign(replica.provisioner, {
    apply: async () => ({ kind: 'failed', reason: 'The backend does not respond.' }),
    inspectionFailure: 'The backend does not respond.',
  })
  const { id, owner } = await create(replica, withStorage('acme'))
  expect(await waitUntilFinished(replica, id)).toMatchObject({ status: 'failed' })
  expect(await fixture.nameState('acme')).toBe('free')
  expect(await replica.deployments.remove(id, false, owner)).toEqual({ kind: 'removed' })
})

describe('a machine that fails', () => {
  const reason = 'The disk is full.'
  const fail = async () => {
    throw new ProvisionerFailedError(reason)
  }

  test.each(['moduleVersion', 'apply', 'inspect'] as const)(
    'during %s fails the deployment with its reason',
    async method => {
      const replica = fixture.replica()
      const { id, owner } = await createReady(replica, specFor('acme'))
      Object.assign(replica.provisioner, { [method]: fail })
      await (method === 'inspect'
        ? replica.deployments.destroy(id, {}, owner)
        : replica.deployments.apply(id, {}, owner))
      const { status, error } = await waitUntilFinished(replica, id)
      expect([status, error]).toEqual(['failed', expect.stringContaining(reason)])
    },
  )

  test('during a plan or an abandon leaves all as it is', async () => {
    const replica = fixture.replica()
    const { id, owner } = await createReady(replica, specFor('acme'))
    const { archive } = replica.provisioner
    Object.assign(replica.provisioner, { plan: fail, archive: fail })
    const failed = { kind: 'plan-failed', detail: reason }
    expect(await replica.deployments.plan(id, {}, owner, new AbortController().signal)).toEqual(failed)
    const unavailable = { kind: 'provisioning-unavailable', detail: reason }
    expect(await replica.deployments.remove(id, true, operator)).toEqual(unavailable)
    expect(await fixture.nameState('acme')).toBe('active')
    replica.provisioner.archive = archive
    expect(await replica.deployments.remove(id, true, operator)).toEqual({ kind: 'removed' })
  })
})

describe('an apply', () => {
  test('after ready: a changed address replaces the published one, and the name stays active', async () => {
    const replica = fixture.replica()
    const { id, owner } = await createReady(replica, specFor('acme'))
    replica.provisioner.result = applied('192.0.2.77')
    expect(await replica.deployments.apply(id, {}, owner)).toEqual({ kind: 'started', id, status: 'provisioning' })
    expect(await waitUntilFinished(replica, id)).toMatchObject({
      status: 'ready',
      result: { loadBalancerIP: '192.0.2.77' },
    })
    const [row] = await fixture.sql`select state, host(load_balancer_ip) as address from pool_allocations`
    expect(row).toEqual({ state: 'active', address: '192.0.2.77' })
    const history = await fixture.sql`select event from allocation_history order by id`
    expect(history.map(({ event }) => event)).toEqual(['reserved', 'committed', 'updated'])
  })

  test('that fails after ready keeps the name active and the last result', async () => {
    const replica = fixture.replica()
    const { id, owner } = await createReady(replica, specFor('acme'))
    replica.provisioner.result = { kind: 'failed', reason: 'No network.' }
    await replica.deployments.apply(id, {}, owner)
    expect(await waitUntilFinished(replica, id)).toMatchObject({
      status: 'failed',
      error: 'No network.',
      result: { loadBalancerIP: '192.0.2.1' },
    })
    expect(await fixture.nameState('acme')).toBe('active')
  })

  test('takes the name again that another client released meanwhile', async () => {
    const replica = fixture.replica()
    const { id, owner } = await createReady(replica, specFor('acme'))
    await fixture.sql`
      update pool_allocations set state = 'released', expires_at = null, cool_off_until = now() where subdomain = 'acme'`
    await replica.deployments.apply(id, {}, owner)
    expect(await waitUntilFinished(replica, id)).toMatchObject({ status: 'ready' })
    expect(await fixture.nameState('acme')).toBe('active')
  })

  test('whose name belongs to another client starts nothing', async () => {
    const replica = fixture.replica()
    replica.provisioner.result = { kind: 'failed', reason: 'no' }
    const { id, owner } = await create(replica, specFor('acme'))
    await waitUntilFinished(replica, id)
    await fixture.sql`
      insert into pool_allocations (pool_domain, subdomain, state, reserved_at, expires_at, token_hash, created_by)
      values ('pool.test', 'acme', 'reserved', now(), now() + interval '1 minute', sha256('theirs'), '')`
    expect(await replica.deployments.apply(id, {}, owner)).toEqual({ kind: 'subdomain-conflict' })
    expect(await readDeployment(replica, id)).toMatchObject({ status: 'failed' })
    expect(replica.provisioner.applies).toHaveLength(1)
  })

  test('and a destroy need the credentials again, which are validated and not stored', async () => {
    const spec = withStorage('acme')
    const checked: unknown[] = []
    const replica = fixture.replica({
      validateKeys: async keys => {
        checked.push(keys)
        return { kind: 'accepted', message: '' }
      },
    })
    const { id, owner } = await createReady(replica, spec)
    for (const operation of ['apply', 'destroy'] as const) {
      const outcome = await replica.deployments[operation](id, undefined, owner)
      expect(outcome).toMatchObject({
        kind: 'invalid-deployment',
        faults: [{ field: 'objectStorageAccessKey' }, { field: 'objectStorageSecretKey' }],
      })
      expect(await replica.deployments[operation](id, toKeys(spec), owner)).toMatchObject({ kind: 'started' })
      await waitUntilFinished(replica, id)
    }
    expect(checked).toEqual(Array.from({ length: 3 }, () => ({ region: 'fsn1', ...credentials })))
    expect(replica.provisioner.destroys[0]?.request.secrets).toEqual({
      object_storage_access_key: credentials.accessKey,
      object_storage_secret_key: credentials.secretKey,
    })
    const [row] = await fixture.sql<{ text: string }[]>`select to_jsonb(d)::text as text from deployments d`
    expect(row?.text).not.toContain('marked')
  })
})

describe('new input', () => {
  const seen = new Set<boolean>()
  const readRequest = async () =>
    (await fixture.sql<{ text: string }[]>`select request::text as text from deployments`)[0]?.text

  test('reaches the module and is stored; what is absent stays', async () => {
    const replica = fixture.replica()
    const { id, owner } = await createReady(replica, specFor('acme'))
    expect(await replica.deployments.apply(id, { orgName: 'Beta', region: 'hel1' }, owner)).toMatchObject({
      kind: 'started',
    })
    expect(await waitUntilFinished(replica, id)).toMatchObject({ status: 'ready', orgName: 'Beta', region: 'hel1' })
    expect((await waitForApply(replica, 2)).request.variables).toMatchObject({
      org_name: 'Beta',
      region: 'hel1',
      org_email: 'ops@acme.test',
      sovereign_fqdn: 'acme.pool.test',
    })
    await until('the run is over', () => replica.deployments.activeCount() === 0)
    await replica.deployments.apply(id, {}, owner)
    expect((await waitForApply(replica, 3)).request.variables).toMatchObject({ org_name: 'Beta', region: 'hel1' })
  })

  const kills = [1, 2, 3, 4, 5, 6, 7, 8].flatMap(n =>
    (['before', 'after'] as const).map(effect => [effect, n] as const),
  )
  test.each(kills)(
    'of a process that is killed %s statement %i is what the next process applies, if it was accepted',
    async (effect, n) => {
      const left = fixture.replica()
      const { id, owner } = await createReady(left, specFor('acme'))
      left.provisioner.result = null
      const killed = left.killAt(n, effect)
      left.deployments.apply(id, { orgName: 'Beta', region: 'hel1' }, owner).catch(() => {})
      await killed
      const accepted = await fixture.sql`select from deployment_history where event = 'apply-requested'`
      const other = await fixture.takeOver(applied())
      const isNew = accepted.length > 0
      expect(await waitUntilFinished(other, id)).toMatchObject({
        status: 'ready',
        orgName: isNew ? 'Beta' : 'Acme',
        region: isNew ? 'hel1' : 'fsn1',
      })
      expect(other.provisioner.applies.map(({ request }) => request.variables.region)).toEqual(isNew ? ['hel1'] : [])
      seen.add(isNew)
    },
  )
  test('was accepted in some of these cases', () => expect(seen.size).toBe(2))

  test('of a rejected apply, a plan or a destroy is not stored', async () => {
    const replica = fixture.replica()
    const { id, owner } = await createReady(replica, specFor('acme'))
    const stored = await readRequest()
    const input = { orgName: 'Beta', region: 'hel1' }
    const { deployments } = replica
    const { signal } = new AbortController()
    expect(await deployments.apply(id, input, { caller, token: 'x' })).toEqual({ kind: 'token-mismatch' })
    expect(await deployments.apply(owner.token ?? '', input, owner)).toEqual({ kind: 'not-found' })
    expect(await deployments.apply(id, { ...input, sovereignSubdomain: 'beta' }, owner)).toMatchObject({
      kind: 'invalid-deployment',
      faults: [{ field: 'sovereignSubdomain' }],
    })
    expect(await deployments.plan(id, input, owner, signal)).toMatchObject({ kind: 'planned' })
    expect(replica.provisioner.plans[0]?.variables).toMatchObject({ org_name: 'Beta', region: 'hel1' })
    expect(await deployments.plan(id, { ...input, operation: 'destroy' }, owner, signal)).toMatchObject({
      kind: 'planned',
    })
    expect(replica.provisioner.plans[1]?.variables).toMatchObject({ org_name: 'Acme', region: 'fsn1' })
    expect(await deployments.plan(id, { operation: 'x', region: '' }, owner, signal)).toMatchObject({
      faults: [{ field: 'operation' }, { field: 'region' }],
    })
    expect(await readRequest()).toBe(stored)
    replica.provisioner.destroyResult = null
    await deployments.destroy(id, input, owner)
    const { end, request } = await waitForDestroy(replica)
    expect(request.variables).toMatchObject({ org_name: 'Acme', region: 'fsn1' })
    expect(await deployments.apply(id, input, owner)).toEqual({ kind: 'in-progress' })
    end({ kind: 'failed', reason: 'no' })
    await waitUntilFinished(replica, id)
    expect(await deployments.apply(id, input, owner)).toEqual({ kind: 'destroy-incomplete' })
    expect(await readRequest()).toBe(stored)
  })

  test('of an apply whose name or bucket belongs to another deployment is not stored', async () => {
    const replica = fixture.replica()
    replica.provisioner.result = { kind: 'failed', reason: 'no' }
    const { id, owner } = await create(replica, specFor('acme'))
    await waitUntilFinished(replica, id)
    const stored = await readRequest()
    await fixture.sql`
      with other as (
        insert into lineages (id, sovereign_fqdn, infrastructure_changed_at, created_at)
        values (${randomUUID()}, 'acme-pool.test', now(), now()) returning id
      )
      insert into bucket_claims (bucket, lineage_id, sovereign_fqdn, claimed_at)
      select 'catalyst-acme-pool-test', id, 'acme-pool.test', now() from other`
    const withBucket = {
      orgName: 'Beta',
      providers: ['hetzner'],
      objectStorageRegion: 'hel1',
      ...toKeys(withStorage('')),
    }
    expect(await replica.deployments.apply(id, withBucket, owner)).toMatchObject({ kind: 'bucket-conflict' })
    await fixture.sql`delete from pool_allocations`
    await fixture.sql`
      insert into pool_allocations (pool_domain, subdomain, state, reserved_at, expires_at, token_hash, created_by)
      values ('pool.test', 'acme', 'reserved', now(), now() + interval '1 minute', sha256('theirs'), '')`
    expect(await replica.deployments.apply(id, { orgName: 'Beta' }, owner)).toEqual({ kind: 'subdomain-conflict' })
    expect(await readRequest()).toBe(stored)
  })

  test('adds object storage: the bucket is claimed, and the keys are redacted', async () => {
    const checked: unknown[] = []
    const replica = fixture.replica({
      validateKeys: async keys => {
        checked.push(keys)
        return { kind: 'accepted', message: '' }
      },
    })
    const { id, owner } = await createReady(replica, specFor('acme'))
    const body = { providers: ['local', 'hetzner'], objectStorageRegion: 'hel1', ...toKeys(withStorage('')) }
    expect(await replica.deployments.apply(id, body, owner)).toMatchObject({ kind: 'started' })
    expect(await waitUntilFinished(replica, id)).toMatchObject({
      status: 'ready',
      objectStorageRegion: 'hel1',
      objectStorageBucket: 'catalyst-acme-pool-test',
    })
    expect(checked).toEqual([{ region: 'hel1', ...credentials }])
    const claims = await fixture.sql`select bucket, is_permanent from bucket_claims`
    expect([...claims]).toEqual([{ bucket: 'catalyst-acme-pool-test', is_permanent: true }])
    expect(await readRequest()).not.toContain('marked')
    const moved = { ...toKeys(withStorage('')), objectStorageRegion: 'fsn1' }
    expect(await replica.deployments.apply(id, moved, owner)).toMatchObject({
      faults: [{ field: 'objectStorageRegion' }],
    })
  })
})

describe('a destroy', () => {
  test('streams its log after that of the creation, and withdraws the name last', async () => {
    const replica = fixture.replica()
    const { id, owner } = await createReady(replica, specFor('acme'))
    const { numEvents } = await readDeployment(replica, id)
    replica.provisioner.destroyResult = null
    expect(await replica.deployments.destroy(id, {}, owner)).toEqual({ kind: 'started', id, status: 'destroying' })
    const { end } = await waitForDestroy(replica)
    expect(await readDeployment(replica, id)).toMatchObject({ status: 'destroying', finishedAt: null })
    expect(await fixture.nameState('acme')).toBe('active')
    end({ kind: 'destroyed' })
    expect(await waitUntilFinished(replica, id)).toMatchObject({ status: 'destroyed' })
    const lines = await fixture.sql`select message from deployment_log_lines where seq > ${numEvents} order by seq`
    expect(lines.map(({ message }) => message)).toEqual([
      'destroying acme.pool.test',
      'Released the name.',
      'The deployment is destroyed.',
    ])
    expect(await fixture.nameState('acme')).toBe('free')
  })

  test('that leaves something in the state fails and names it', async () => {
    const replica = fixture.replica()
    const { id, owner } = await createReady(replica, specFor('acme'))
    const [stateKey = ''] = fixture.states.keys
    replica.provisioner.destroyResult = null
    await replica.deployments.destroy(id, {}, owner)
    const { end } = await waitForDestroy(replica)
    replica.provisioner.inspectionFailure = 'The backend does not respond.'
    end({ kind: 'destroyed' })
    expect(await waitUntilFinished(replica, id)).toMatchObject({
      status: 'failed',
      error: expect.stringContaining('The backend does not respond.'),
    })
    expect(fixture.states.get(stateKey).resources.size).toBe(0)
    expect(await fixture.nameState('acme')).toBe('active')
    expect(await replica.deployments.apply(id, {}, owner)).toEqual({ kind: 'destroy-incomplete' })
  })

  test('whose state was lost fails; its name and bucket stay, and it finishes when the state is back', async () => {
    const replica = fixture.replica()
    const { id, owner } = await createReady(replica, withStorage('acme'))
    const [stateKey = ''] = fixture.states.keys
    const state = fixture.states.lose(stateKey)
    const keys = toKeys(withStorage('acme'))
    const missing = expect.stringMatching(/^The state of this deployment is missing: .*Nothing was changed/)
    for (const call of ['apply', 'destroy'] as const) {
      expect(await replica.deployments[call](id, keys, owner)).toMatchObject({ kind: 'started' })
      expect(await waitUntilFinished(replica, id)).toMatchObject({ status: 'failed', error: missing })
      expect(await fixture.nameState('acme')).toBe('active')
    }
    const kept = await fixture.sql`
      select from lineages l join bucket_claims c on c.lineage_id = l.id where l.has_infrastructure and c.is_permanent`
    expect(kept).toHaveLength(1)
    expect(await replica.deployments.remove(id, false, owner)).toMatchObject({ kind: 'still-up' })

    fixture.states.restore(stateKey, state)
    await replica.deployments.destroy(id, keys, owner)
    expect(await waitUntilFinished(replica, id)).toMatchObject({ status: 'destroyed' })
    expect(await fixture.nameState('acme')).toBe('free')
  })

  test.each([
    ['without credentials is handed over', specFor('acme'), 'destroying', null],
    [
      'with credentials fails, and asks for another destroy',
      withStorage('acme'),
      'failed',
      /Destroy the deployment again/,
    ],
  ] as const)('at a shutdown: one %s', async (_, spec, status, error) => {
    const replica = fixture.replica()
    const { id, owner } = await createReady(replica, spec)
    replica.provisioner.destroyResult = null
    await replica.deployments.destroy(id, toKeys(spec), owner)
    await waitForDestroy(replica)
    await replica.deployments.stop()
    const stopped = await readDeployment(replica, id)
    expect(stopped).toMatchObject({ status, ...(error ? { error: expect.stringMatching(error) } : {}) })
    const other = fixture.replica()
    await other.deployments.tick()
    if (error) await other.deployments.destroy(id, toKeys(spec), owner)
    expect(await waitUntilFinished(other, id)).toMatchObject({ status: 'destroyed' })
  })

  test('is not stopped because its name was released', async () => {
    const replica = fixture.replica()
    const { id, owner } = await createReady(replica, specFor('acme'))
    replica.provisioner.destroyResult = null
    await replica.deployments.destroy(id, {}, owner)
    const { end, signal } = await waitForDestroy(replica)
    await fixture.sql`delete from pool_allocations`
    await fixture.advance(600_000)
    await fixture.sql`update deployments set run_expires_at = now() + interval '1 minute'`
    await replica.deployments.tick()
    expect(signal.aborted).toBe(false)
    end({ kind: 'destroyed' })
    expect(await waitUntilFinished(replica, id)).toMatchObject({ status: 'destroyed' })
  })
})

describe('a planHash', () => {
  const { signal } = new AbortController()
  const seePlan = async (replica: DeploymentReplica, id: string, operation: 'apply' | 'destroy') => {
    const outcome = await replica.deployments.plan(id, { operation }, operator, signal)
    return outcome.kind === 'planned' ? outcome.planHash : expect.fail(outcome.kind)
  }

  test.each(['apply', 'destroy'] as const)(
    'of another plan ends an %s before it changes anything; that of the plan does it',
    async operation => {
      const replica = fixture.replica()
      const { id, owner } = await createReady(replica, specFor('acme'))
      const { applies, destroys } = replica.provisioner
      const start = async (planHash: string) => {
        const calls = applies.length + destroys.length
        expect(await replica.deployments[operation](id, { planHash }, owner)).toMatchObject({ kind: 'started' })
        return { ...(await waitUntilFinished(replica, id)), calls: applies.length + destroys.length - calls }
      }
      const planHash = await seePlan(replica, id, operation)
      const [stateKey = ''] = fixture.states.keys
      fixture.states.get(stateKey).resources.add('machine-of-another-run')
      const error = expect.stringMatching(/^plan-changed: /)
      expect(await start(planHash)).toMatchObject({ status: 'failed', operation: 'create', error, calls: 0 })
      expect(await fixture.nameState('acme')).toBe('active')
      const { items } = await replica.deployments.history({ deployment: id })
      expect(items[1]).toMatchObject({ event: `${operation}-requested`, detail: `Plan ${planHash}.` })
      // A destroy that did nothing does not exclude an apply.
      await seePlan(replica, id, 'apply')
      const status = operation === 'apply' ? 'ready' : 'destroyed'
      expect(await start(await seePlan(replica, id, operation))).toMatchObject({ status, operation, calls: 1 })
    },
  )

  test('holds for a run that another process resumes, which may have done a part', async () => {
    const replica = fixture.replica()
    const { id, owner } = await createReady(replica, specFor('acme'))
    replica.provisioner.destroyResult = null
    await replica.deployments.destroy(id, { planHash: await seePlan(replica, id, 'destroy') }, owner)
    await waitForDestroy(replica)
    const [stateKey = ''] = fixture.states.keys
    fixture.states.get(stateKey).resources.add('second')
    await replica.deployments.stop()
    const other = fixture.replica()
    await other.deployments.tick()
    const error = expect.stringMatching(/^plan-changed: /)
    expect(await waitUntilFinished(other, id)).toMatchObject({ status: 'failed', operation: 'destroy', error })
    expect(await other.deployments.apply(id, {}, owner)).toEqual({ kind: 'destroy-incomplete' })
  })

  test.each([null, '', 'x', 7, 'A'.repeat(64)])('%j is none', async planHash => {
    const replica = fixture.replica()
    const { id, owner } = await createReady(replica, specFor('acme'))
    for (const operation of ['apply', 'destroy'] as const) {
      expect(await replica.deployments[operation](id, { planHash }, owner)).toMatchObject({
        faults: [{ field: 'planHash' }],
      })
    }
  })
})

describe('the lock of a state', () => {
  const lock = { id: 'a-lock', host: 'a-host', processGroup: 7, startedAt: '1' }

  /** A deployment whose process was killed while its Terraform held the lock. */
  const leaveLocked = async (): Promise<Owned> => {
    const replica = fixture.replica()
    const owned = await create(replica, withStorage('acme'))
    const { request } = await waitForApply(replica)
    await request.onLock?.(lock)
    fixture.states.get(request.stateKey).resources.add('machine')
    replica.kill()
    await fixture.advance(LEASE_MS)
    return owned
  }
  const readLock = async () => (await fixture.sql`select state_lock as lock from lineages`)[0]?.lock

  test('is lifted by the process that takes over if the process group has ended', async () => {
    const { id } = await leaveLocked()
    const replica = fixture.replica()
    const [stateKey = ''] = fixture.states.keys
    replica.provisioner.locks.set(stateKey, 'a-lock')
    await replica.deployments.tick()
    expect(await waitUntilFinished(replica, id)).toMatchObject({ status: 'failed' })
    expect(replica.provisioner.unlocked).toEqual(['a-lock'])
    expect(await readLock()).toBeNull()
  })

  test.each(['running', 'unknown'] as const)(
    'is kept if the process group is %s, until an operator confirms',
    async holder => {
      const { id } = await leaveLocked()
      const replica = fixture.replica()
      const [stateKey = ''] = fixture.states.keys
      Object.assign(replica.provisioner, { lockHolder: holder })
      replica.provisioner.locks.set(stateKey, 'a-lock')
      await replica.deployments.tick()
      await waitUntilFinished(replica, id)
      expect(replica.provisioner.unlocked).toEqual([])
      expect(await readLock()).toEqual(lock)
      // What the state holds is not known either while Terraform may run.
      expect(await replica.deployments.remove(id, false, operator)).toMatchObject({ kind: 'still-up' })
      expect(await replica.deployments.unlock(id, operator.caller)).toEqual({ kind: 'unlocked', id, isLifted: true })
      expect(replica.provisioner.unlocked).toEqual(['a-lock'])
      expect(await replica.deployments.unlock(id, operator.caller)).toMatchObject({ kind: 'lock-not-recorded' })
    },
  )

  test('of another process is never lifted', async () => {
    const { id } = await leaveLocked()
    const replica = fixture.replica()
    const [stateKey = ''] = fixture.states.keys
    replica.provisioner.locks.set(stateKey, 'another-lock')
    await replica.deployments.tick()
    await waitUntilFinished(replica, id)
    expect(await replica.deployments.unlock(id, operator.caller)).toMatchObject({
      kind: 'lock-not-recorded',
      detail: expect.stringContaining('another-lock'),
    })
    expect(replica.provisioner.unlocked).toEqual([])
    expect(replica.provisioner.locks.get(stateKey)).toBe('another-lock')
  })

  test('is forgotten when Terraform has released it', async () => {
    const replica = fixture.replica()
    await create(replica, specFor('acme'))
    const { request } = await waitForApply(replica)
    await request.onLock?.(lock)
    expect(await readLock()).toEqual(lock)
    await request.onLock?.(null)
    expect(await readLock()).toBeNull()
  })
})

describe('an Idempotency-Key', () => {
  const withKey = (key: string) => ({ ...operator, key })

  test.each(['apply', 'destroy'] as const)(
    'of %s replays it, also after its run, and does not start another one',
    async operation => {
      const replica = fixture.replica()
      replica.provisioner.result = applied()
      const id = await createDeployment(replica, specFor('acme'))
      await waitUntilFinished(replica, id)
      const start = (body: object = {}) => replica.deployments[operation](id, body, withKey('key-1'))
      const [first, second] = await Promise.all([start(), start()])
      expect(first).toMatchObject({ kind: 'started', id })
      expect(second).toEqual(first)
      await waitUntilFinished(replica, id)
      expect(await start()).toEqual(first)
      expect(await start({ orgName: 'Other' })).toEqual({ kind: 'idempotency-key-reused' })
      const { items } = await replica.deployments.history({ deployment: id })
      expect(items.filter(({ event }) => event === `${operation}-requested`)).toHaveLength(1)
    },
  )

  test('of a cancellation never cancels a later run, whether there was one to cancel or not', async () => {
    const replica = fixture.replica()
    replica.provisioner.ignoresStop = true
    const id = await createDeployment(replica, specFor('acme'))
    const cancelled = await waitForApply(replica)
    const cancel = (key: string) => replica.deployments.cancel(id, withKey(key))
    const remove = (key: string) => replica.deployments.remove(id, false, withKey(key))
    expect(await cancel('running')).toMatchObject({ kind: 'cancelling' })
    expect(await remove('deleting')).toMatchObject({ kind: 'cancelling' })
    cancelled.end({ kind: 'stopped' })
    await waitUntilFinished(replica, id)
    expect(await cancel('ended')).toMatchObject({ kind: 'cancelling' })
    await replica.deployments.apply(id, {}, operator)
    const { signal, end } = await waitForApply(replica, 2)
    for (const key of ['running', 'ended']) expect(await cancel(key)).toMatchObject({ kind: 'cancelling' })
    expect(await remove('deleting')).toMatchObject({ kind: 'cancelling' })
    expect(signal.aborted).toBe(false)
    end(applied())
    expect(await waitUntilFinished(replica, id)).toMatchObject({ status: 'ready' })
  })

  test('of an unlock replays its result', async () => {
    const replica = fixture.replica()
    replica.provisioner.result = applied()
    const id = await createDeployment(replica, specFor('acme'))
    await waitUntilFinished(replica, id)
    const [{ lineageId = '' } = {}] = await fixture.sql<{ lineageId: string }[]>`select id as "lineageId" from lineages`
    const lock = { id: 'left', host: 'h', processGroup: 1, startedAt: '0' }
    await fixture.sql`update lineages set state_lock = ${fixture.sql.json(lock)}`
    replica.provisioner.locks.set(lineageId, 'left')
    const unlock = () => replica.deployments.unlock(id, operator.caller, 'key-1')
    expect(await unlock()).toEqual({ kind: 'unlocked', id, isLifted: true })
    expect(await unlock()).toEqual({ kind: 'unlocked', id, isLifted: true })
    expect(await replica.deployments.unlock(id, operator.caller)).toMatchObject({ kind: 'lock-not-recorded' })
  })
})
