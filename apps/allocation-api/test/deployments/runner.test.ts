import { until } from '@pool/test-kit/poll.ts'
import { describe, expect, test } from 'vitest'
import type { DeploymentSpec } from '../../src/deployments/domain/types.ts'
import {
  caller,
  createDeployment,
  LEASE_MS,
  operator,
  readDeployment,
  removeDeployment,
  specFor,
  TTL_MS,
  toBody,
  useDeployments,
  waitForApply,
  waitUntilFinished,
  withStorage,
} from '../support/deployments-fixture.ts'
import { applied, FAKE_MODULE } from '../support/fake-provisioner.ts'
import { lockDeployment } from '../support/locks.ts'

const fixture = useDeployments()
const messages = async (id: string): Promise<string[]> => {
  const rows = await fixture.sql<{ seq: number; message: string }[]>`
    select seq, message from deployment_log_lines where deployment_id = ${id} order by seq`
  expect(rows.map(({ seq }) => seq)).toEqual(rows.map((_, i) => i + 1))
  return rows.map(({ message }) => message)
}

describe('a deployment', () => {
  test('is accepted, reserved, applied, committed and ready', async () => {
    const replica = fixture.replica()
    const id = await createDeployment(replica, withStorage('acme'))
    const { request, log, end } = await waitForApply(replica)
    expect(request).toMatchObject({
      id,
      stateKey: expect.stringMatching(/^[0-9a-f-]{36}$/),
      bucket: 'catalyst-acme-pool-test',
      mayImportBucket: false,
      variables: { sovereign_fqdn: 'acme.pool.test', object_storage_bucket: 'catalyst-acme-pool-test' },
    })
    expect(await readDeployment(replica, id)).toMatchObject({
      status: 'provisioning',
      finishedAt: null,
      sovereignFQDN: 'acme.pool.test',
    })
    expect(await fixture.nameState('acme')).toBe('reserved')
    log({ phase: 'apply', level: 'info', message: 'half way' })
    await until('its lines are stored during the run', async () => (await readDeployment(replica, id)).numEvents === 3)
    end(applied('192.0.2.7', { control_plane_ip: '192.0.2.8', details: { size: 3 }, other: 4 }))
    expect(await waitUntilFinished(replica, id)).toEqual({
      id,
      status: 'ready',
      operation: 'create',
      startedAt: expect.any(String),
      finishedAt: expect.any(String),
      orgName: 'Acme',
      orgEmail: 'ops@acme.test',
      sovereignFQDN: 'acme.pool.test',
      providers: ['local'],
      region: 'fsn1',
      module: FAKE_MODULE,
      objectStorageRegion: 'fsn1',
      objectStorageBucket: 'catalyst-acme-pool-test',
      keptBucket: 'catalyst-acme-pool-test',
      numEvents: 5,
      result: {
        sovereignFQDN: 'acme.pool.test',
        loadBalancerIP: '192.0.2.7',
        controlPlaneIP: '192.0.2.8',
        details: { size: 3 },
      },
    })
    expect(await messages(id)).toEqual([
      'Reserved the name acme.pool.test.',
      'applying acme.pool.test',
      'half way',
      'The name is active and its records are published.',
      'The deployment is ready.',
    ])
    const [row] = await fixture.sql`select * from pool_allocations where subdomain = 'acme'`
    expect(row).toMatchObject({ state: 'active', load_balancer_ip: '192.0.2.7', sovereign_fqdn: 'acme.pool.test' })
    const history = await fixture.sql`select event, actor, request_id from allocation_history order by id`
    expect(history).toMatchObject([
      { event: 'reserved', actor: 'in-cluster', request_id: 'test' },
      { event: 'committed', actor: 'deployment', request_id: id },
    ])
    expect(replica.errors).toEqual([])
  })

  test('credentials are not stored in the database', async () => {
    const replica = fixture.replica()
    replica.provisioner.result = applied()
    await waitUntilFinished(replica, await createDeployment(replica, withStorage('acme')))
    const [row] = await fixture.sql<{ text: string }[]>`select to_jsonb(d)::text as text from deployments d`
    expect(row?.text).toContain('"objectStorageSecretKey": "<redacted>"')
    expect(row?.text).not.toContain('marked')
  })

  test.each<[what: string, end: Parameters<typeof applied>[1] | 'failed', reason: string]>([
    ['fails midway', 'failed', 'The network is not there.'],
    ['has no address', { load_balancer_ip: undefined }, 'has no output load_balancer_ip'],
    ['has an address of IPv6', { load_balancer_ip: '2001:db8::1' }, 'has no output load_balancer_ip'],
  ])('whose infrastructure %s fails, releases its name and shows the reason', async (_, end, reason) => {
    const replica = fixture.replica()
    replica.provisioner.result =
      end === 'failed' ? { kind: 'failed', reason: 'The network is not there.' } : applied('192.0.2.1', end)
    const id = await createDeployment(replica, specFor('acme'))
    expect(await waitUntilFinished(replica, id)).toMatchObject({
      status: 'failed',
      error: expect.stringContaining(reason),
    })
    expect(await fixture.nameState('acme')).toBe('free')
    expect(await messages(id)).toContain('Released the name.')
  })

  test('of a customer domain needs no name', async () => {
    const replica = fixture.replica()
    replica.provisioner.result = applied()
    const id = await createDeployment(replica, specFor('acme', { name: null, sovereignFQDN: 'acme.example.com' }))
    expect(await waitUntilFinished(replica, id)).toMatchObject({ status: 'ready' })
    expect(await fixture.sql`select from pool_allocations`).toHaveLength(0)
  })

  test('ten at once: limited concurrency, each with its own result, none lost', async () => {
    const replica = fixture.replica({ maxConcurrentRuns: 3 })
    const names = Array.from({ length: 10 }, (_, i) => `tenant-${i}`)
    const ids = await Promise.all(names.map(name => createDeployment(replica, withStorage(name))))
    await waitForApply(replica, 3)
    const statuses = await Promise.all(ids.map(async id => (await readDeployment(replica, id)).status))
    expect(statuses.filter(status => status === 'pending')).toHaveLength(7)
    for (const n of names.keys()) (await waitForApply(replica, n + 1)).end(applied(`192.0.2.${n + 1}`))
    const ends = await Promise.all(ids.map(id => waitUntilFinished(replica, id)))
    expect(ends.map(({ status }) => status)).toEqual(ids.map(() => 'ready'))
    expect(new Set(ends.map(({ result }) => result?.loadBalancerIP)).size).toBe(10)
    expect(replica.provisioner.maxConcurrent).toBe(3)
    for (const name of names) expect(await fixture.nameState(name)).toBe('active')
  })
})

