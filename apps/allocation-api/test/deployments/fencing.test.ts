import type { DeploymentResult } from '@pool/contract'
import { until } from '@pool/test-kit/poll.ts'
import { describe, expect, test } from 'vitest'
import { LogWriter } from '../../src/deployments/deployment-log.ts'
import { createRunRepository } from '../../src/deployments/run-repository.ts'
import {
  createDeployment,
  LEASE_MS,
  readDeployment,
  removeDeployment,
  specFor,
  TTL_MS,
  useDeployments,
  waitForApply,
  waitUntilFinished,
  withStorage,
} from '../support/deployments-fixture.ts'
import { applied } from '../support/fake-provisioner.ts'
import { lockDeployment, lockRow } from '../support/locks.ts'

const fixture = useDeployments()

const holdName = () => lockRow(fixture.sql, { poolDomain: 'pool.test', subdomain: 'acme' })

describe('the renewal of several leases', () => {
  test('does not wait for a locked row, and distinguishes it from a lost lease', async () => {
    const replica = fixture.replica({ maxConcurrentRuns: 1 })
    const created: string[] = []
    for (let i = 0; i < 4; i += 1) created.push(await createDeployment(replica, specFor(`locked-${i}`)))
    await waitForApply(replica)
    replica.kill()
    const [first = ''] = created
    const held = await lockDeployment(fixture.sql, first)
    const repository = createRunRepository(fixture.sql, { timeoutMs: 5_000, leaseMs: LEASE_MS, coolOffMs: 0 })
    const renewed = await repository.renewLeases(created.map(id => ({ id, generation: 1 })))
    const isLocked = (id: string) => id === first
    expect(renewed.toSorted((a, b) => a.id.localeCompare(b.id))).toEqual(
      created.toSorted().map(id => ({ id, isCancelled: false, isForced: false, isLocked: isLocked(id) })),
    )
    await held.release()
    const lease = { id: first, generation: 1 }
    expect(await repository.renewLeases([lease])).toEqual([
      { id: first, isCancelled: false, isForced: false, isLocked: false },
    ])
    expect(await repository.renewLeases([{ ...lease, generation: 2 }])).toEqual([])
  })
})

