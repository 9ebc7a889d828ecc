import { until } from '@pool/test-kit/poll.ts'
import { describe, expect, test } from 'vitest'
import type { DeploymentSpec } from '../../src/deployments/domain/types.ts'
import {
  asking,
  caller,
  LEASE_MS,
  orderFor,
  TTL_MS,
  useDeploymentsScene,
  withStorage,
} from '../support/deployments-fixture.ts'
import { begun, created, finished, nameStateIn, read } from '../support/deployments-steps.ts'
import { made } from '../support/fake-provisioner.ts'

const scene = useDeploymentsScene()

const nameState = (subdomain: string) => nameStateIn(scene.sql, subdomain)
const messages = async (id: string): Promise<string[]> => {
  const rows = await scene.sql<{ seq: number; message: string }[]>`
    select seq, message from deployment_log_lines where deployment_id = ${id} order by seq`
  expect(rows.map(({ seq }) => seq)).toEqual(rows.map((_, i) => i + 1))
  return rows.map(({ message }) => message)
}

describe('a deployment', () => {
  test('is accepted with its name reserved, made, committed, ready', async () => {
    const desk = scene.desk()
    const id = await created(desk, withStorage('acme'))
    const { making, tell, end } = await begun(desk)
    expect(making).toMatchObject({
      id,
      stateKey: 'acme.pool.test',
      variables: { sovereign_fqdn: 'acme.pool.test', object_storage_bucket: 'catalyst-acme-pool-test' },
    })
    expect(await read(desk, id)).toMatchObject({
      status: 'provisioning',
      finishedAt: null,
      sovereignFQDN: 'acme.pool.test',
    })
    expect(await nameState('acme')).toBe('reserved')
    tell({ phase: 'apply', level: 'info', message: 'half way' })
    await until('its lines are there while it goes on', async () => (await read(desk, id)).numEvents === 3)
    end(made('192.0.2.7', { control_plane_ip: '192.0.2.8', details: { size: 3 }, other: 4 }))
    expect(await finished(desk, id)).toEqual({
      id,
      status: 'ready',
      startedAt: expect.any(String),
      finishedAt: expect.any(String),
      sovereignFQDN: 'acme.pool.test',
      region: 'fsn1',
      objectStorageRegion: 'fsn1',
      objectStorageBucket: 'catalyst-acme-pool-test',
      numEvents: 5,
      result: {
        sovereignFQDN: 'acme.pool.test',
        loadBalancerIP: '192.0.2.7',
        controlPlaneIP: '192.0.2.8',
        details: { size: 3 },
      },
    })
    expect(await messages(id)).toEqual([
      'The name acme.pool.test is reserved.',
      'making acme.pool.test',
      'half way',
      'The name is active and its records are published.',
      'The deployment is ready.',
    ])
    const [row] = await scene.sql`select * from pool_allocations where subdomain = 'acme'`
    expect(row).toMatchObject({ state: 'active', load_balancer_ip: '192.0.2.7', sovereign_fqdn: 'acme.pool.test' })
    const history = await scene.sql`select event, actor, request_id from allocation_history order by id`
    expect(history).toMatchObject([
      { event: 'reserved', actor: 'in-cluster', request_id: 'test' },
      { event: 'committed', actor: 'deployment', request_id: id },
    ])
    expect(desk.errors).toEqual([])
  })

  test('keys are nowhere in the database', async () => {
    const desk = scene.desk()
    desk.infrastructure.answer = made()
    await finished(desk, await created(desk, withStorage('acme')))
    const [row] = await scene.sql<{ text: string }[]>`select to_jsonb(d)::text as text from deployments d`
    expect(row?.text).toContain('"objectStorageSecretKey": "<redacted>"')
    expect(row?.text).not.toContain('marked')
  })

  test.each<[what: string, end: Parameters<typeof made>[1] | 'failed', reason: string]>([
    ['fails midway', 'failed', 'The network is not there.'],
    ['has no address', { load_balancer_ip: undefined }, 'has no output load_balancer_ip'],
    ['has an address of IPv6', { load_balancer_ip: '2001:db8::1' }, 'has no output load_balancer_ip'],
  ])('whose infrastructure %s: failed, its name free, its reason readable', async (_, end, reason) => {
    const desk = scene.desk()
    desk.infrastructure.answer =
      end === 'failed' ? { kind: 'failed', reason: 'The network is not there.' } : made('192.0.2.1', end)
    const id = await created(desk, orderFor('acme'))
    expect(await finished(desk, id)).toMatchObject({ status: 'failed', error: expect.stringContaining(reason) })
    expect(await nameState('acme')).toBe('free')
    expect(await messages(id)).toContain('The name is freed.')
  })

  test('of a domain of the customer needs no name', async () => {
    const desk = scene.desk()
    desk.infrastructure.answer = made()
    const id = await created(desk, orderFor('acme', { name: null, sovereignFQDN: 'acme.example.com' }))
    expect(await finished(desk, id)).toMatchObject({ status: 'ready' })
    expect(await scene.sql`select from pool_allocations`).toHaveLength(0)
  })

  test('ten at once: no more than the process may work on, each its own, none lost', async () => {
    const desk = scene.desk({ atOnce: 3 })
    const names = Array.from({ length: 10 }, (_, i) => `tenant-${i}`)
    const ids = await Promise.all(names.map(name => created(desk, withStorage(name))))
    await begun(desk, 3)
    const statuses = await Promise.all(ids.map(async id => (await read(desk, id)).status))
    expect(statuses.filter(status => status === 'pending')).toHaveLength(7)
    for (const n of names.keys()) (await begun(desk, n + 1)).end(made(`192.0.2.${n + 1}`))
    const ends = await Promise.all(ids.map(id => finished(desk, id)))
    expect(ends.map(({ status }) => status)).toEqual(ids.map(() => 'ready'))
    expect(new Set(ends.map(({ result }) => result?.loadBalancerIP)).size).toBe(10)
    expect(desk.infrastructure.mostAtOnce).toBe(3)
    for (const name of names) expect(await nameState(name)).toBe('active')
  })
})