describe('a cancelled deployment', () => {
  test.each<[when: string, isElsewhere: boolean]>([
    ['by the process that runs it', false],
    ['by another process, when the lease is renewed', true],
  ])('%s is stopped and failed, and its name is released', async (_, isElsewhere) => {
    const replica = fixture.replica()
    const other = isElsewhere ? fixture.replica() : replica
    const id = await createDeployment(replica, specFor('acme'))
    const { signal } = await waitForApply(replica)
    expect(await removeDeployment(other, id)).toMatchObject({ kind: 'cancelling', deployment: { id } })
    if (isElsewhere) expect(signal.aborted).toBe(false)
    await replica.deployments.tick()
    expect(await waitUntilFinished(replica, id)).toMatchObject({ status: 'failed', error: 'Cancelled.' })
    expect(await fixture.nameState('acme')).toBe('free')
  })

  test('whose apply succeeds nevertheless is failed, and its name is released', async () => {
    const replica = fixture.replica()
    replica.provisioner.ignoresStop = true
    const id = await createDeployment(replica, specFor('acme'))
    const { end } = await waitForApply(replica)
    await removeDeployment(replica, id)
    end(applied())
    expect(await waitUntilFinished(replica, id)).toMatchObject({ status: 'failed', error: 'Cancelled.' })
    expect(await fixture.nameState('acme')).toBe('free')
  })

  test('whose process is killed before it learns of it is failed by the process that claims it', async () => {
    const replica = fixture.replica()
    const id = await createDeployment(replica, specFor('acme'))
    await waitForApply(replica)
    replica.kill()
    const other = fixture.replica()
    await removeDeployment(other, id)
    await fixture.advance(LEASE_MS)
    await other.deployments.tick()
    expect(await waitUntilFinished(other, id)).toMatchObject({ status: 'failed', error: 'Cancelled.' })
    expect(other.provisioner.applies).toHaveLength(0)
  })

  test('never starts if it is queued', async () => {
    const replica = fixture.replica({ maxConcurrentRuns: 1 })
    await createDeployment(replica, specFor('first'))
    const id = await createDeployment(replica, specFor('second'))
    const first = await waitForApply(replica)
    await removeDeployment(replica, id)
    first.end(applied())
    expect(await waitUntilFinished(replica, id)).toMatchObject({ status: 'failed', error: 'Cancelled.' })
    expect(replica.provisioner.applies).toHaveLength(1)
  })
})