describe('a run whose lease another process has claimed', () => {
  test.each([
    ['failed', { kind: 'failed', reason: 'too late' }],
    ['applied without an address', { kind: 'applied', outputs: {} }],
  ] as const)('and whose apply ends late as %s does not release the name', async (_, end) => {
    const replica = fixture.replica()
    replica.provisioner.ignoresStop = true
    const id = await createDeployment(replica, specFor('acme'))
    const late = await waitForApply(replica)
    const other = await fixture.takeOver(applied())
    expect(await waitUntilFinished(other, id)).toMatchObject({ status: 'ready' })
    late.end(end)
    await until('the late run is over', () => replica.deployments.activeCount() === 0)
    expect(await fixture.nameState('acme')).toBe('active')
    expect(await readDeployment(other, id)).toMatchObject({ status: 'ready' })
    expect(replica.errors).toEqual([])
  })

  test('has no write left that changes anything', async () => {
    const replica = fixture.replica()
    const id = await createDeployment(replica, withStorage('acme'))
    await waitForApply(replica)
    await until('its lines are stored', async () => (await readDeployment(replica, id)).numEvents === 2)
    replica.kill()
    await fixture.sql`update deployments set run_generation = run_generation + 1`
    const repository = createRunRepository(fixture.sql, { timeoutMs: 5_000, leaseMs: LEASE_MS, coolOffMs: 0 })
    const readRows = async () => [
      await fixture.sql`select * from deployments`,
      await fixture.sql`select * from lineages`,
      await fixture.sql`select * from bucket_claims`,
      await fixture.sql`select * from pool_allocations`,
      await fixture.sql`select * from deployment_history order by id`,
      await fixture.sql`select * from deployment_log_lines order by seq`,
    ]
    const before = await readRows()
    const lost = { id, generation: 1 }
    const line = { phase: 'apply', level: 'info', message: 'late', at: new Date().toISOString() } as const
    expect([
      await repository.renewLeases([lost]),
      await repository.beginInfrastructure(lost, 'v1'),
      await repository.appendLog(lost, 2, [line]),
    ]).toEqual([[], 'lease-lost', undefined])
    const writes = [
      await repository.releaseLease(lost),
      await repository.markStarted(lost, 'destroying'),
      await repository.clearInfrastructure(lost, true),
      await repository.recordLock(lost, { id: 'a', host: 'b', processGroup: 1, startedAt: '0' }),
      await repository.recordState(lost, { lineage: 'a', serial: 1 }),
      await repository.recordBucket(lost),
      await repository.saveResult(lost, { loadBalancerIP: '192.0.2.9' } as DeploymentResult),
      await repository.markFailing(lost, 'late'),
      await repository.markReady(lost),
      await repository.markDestroyed(lost),
      await repository.markFailed(lost),
    ]
    expect(writes).toEqual(writes.map(() => false))
    expect(await readRows()).toEqual(before)
  })

  test('after it decided to fail: the deployment fails with the same reason, although an apply would succeed now', async () => {
    const replica = fixture.replica()
    const id = await createDeployment(replica, specFor('acme'))
    const { end } = await waitForApply(replica)
    const name = await holdName()
    end({ kind: 'failed', reason: 'The network is not there.' })
    await until('the failure is decided', async () => {
      const rows = await fixture.sql`select from deployments where pending_error is not null`
      return rows.length > 0
    })
    expect(await readDeployment(replica, id)).not.toHaveProperty('error')
    replica.kill()
    await name.release()
    const other = await fixture.takeOver(applied())
    expect(await waitUntilFinished(other, id)).toMatchObject({ status: 'failed', error: 'The network is not there.' })
    expect(other.provisioner.applies).toHaveLength(0)
    expect(await fixture.nameState('acme')).toBe('free')
  })

  test('has its reservation renewed immediately, because the time of the last renewal is unknown', async () => {
    const replica = fixture.replica()
    await createDeployment(replica, specFor('acme'))
    await waitForApply(replica)
    replica.kill()
    await fixture.advance(0.9 * TTL_MS)
    const other = fixture.replica()
    await other.deployments.tick()
    await waitForApply(other)
    await other.deployments.tick()
    await fixture.advance(0.2 * TTL_MS)
    expect(await fixture.nameState('acme')).toBe('reserved')
  })
})

test('cancelling a queued deployment releases its name immediately, without waiting for a slot', async () => {
  const replica = fixture.replica({ maxConcurrentRuns: 1 })
  await createDeployment(replica, specFor('first'))
  const id = await createDeployment(replica, specFor('acme'))
  const { signal } = await waitForApply(replica)
  await removeDeployment(replica, id)
  expect(await waitUntilFinished(replica, id)).toMatchObject({ status: 'failed', error: 'Cancelled.' })
  expect(await fixture.nameState('acme')).toBe('free')
  expect(signal.aborted).toBe(false)
  await until('only the other deployment runs', () => replica.deployments.activeCount() === 1)
})

test('a reservation that cannot be renewed now delays neither other renewals nor the claim of orphaned deployments', async () => {
  const left = fixture.replica()
  const id = await createDeployment(left, specFor('left'))
  await waitForApply(left)
  left.kill()
  const replica = fixture.replica({ statementTimeoutMs: 4_000 })
  await createDeployment(replica, specFor('acme'))
  await createDeployment(replica, specFor('other'))
  await waitForApply(replica, 2)
  await fixture.advance(0.5 * TTL_MS)
  const name = await holdName()
  // The timeouts of the server and of the client are equal.
  const tick = replica.deployments.tick().finally(() => name.release())
  await expect(tick).rejects.toThrow(/^(?:the row is locked|no answer)/)
  const [other] = await fixture.sql<{ isRenewed: boolean }[]>`
    select expires_at > now() + interval '9 minutes' as "isRenewed" from pool_allocations where subdomain = 'other'`
  expect(other).toEqual({ isRenewed: true })
  expect((await waitForApply(replica, 3)).request.id).toBe(id)
})