describe('a cancelled one', () => {
  test.each<[when: string, isElsewhere: boolean]>([
    ['by the process that works on it', false],
    ['by another process, when the lease is renewed', true],
  ])('%s: stopped, failed, its name free', async (_, isElsewhere) => {
    const desk = scene.desk()
    const other = isElsewhere ? scene.desk() : desk
    const id = await created(desk, orderFor('acme'))
    const { signal } = await begun(desk)
    expect(await other.deployments.verbs.remove(id)).toMatchObject({ kind: 'cancelling', deployment: { id } })
    if (isElsewhere) expect(signal.aborted).toBe(false)
    await desk.deployments.tend()
    expect(await finished(desk, id)).toMatchObject({ status: 'failed', error: 'It was cancelled.' })
    expect(await nameState('acme')).toBe('free')
  })

  test('whose infrastructure was made all the same: failed, its name free', async () => {
    const desk = scene.desk()
    desk.infrastructure.isDeaf = true
    const id = await created(desk, orderFor('acme'))
    const { end } = await begun(desk)
    await desk.deployments.verbs.remove(id)
    end(made())
    expect(await finished(desk, id)).toMatchObject({ status: 'failed', error: 'It was cancelled.' })
    expect(await nameState('acme')).toBe('free')
  })

  test('whose process is killed before it knows: failed by whoever takes it up', async () => {
    const desk = scene.desk()
    const id = await created(desk, orderFor('acme'))
    await begun(desk)
    desk.kill()
    const other = scene.desk()
    await other.deployments.verbs.remove(id)
    await scene.advance(LEASE_MS)
    await other.deployments.tend()
    expect(await finished(other, id)).toMatchObject({ status: 'failed', error: 'It was cancelled.' })
    expect(other.infrastructure.begun).toHaveLength(0)
  })

  test('while it waits for its turn: it never begins', async () => {
    const desk = scene.desk({ atOnce: 1 })
    await created(desk, orderFor('first'))
    const id = await created(desk, orderFor('second'))
    const first = await begun(desk)
    await desk.deployments.verbs.remove(id)
    first.end(made())
    expect(await finished(desk, id)).toMatchObject({ status: 'failed', error: 'It was cancelled.' })
    expect(desk.infrastructure.begun).toHaveLength(1)
  })
})