describe('a cancellation that only cancels', () => {
  test('is repeated after the run without an effect', async () => {
    const replica = fixture.replica()
    const id = await createDeployment(replica, specFor('acme'))
    await waitForApply(replica)
    const cancel = () => replica.deployments.cancel(id, operator)
    expect(await cancel()).toMatchObject({ kind: 'cancelling', deployment: { id } })
    await waitUntilFinished(replica, id)
    // A DELETE without it would delete the deployment now.
    expect(await cancel()).toMatchObject({ kind: 'cancelling', deployment: { status: 'failed' } })
    expect(await readDeployment(replica, id)).toMatchObject({ status: 'failed' })
    const stranger = { caller, token: 'of another deployment' }
    expect(await replica.deployments.cancel(id, stranger)).toEqual({ kind: 'token-mismatch' })
    expect(await removeDeployment(replica, id)).toEqual({ kind: 'removed' })
    expect(await cancel()).toEqual({ kind: 'not-found' })
  })
})

describe('removing a finished deployment', () => {
  test('deletes a failed one of which nothing remains, and its claim on a bucket that never existed', async () => {
    const replica = fixture.replica()
    replica.provisioner.result = { kind: 'failed', reason: 'no' }
    const id = await createDeployment(replica, withStorage('acme'))
    await waitUntilFinished(replica, id)
    expect(await removeDeployment(replica, id)).toEqual({ kind: 'removed' })
    expect(await replica.deployments.get(id)).toEqual({ kind: 'not-found' })
    expect(await removeDeployment(replica, id)).toEqual({ kind: 'not-found' })
    expect(await fixture.sql`select from deployment_log_lines`).toHaveLength(0)
  })

  test('does not release a name that belongs to another client now', async () => {
    const replica = fixture.replica()
    replica.provisioner.result = { kind: 'failed', reason: 'no' }
    const first = await createDeployment(replica, specFor('acme'))
    await waitUntilFinished(replica, first)
    replica.provisioner.result = applied()
    const second = await createDeployment(replica, specFor('acme'))
    await waitUntilFinished(replica, second)
    expect(await removeDeployment(replica, first)).toEqual({ kind: 'removed' })
    expect(await fixture.nameState('acme')).toBe('active')
  })
})