test('cancelled during the commit of its name: failed, as the response promised, and the name is released', async () => {
  const replica = fixture.replica()
  const id = await createDeployment(replica, specFor('acme'))
  const { end } = await waitForApply(replica)
  const name = await holdName()
  end(applied())
  await until('the infrastructure is up', async () => (await readDeployment(replica, id)).result)
  expect(await removeDeployment(replica, id)).toMatchObject({ kind: 'cancelling' })
  await name.release()
  expect(await waitUntilFinished(replica, id)).toMatchObject({ status: 'failed', error: 'Cancelled.' })
  expect(await fixture.nameState('acme')).toBe('free')
})

test.each([
  ['has failed already: no name stays reserved', { kind: 'failed', reason: 'no' }, 'free'],
  ['is in progress: its name stays reserved', null, 'reserved'],
] as const)('of two requests with one Idempotency-Key, one is late, and the other %s', async (_, answer, expected) => {
  const [both, late] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  let checks = 0
  const replica = fixture.replica({
    validateKeys: async () => {
      checks += 1
      if (checks === 2) both.resolve()
      await (checks === 2 ? late : both).promise
      return { kind: 'accepted', message: '' }
    },
  })
  replica.provisioner.result = answer
  const requests = [
    createDeployment(replica, withStorage('acme'), 'one-key'),
    createDeployment(replica, withStorage('acme'), 'one-key'),
  ]
  const id = await Promise.race(requests)
  await (answer ? waitUntilFinished(replica, id) : waitForApply(replica))
  late.resolve()
  expect(await Promise.all(requests)).toEqual([id, id])
  expect(await fixture.nameState('acme')).toBe(expected)
})

test('U+0000 and lone surrogates, which Postgres does not store, are removed', async () => {
  const replica = fixture.replica()
  const id = await createDeployment(replica, specFor('acme'))
  const { end, log } = await waitForApply(replica)
  log({ phase: 'apply', level: 'info', message: 'a\0b\ud800' })
  end(applied('192.0.2.1', { control_plane_ip: '192.0.2.2\0', details: { 'a\0': ['b\0', 1, null], c: '\udc00' } }))
  expect(await waitUntilFinished(replica, id)).toMatchObject({
    status: 'ready',
    result: { controlPlaneIP: '192.0.2.2', details: { a: ['b', 1, null], c: '\ufffd' } },
  })
  const lines = await fixture.sql`select message from deployment_log_lines where deployment_id = ${id} and seq = 3`
  expect(lines).toEqual([{ message: 'ab\ufffd' }])
  expect(replica.errors).toEqual([])
})

describe('a log line whose write has an unknown outcome', () => {
  test.each([
    ['took effect', 'before'],
    ['takes effect after its retry', 'after'],
  ] as const)('and that %s is stored once', async (_, effect) => {
    const replica = fixture.replica()
    const id = await createDeployment(replica, specFor('acme'))
    await waitForApply(replica)
    await until('its first lines are stored', async () => (await readDeployment(replica, id)).numEvents === 2)
    const repository = createRunRepository(fixture.sql, { timeoutMs: 5_000, leaseMs: LEASE_MS, coolOffMs: 0 })
    const unanswered: Parameters<typeof repository.appendLog>[] = []
    const writer = new LogWriter({
      repository: {
        appendLog: async (...args) => {
          if (unanswered.length > 0) return repository.appendLog(...args)
          unanswered.push(args)
          if (effect === 'before') await repository.appendLog(...args)
          throw new Error('no answer')
        },
      },
      lease: { id, generation: 1 },
      lineCount: 2,
      onStored: () => {},
    })
    const line = (message: string) => ({ phase: 'apply', level: 'info', message }) as const
    writer.log(line('one'))
    await until('the first write was tried', () => unanswered[0])
    writer.log(line('two'))
    await writer.flush()
    if (effect === 'after') for (const args of unanswered) await repository.appendLog(...args)
    const rows =
      await fixture.sql`select seq, message from deployment_log_lines where deployment_id = ${id} order by seq`
    expect(rows.map(({ seq, message }) => [seq, message])).toEqual([
      [1, 'Reserved the name acme.pool.test.'],
      [2, 'applying acme.pool.test'],
      [3, 'one'],
      [4, 'two'],
    ])
    expect((await readDeployment(replica, id)).numEvents).toBe(4)
  })
})