describe('what is finished', () => {
  test('and failed is forgotten; its bucket is kept for its FQDN', async () => {
    const desk = scene.desk()
    desk.infrastructure.answer = { kind: 'failed', reason: 'no' }
    const id = await created(desk, withStorage('acme'))
    await finished(desk, id)
    expect(await desk.deployments.verbs.remove(id)).toEqual({ kind: 'removed' })
    expect(await desk.deployments.verbs.get(id)).toEqual({ kind: 'not-found' })
    expect(await desk.deployments.verbs.remove(id)).toEqual({ kind: 'not-found' })
    expect(await scene.sql`select from deployment_log_lines`).toHaveLength(0)
    const { storage } = withStorage('acme')
    const other = orderFor('other', { storage })
    expect(await desk.deployments.verbs.create(asking(other), caller, undefined)).toEqual({ kind: 'bucket-conflict' })
  })

  test('and ready gives its name back', async () => {
    const desk = scene.desk()
    desk.infrastructure.answer = made()
    const id = await created(desk, orderFor('acme'))
    await finished(desk, id)
    expect(await desk.deployments.verbs.remove(id)).toEqual({ kind: 'removed' })
    expect(await nameState('acme')).toBe('free')
  })

  test('does not free a name that is somebody else’s by now', async () => {
    const desk = scene.desk()
    desk.infrastructure.answer = { kind: 'failed', reason: 'no' }
    const first = await created(desk, orderFor('acme'))
    await finished(desk, first)
    desk.infrastructure.answer = made()
    const second = await created(desk, orderFor('acme'))
    await finished(desk, second)
    expect(await desk.deployments.verbs.remove(first)).toEqual({ kind: 'removed' })
    expect(await nameState('acme')).toBe('active')
  })
})

describe('the lease of a run', () => {
  test('that cannot be renewed stops it before others may take over', async () => {
    const desk = scene.desk()
    const id = await created(desk, orderFor('acme'))
    const { signal } = await begun(desk)
    desk.setAway(true)
    await expect(desk.deployments.tend()).rejects.toThrow('away')
    expect(signal.aborted).toBe(false)
    await scene.advance(0.9 * LEASE_MS)
    await expect(desk.deployments.tend()).rejects.toThrow('away')
    expect(signal.aborted).toBe(true)
    await until('it has ended, although the database is away', () => desk.deployments.running() === 0)
    const other = scene.desk()
    await other.deployments.tend()
    expect(other.infrastructure.begun).toHaveLength(0)
    await scene.advance(0.2 * LEASE_MS)
    other.infrastructure.answer = made()
    await other.deployments.tend()
    expect(await finished(other, id)).toMatchObject({ status: 'ready' })
    expect(other.infrastructure.cleared).toEqual([id])
  })

  test('is renewed while it goes on: nobody takes over', async () => {
    const desk = scene.desk()
    const other = scene.desk()
    await created(desk, orderFor('acme'))
    const { signal } = await begun(desk)
    for (let i = 0; i < 5; i += 1) {
      await scene.advance(LEASE_MS / 2)
      await desk.deployments.tend()
      await other.deployments.tend()
    }
    expect(signal.aborted).toBe(false)
    expect(other.infrastructure.begun).toHaveLength(0)
  })

  test('that others have by now: neither kept nor used by whoever had it', async () => {
    const desk = scene.desk()
    desk.infrastructure.isDeaf = true
    const id = await created(desk, orderFor('acme'))
    const late = await begun(desk)
    await scene.advance(LEASE_MS)
    const other = scene.desk()
    await other.deployments.tend()
    const { end } = await begun(other)
    late.end(made('192.0.2.9'))
    await until('the late run is over', () => desk.deployments.running() === 0)
    expect(await read(other, id)).toMatchObject({ status: 'provisioning' })
    end(made('192.0.2.1'))
    expect(await finished(other, id)).toMatchObject({ status: 'ready', result: { loadBalancerIP: '192.0.2.1' } })
  })

  test('is not renewed by a run that has lost it, which stops', async () => {
    const desk = scene.desk()
    await created(desk, orderFor('acme'))
    const { signal } = await begun(desk)
    await scene.advance(LEASE_MS)
    const other = scene.desk()
    await other.deployments.tend()
    await desk.deployments.tend()
    expect(signal.aborted).toBe(true)
  })

  test('what a run writes after it has lost it changes nothing', async () => {
    const desk = scene.desk()
    const id = await created(desk, withStorage('acme'))
    const late = await begun(desk)
    await scene.advance(LEASE_MS)
    const other = scene.desk()
    await other.deployments.tend()
    const failed = await finished(other, id)
    expect(failed).toMatchObject({ status: 'failed', error: expect.stringContaining('keys were in its memory alone') })
    late.tell({ phase: 'apply', level: 'info', message: 'late' })
    late.end(made())
    await until('the late run is over', () => desk.deployments.running() === 0)
    expect(await read(other, id)).toEqual(failed)
    expect(await nameState('acme')).toBe('free')
  })
})