describe('the lease of a run', () => {
  test('that cannot be renewed stops the run before another process can claim it', async () => {
    const replica = fixture.replica()
    const id = await createDeployment(replica, specFor('acme'))
    const { signal } = await waitForApply(replica)
    replica.setDatabaseUnavailable(true)
    await expect(replica.deployments.tick()).rejects.toThrow('refused')
    expect(signal.aborted).toBe(false)
    await fixture.advance(0.9 * LEASE_MS)
    await expect(replica.deployments.tick()).rejects.toThrow('refused')
    expect(signal.aborted).toBe(true)
    await until('it has ended, although the database is unavailable', () => replica.deployments.activeCount() === 0)
    const other = fixture.replica()
    await other.deployments.tick()
    expect(other.provisioner.applies).toHaveLength(0)
    await fixture.advance(0.2 * LEASE_MS)
    other.provisioner.result = applied()
    await other.deployments.tick()
    expect(await waitUntilFinished(other, id)).toMatchObject({ status: 'ready' })
    expect(other.provisioner.cleanedUp).toEqual([id])
  })

  test('whose row is locked stops only its own run, and only when the lease ends', async () => {
    const replica = fixture.replica()
    const locked = await createDeployment(replica, specFor('locked'))
    const first = await waitForApply(replica)
    const free = await createDeployment(replica, specFor('free'))
    const second = await waitForApply(replica, 2)
    const tickWhileLocked = async () => {
      const held = await lockDeployment(fixture.sql, locked)
      await replica.deployments.tick()
      await held.release()
    }
    await fixture.advance(0.5 * LEASE_MS)
    await tickWhileLocked()
    expect([first.signal.aborted, second.signal.aborted]).toEqual([false, false])
    await fixture.advance(0.4 * LEASE_MS)
    await tickWhileLocked()
    expect([first.signal.aborted, second.signal.aborted]).toEqual([true, false])
    second.end(applied())
    expect(await waitUntilFinished(replica, free)).toMatchObject({ status: 'ready' })
  })

  test('is renewed during the run: no other process claims it', async () => {
    const replica = fixture.replica()
    const other = fixture.replica()
    await createDeployment(replica, specFor('acme'))
    const { signal } = await waitForApply(replica)
    for (let i = 0; i < 5; i += 1) {
      await fixture.advance(LEASE_MS / 2)
      await replica.deployments.tick()
      await other.deployments.tick()
    }
    expect(signal.aborted).toBe(false)
    expect(other.provisioner.applies).toHaveLength(0)
  })

  test('of another process is neither renewed nor used by the earlier run', async () => {
    const replica = fixture.replica()
    replica.provisioner.ignoresStop = true
    const id = await createDeployment(replica, specFor('acme'))
    const late = await waitForApply(replica)
    const other = await fixture.takeOver()
    const { end } = await waitForApply(other)
    late.end(applied('192.0.2.9'))
    await until('the late run has ended', () => replica.deployments.activeCount() === 0)
    expect(await readDeployment(other, id)).toMatchObject({ status: 'provisioning' })
    end(applied('192.0.2.1'))
    expect(await waitUntilFinished(other, id)).toMatchObject({
      status: 'ready',
      result: { loadBalancerIP: '192.0.2.1' },
    })
  })

  test('stops a run that has lost it', async () => {
    const replica = fixture.replica()
    await createDeployment(replica, specFor('acme'))
    const { signal } = await waitForApply(replica)
    await fixture.takeOver()
    await replica.deployments.tick()
    expect(signal.aborted).toBe(true)
  })

  test('fences the writes of a run that has lost it', async () => {
    const replica = fixture.replica()
    const id = await createDeployment(replica, withStorage('acme'))
    const late = await waitForApply(replica)
    const other = await fixture.takeOver()
    const failed = await waitUntilFinished(other, id)
    expect(failed).toMatchObject({
      status: 'failed',
      error: expect.stringContaining('credentials were only in its memory'),
    })
    late.log({ phase: 'apply', level: 'info', message: 'late' })
    late.end(applied())
    await until('the late run has ended', () => replica.deployments.activeCount() === 0)
    expect(await readDeployment(other, id)).toEqual(failed)
    expect(await fixture.nameState('acme')).toBe('free')
  })
})

describe('the name of a run', () => {
  test('is renewed during the run, beyond its first TTL', async () => {
    const replica = fixture.replica()
    const id = await createDeployment(replica, specFor('acme'))
    const { end } = await waitForApply(replica)
    await replica.deployments.tick()
    const renewals = () => fixture.sql`select renewal_count as count from pool_allocations`
    expect(await renewals()).toEqual([{ count: 0 }])
    for (let i = 0; i < 8; i += 1) {
      await fixture.advance(TTL_MS / 3)
      await fixture.sql`update deployments set run_expires_at = now() + interval '1 minute'`
      await replica.deployments.tick()
      await replica.deployments.tick()
    }
    expect(await renewals()).toEqual([{ count: 8 }])
    expect(await fixture.nameState('acme')).toBe('reserved')
    end(applied())
    expect(await waitUntilFinished(replica, id)).toMatchObject({ status: 'ready' })
  })

  test('released by another client: the run stops and fails', async () => {
    const replica = fixture.replica()
    const id = await createDeployment(replica, specFor('acme'))
    const { signal } = await waitForApply(replica)
    await fixture.sql`delete from pool_allocations`
    await fixture.advance(TTL_MS / 3)
    await fixture.sql`update deployments set run_expires_at = now() + interval '1 minute'`
    await replica.deployments.tick()
    expect(signal.aborted).toBe(true)
    expect(await waitUntilFinished(replica, id)).toMatchObject({
      status: 'failed',
      error: expect.stringContaining('Its name was released'),
    })
  })

  test.each([
    ['reserved', 'token-mismatch'],
    ['active', 'already-active'],
  ])('%s by another client before the commit: the run fails, and the name stays theirs', async (state, code) => {
    const replica = fixture.replica()
    const id = await createDeployment(replica, specFor('acme'))
    const { end } = await waitForApply(replica)
    await fixture.sql`update pool_allocations set token_hash = sha256(gen_random_uuid()::text::bytea)`
    if (state === 'active') {
      await fixture.sql`
        update pool_allocations set state = 'active', expires_at = null, committed_at = now(),
          sovereign_fqdn = 'theirs.test', load_balancer_ip = '192.0.2.99'`
    }
    end(applied())
    expect(await waitUntilFinished(replica, id)).toMatchObject({
      status: 'failed',
      error: expect.stringContaining(`could not be committed (${code})`),
    })
    expect(await fixture.nameState('acme')).toBe(state)
  })
})