describe('the name of a run', () => {
  test('is renewed while it goes on, beyond its first lifetime', async () => {
    const desk = scene.desk()
    const id = await created(desk, orderFor('acme'))
    const { end } = await begun(desk)
    await desk.deployments.tend()
    expect(await scene.sql`select from allocation_history where event = 'renewed'`).toHaveLength(0)
    for (let i = 0; i < 8; i += 1) {
      await scene.advance(TTL_MS / 3)
      await scene.sql`update deployments set run_expires_at = now() + interval '1 minute'`
      await desk.deployments.tend()
      await desk.deployments.tend()
    }
    expect(await scene.sql`select from allocation_history where event = 'renewed'`).toHaveLength(8)
    expect(await nameState('acme')).toBe('reserved')
    end(made())
    expect(await finished(desk, id)).toMatchObject({ status: 'ready' })
  })

  test('released by somebody else: the run stops and fails', async () => {
    const desk = scene.desk()
    const id = await created(desk, orderFor('acme'))
    const { signal } = await begun(desk)
    await scene.sql`delete from pool_allocations`
    await scene.advance(TTL_MS / 3)
    await scene.sql`update deployments set run_expires_at = now() + interval '1 minute'`
    await desk.deployments.tend()
    expect(signal.aborted).toBe(true)
    expect(await finished(desk, id)).toMatchObject({
      status: 'failed',
      error: expect.stringContaining('Its name was released'),
    })
  })

  test.each([
    ['reserved', 'token-mismatch'],
    ['active', 'already-active'],
  ])('%s by others before the commit: failed, and theirs stays', async (state, refusal) => {
    const desk = scene.desk()
    const id = await created(desk, orderFor('acme'))
    const { end } = await begun(desk)
    await scene.sql`update pool_allocations set reservation_token = gen_random_uuid()`
    if (state === 'active') {
      await scene.sql`
        update pool_allocations set state = 'active', expires_at = null, committed_at = now(),
          sovereign_fqdn = 'theirs.test', load_balancer_ip = '192.0.2.99'`
    }
    end(made())
    expect(await finished(desk, id)).toMatchObject({
      status: 'failed',
      error: expect.stringContaining(`could not be committed (${refusal})`),
    })
    expect(await nameState('acme')).toBe(state)
  })
})

describe('a database that is away', () => {
  test('for less than a lease: what was made is not lost', async () => {
    const desk = scene.desk()
    const id = await created(desk, withStorage('acme'))
    const { end, tell } = await begun(desk)
    desk.setAway(true)
    tell({ phase: 'apply', level: 'info', message: 'said meanwhile' })
    end(made())
    await expect(desk.deployments.tend()).rejects.toThrow('away')
    desk.setAway(false)
    expect(await finished(desk, id)).toMatchObject({ status: 'ready' })
    expect(await messages(id)).toContain('said meanwhile')
  })
})

describe('a process that stops', () => {
  test('hands over what needs no keys', async () => {
    const desk = scene.desk()
    const id = await created(desk, orderFor('acme'))
    await begun(desk)
    await desk.deployments.stop()
    expect(await read(desk, id)).toMatchObject({ status: 'provisioning' })
    const other = scene.desk()
    other.infrastructure.answer = made()
    await other.deployments.tend()
    expect(await finished(other, id)).toMatchObject({ status: 'ready' })
  })

  test('fails what needs keys, under way or waiting, and frees the names', async () => {
    const desk = scene.desk({ atOnce: 1 })
    const ids = [await created(desk, withStorage('first')), await created(desk, withStorage('second'))]
    await begun(desk)
    await desk.deployments.stop()
    for (const id of ids) {
      expect(await read(desk, id)).toMatchObject({ status: 'failed', error: expect.stringContaining('was stopped') })
    }
    expect(await nameState('first')).toBe('free')
    expect(await nameState('second')).toBe('free')
    expect(await desk.deployments.verbs.create(asking(orderFor('third')), caller, undefined)).toMatchObject({
      kind: 'provisioning-unavailable',
    })
    expect(await nameState('third')).toBe('free')
  })
})