describe('an unavailable database', () => {
  test('for less than a lease: no result is lost', async () => {
    const replica = fixture.replica()
    const id = await createDeployment(replica, withStorage('acme'))
    const { end, log } = await waitForApply(replica)
    replica.setDatabaseUnavailable(true)
    log({ phase: 'apply', level: 'info', message: 'logged meanwhile' })
    end(applied())
    await expect(replica.deployments.tick()).rejects.toThrow('refused')
    replica.setDatabaseUnavailable(false)
    expect(await waitUntilFinished(replica, id)).toMatchObject({ status: 'ready' })
    expect(await messages(id)).toContain('logged meanwhile')
  })
})

describe('a process that stops', () => {
  test('releases deployments without credentials', async () => {
    const replica = fixture.replica()
    const id = await createDeployment(replica, specFor('acme'))
    await waitForApply(replica)
    await replica.deployments.stop()
    expect(await readDeployment(replica, id)).toMatchObject({ status: 'provisioning' })
    const other = fixture.replica()
    other.provisioner.result = applied()
    await other.deployments.tick()
    expect(await waitUntilFinished(other, id)).toMatchObject({ status: 'ready' })
  })

  test('fails deployments with credentials, running or queued, and releases their names', async () => {
    const replica = fixture.replica({ maxConcurrentRuns: 1 })
    const ids = [
      await createDeployment(replica, withStorage('first')),
      await createDeployment(replica, withStorage('second')),
    ]
    await waitForApply(replica)
    await replica.deployments.stop()
    for (const id of ids) {
      expect(await readDeployment(replica, id)).toMatchObject({
        status: 'failed',
        error: expect.stringContaining('was stopped'),
      })
    }
    expect(await fixture.nameState('first')).toBe('free')
    expect(await fixture.nameState('second')).toBe('free')
    expect(await replica.deployments.create(toBody(specFor('third')), caller, undefined)).toMatchObject({
      kind: 'provisioning-unavailable',
    })
    expect(await fixture.nameState('third')).toBe('free')
  })
})

describe('a process that is killed', () => {
  /** The last effect before the kill. */
  const stages = [
    ['before the run', 'failed', 'pending'],
    ['during the apply', 'failed', 'applying'],
    ['after the apply, before its result is received', 'failed', 'applied'],
    ['after the result is stored, before the commit of the name', 'ready', 'result'],
    ['after the commit of the name, before it is ready', 'ready', 'committed'],
  ] as const

  /** Leaves a deployment in the state in which a process that is killed at this stage leaves it. */
  const leave = async (stage: (typeof stages)[number][2], spec: DeploymentSpec): Promise<string> => {
    const replica = fixture.replica({ maxConcurrentRuns: 1 })
    if (stage === 'pending') {
      await createDeployment(replica, specFor(`before-${spec.name?.subdomain}`))
      await waitForApply(replica)
    }
    const id = await createDeployment(replica, spec)
    if (stage === 'pending') {
      replica.kill()
      await fixture.sql`delete from deployments where sovereign_fqdn like 'before-%'`
      return id
    }
    const { end } = await waitForApply(replica)
    if (stage === 'applying' || stage === 'applied') {
      replica.kill()
      if (stage === 'applied') end(applied())
      return id
    }
    end(applied())
    await waitUntilFinished(replica, id)
    replica.kill()
    await fixture.sql`
      update deployments set status = 'provisioning', finished_at = null, run_expires_at = now() + interval '30 seconds'
      where id = ${id}`
    if (stage === 'result') {
      await fixture.sql`
        update pool_allocations set state = 'reserved', committed_at = null, sovereign_fqdn = null,
          load_balancer_ip = null, expires_at = now() + interval '10 minutes'
        where subdomain = ${spec.name?.subdomain ?? ''}`
    }
    return id
  }

  test.each(stages)(
    '%s: claimed when its lease expires; with credentials it ends as %s, without as ready',
    async (_, end, stage) => {
      for (const spec of [withStorage('with-credentials'), specFor('without-credentials')]) {
        const id = await leave(stage, spec)
        const expected = spec.storage ? end : 'ready'
        const other = fixture.replica()
        other.provisioner.result = applied()
        await other.deployments.tick()
        expect(await readDeployment(other, id)).toMatchObject({ finishedAt: null })
        await fixture.advance(LEASE_MS)
        await other.deployments.tick()
        expect(await waitUntilFinished(other, id)).toMatchObject({ status: expected })
        expect(await fixture.nameState(spec.name?.subdomain ?? '')).toBe(expected === 'ready' ? 'active' : 'free')
        expect(other.provisioner.cleanedUp).toEqual([id])
        expect(other.errors).toEqual([])
        await messages(id)
      }
    },
  )

  test('leaves its deployments to other processes, within their concurrency', async () => {
    const replica = fixture.replica({ maxConcurrentRuns: 5 })
    for (let i = 0; i < 5; i += 1) await createDeployment(replica, specFor(`left-${i}`))
    await waitForApply(replica, 5)
    replica.kill()
    await fixture.advance(LEASE_MS)
    const other = fixture.replica({ maxConcurrentRuns: 2 })
    await other.deployments.tick()
    await other.deployments.tick()
    expect(other.deployments.activeCount()).toBe(2)
  })

  test('leaves a deployment to a process whose queue is never empty, if no other claims it in time', async () => {
    const killed = fixture.replica()
    const orphans = [
      await createDeployment(killed, specFor('orphan-1')),
      await createDeployment(killed, specFor('orphan-2')),
    ]
    await waitForApply(killed, 2)
    killed.kill()
    const busy = fixture.replica({ maxConcurrentRuns: 1 })
    for (let i = 0; i < 3; i += 1) await createDeployment(busy, specFor(`busy-${i}`))
    await waitForApply(busy)
    const expireOrphans = async () => {
      await fixture.advance(LEASE_MS / 2)
      await busy.deployments.tick()
      await fixture.advance(LEASE_MS / 2)
      await busy.deployments.tick()
    }
    await expireOrphans()
    expect(busy.deployments.activeCount()).toBe(3)
    await expireOrphans()
    expect(busy.deployments.activeCount()).toBe(4)
    await busy.deployments.tick()
    expect(busy.deployments.activeCount()).toBe(4)
    for (let n = 1; n <= 4; n += 1) {
      const { end } = await waitForApply(busy, n)
      await createDeployment(busy, specFor(`more-${n}`))
      end(applied())
    }
    expect(orphans).toContain(busy.provisioner.applies[3]?.request.id)
    await until('the next one is claimed', async () => {
      await busy.deployments.tick()
      return busy.deployments.activeCount() === 5
    })
  })

  test('leaves ten deployments: several processes claim each exactly once', async () => {
    const replica = fixture.replica({ maxConcurrentRuns: 20 })
    const ids = await Promise.all(Array.from({ length: 10 }, (_, i) => createDeployment(replica, specFor(`left-${i}`))))
    await waitForApply(replica, 10)
    replica.kill()
    await fixture.advance(LEASE_MS)
    const others = [fixture.replica(), fixture.replica(), fixture.replica()]
    for (const { provisioner } of others) provisioner.result = applied()
    await until('all are finished', async () => {
      await Promise.all(others.map(({ deployments }) => deployments.tick()))
      const rows = await fixture.sql`select from deployments where finished_at is null`
      return rows.length === 0
    })
    const claimed = others.flatMap(({ provisioner }) => provisioner.applies.map(({ request }) => request.id))
    expect(claimed.toSorted()).toEqual(ids.toSorted())
  })
})