describe('a process that is killed', () => {
  /** Where the process ends: at the first statement of this kind, before or after its effect. */
  const stages = [
    ['before it begins', 'pending', 'failed'],
    ['while the infrastructure is made', 'making', 'failed'],
    ['when the infrastructure is up, before that is known', 'made', 'failed'],
    ['when the result is stored, before the name is committed', 'result', 'ready'],
    ['when the name is committed, before it is ready', 'committed', 'ready'],
  ] as const

  /** Puts a deployment into the state in which a process that was killed at this stage leaves it. */
  const leave = async (stage: (typeof stages)[number][1], order: DeploymentSpec): Promise<string> => {
    const desk = scene.desk({ atOnce: 1 })
    if (stage === 'pending') {
      await created(desk, orderFor(`before-${order.name?.subdomain}`))
      await begun(desk)
    }
    const id = await created(desk, order)
    if (stage === 'pending') {
      desk.kill()
      await scene.sql`delete from deployments where sovereign_fqdn like 'before-%'`
      return id
    }
    const { end } = await begun(desk)
    if (stage === 'making' || stage === 'made') {
      desk.kill()
      if (stage === 'made') end(made())
      return id
    }
    end(made())
    await finished(desk, id)
    desk.kill()
    await scene.sql`
      update deployments set status = 'provisioning', finished_at = null, run_expires_at = now() + interval '30 seconds'
      where id = ${id}`
    if (stage === 'result') {
      await scene.sql`
        update pool_allocations set state = 'reserved', committed_at = null, sovereign_fqdn = null,
          load_balancer_ip = null, expires_at = now() + interval '10 minutes'
        where subdomain = ${order.name?.subdomain ?? ''}`
    }
    return id
  }

  test.each(stages)(
    '%s: taken up when its lease is over; with keys %s, without always ready',
    async (_, stage, end) => {
      for (const order of [withStorage('keyed'), orderFor('keyless')]) {
        const id = await leave(stage, order)
        const expected = order.storage ? end : 'ready'
        const other = scene.desk()
        other.infrastructure.answer = made()
        await other.deployments.tend()
        expect(await read(other, id)).toMatchObject({ finishedAt: null })
        await scene.advance(LEASE_MS)
        await other.deployments.tend()
        expect(await finished(other, id)).toMatchObject({ status: expected })
        expect(await nameState(order.name?.subdomain ?? '')).toBe(expected === 'ready' ? 'active' : 'free')
        expect(other.infrastructure.cleared).toEqual([id])
        expect(other.errors).toEqual([])
        await messages(id)
      }
    },
  )

  test('leaves its deployments to as many as others may work on', async () => {
    const desk = scene.desk({ atOnce: 5 })
    for (let i = 0; i < 5; i += 1) await created(desk, orderFor(`left-${i}`))
    await begun(desk, 5)
    desk.kill()
    await scene.advance(LEASE_MS)
    const other = scene.desk({ atOnce: 2 })
    await other.deployments.tend()
    await other.deployments.tend()
    expect(other.deployments.running()).toBe(2)
  })

  test('of ten that were left, several processes take up each once', async () => {
    const desk = scene.desk({ atOnce: 20 })
    const ids = await Promise.all(Array.from({ length: 10 }, (_, i) => created(desk, orderFor(`left-${i}`))))
    await begun(desk, 10)
    desk.kill()
    await scene.advance(LEASE_MS)
    const others = [scene.desk(), scene.desk(), scene.desk()]
    for (const { infrastructure } of others) infrastructure.answer = made()
    await until('all are finished', async () => {
      await Promise.all(others.map(({ deployments }) => deployments.tend()))
      const rows = await scene.sql`select from deployments where finished_at is null`
      return rows.length === 0
    })
    const taken = others.flatMap(({ infrastructure }) => infrastructure.begun.map(({ making }) => making.id))
    expect(taken.toSorted()).toEqual(ids.toSorted())
  })
})
