import { until } from '@pool/test-kit/poll.ts'
import { describe, expect, test } from 'vitest'
import { createLineStore } from '../../src/deployments/log-repository.ts'
import { createLogWriter } from '../../src/deployments/log-writer.ts'
import { LEASE_MS, orderFor, TTL_MS, useDeploymentsScene, withStorage } from '../support/deployments-fixture.ts'
import { begun, created, finished, nameStateIn, read } from '../support/deployments-steps.ts'
import { made } from '../support/fake-provisioner.ts'
import { lockRow } from '../support/locks.ts'

const scene = useDeploymentsScene()
const nameState = (subdomain: string) => nameStateIn(scene.sql, subdomain)

const holdName = () => lockRow(scene.sql, { poolDomain: 'pool.test', subdomain: 'acme' })

describe('a run that others have taken over', () => {
  test.each([
    ['failed', { kind: 'failed', reason: 'too late' }],
    ['made without an address', { kind: 'made', outputs: {} }],
  ] as const)('and whose making is %s: the name of the others stays', async (_, end) => {
    const desk = scene.desk()
    desk.infrastructure.isDeaf = true
    const id = await created(desk, orderFor('acme'))
    const late = await begun(desk)
    await scene.advance(LEASE_MS)
    const other = scene.desk()
    other.infrastructure.answer = made()
    await other.deployments.tend()
    expect(await finished(other, id)).toMatchObject({ status: 'ready' })
    late.end(end)
    await until('the late run is over', () => desk.deployments.running() === 0)
    expect(await nameState('acme')).toBe('active')
    expect(await read(other, id)).toMatchObject({ status: 'ready' })
    expect(desk.errors).toEqual([])
  })

  test('when it had decided to fail: it fails for the same reason, though it could be made now', async () => {
    const desk = scene.desk()
    const id = await created(desk, orderFor('acme'))
    const { end } = await begun(desk)
    const name = await holdName()
    end({ kind: 'failed', reason: 'The network is not there.' })
    await until('it is decided', async () => {
      const rows = await scene.sql`select from deployments where pending_error is not null`
      return rows.length > 0
    })
    expect(await read(desk, id)).not.toHaveProperty('error')
    desk.kill()
    await name.release()
    await scene.advance(LEASE_MS)
    const other = scene.desk()
    other.infrastructure.answer = made()
    await other.deployments.tend()
    expect(await finished(other, id)).toMatchObject({ status: 'failed', error: 'The network is not there.' })
    expect(other.infrastructure.begun).toHaveLength(0)
    expect(await nameState('acme')).toBe('free')
  })

  test('has its name kept at once: nobody knows when that was done last', async () => {
    const desk = scene.desk()
    await created(desk, orderFor('acme'))
    await begun(desk)
    desk.kill()
    await scene.advance(0.9 * TTL_MS)
    const other = scene.desk()
    await other.deployments.tend()
    await begun(other)
    await other.deployments.tend()
    await scene.advance(0.2 * TTL_MS)
    expect(await nameState('acme')).toBe('reserved')
  })
})

test('cancelled while it waits for its turn: its name is free at once, though the turn does not come', async () => {
  const desk = scene.desk({ atOnce: 1 })
  await created(desk, orderFor('first'))
  const id = await created(desk, orderFor('acme'))
  const { signal } = await begun(desk)
  await desk.deployments.verbs.remove(id)
  expect(await finished(desk, id)).toMatchObject({ status: 'failed', error: 'It was cancelled.' })
  expect(await nameState('acme')).toBe('free')
  expect(signal.aborted).toBe(false)
  await until('the other goes on alone', () => desk.deployments.running() === 1)
})

test('a name that cannot be kept now keeps neither other names nor what was left from being looked after', async () => {
  const left = scene.desk()
  const id = await created(left, orderFor('left'))
  await begun(left)
  left.kill()
  const desk = scene.desk({ statementTimeoutMs: 300 })
  await created(desk, orderFor('acme'))
  await created(desk, orderFor('other'))
  await begun(desk, 2)
  await scene.advance(0.5 * TTL_MS)
  const name = await holdName()
  await expect(desk.deployments.tend()).rejects.toThrow('no answer')
  await name.release()
  const [other] = await scene.sql<{ isKept: boolean }[]>`
    select expires_at > now() + interval '9 minutes' as "isKept" from pool_allocations where subdomain = 'other'`
  expect(other).toEqual({ isKept: true })
  expect((await begun(desk, 3)).making.id).toBe(id)
})

test('cancelled while its name is committed: failed, as whoever cancelled it was told, and the name free', async () => {
  const desk = scene.desk()
  const id = await created(desk, orderFor('acme'))
  const { end } = await begun(desk)
  const name = await holdName()
  end(made())
  await until('it is up', async () => (await read(desk, id)).result)
  expect(await desk.deployments.verbs.remove(id)).toMatchObject({ kind: 'cancelling' })
  await name.release()
  expect(await finished(desk, id)).toMatchObject({ status: 'failed', error: 'It was cancelled.' })
  expect(await nameState('acme')).toBe('free')
})

test.each([
  ['has failed already: no name stays reserved', { kind: 'failed', reason: 'no' }, 'free'],
  ['is being made: its name stays reserved', null, 'reserved'],
] as const)('of two requests with one key, one is late, and the other %s', async (_, answer, expected) => {
  const [both, late] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  let asked = 0
  const desk = scene.desk({
    validateKeys: async () => {
      asked += 1
      if (asked === 2) both.resolve()
      await (asked === 2 ? late : both).promise
      return { kind: 'accepted', message: '' }
    },
  })
  desk.infrastructure.answer = answer
  const twins = [created(desk, withStorage('acme'), 'one-key'), created(desk, withStorage('acme'), 'one-key')]
  const id = await Promise.race(twins)
  await (answer ? finished(desk, id) : begun(desk))
  late.resolve()
  expect(await Promise.all(twins)).toEqual([id, id])
  expect(await nameState('acme')).toBe(expected)
})

test('U+0000 and halves of surrogate pairs, which Postgres does not store, keep nothing from its end', async () => {
  const desk = scene.desk()
  const id = await created(desk, orderFor('acme'))
  const { end, tell } = await begun(desk)
  tell({ phase: 'apply', level: 'info', message: 'a\0b\ud800' })
  end(made('192.0.2.1', { control_plane_ip: '192.0.2.2\0', details: { 'a\0': ['b\0', 1, null], c: '\udc00' } }))
  expect(await finished(desk, id)).toMatchObject({
    status: 'ready',
    result: { controlPlaneIP: '192.0.2.2', details: { a: ['b', 1, null], c: '\ufffd' } },
  })
  const lines = await scene.sql`select message from deployment_log_lines where deployment_id = ${id} and seq = 3`
  expect(lines).toEqual([{ message: 'ab\ufffd' }])
  expect(desk.errors).toEqual([])
})

describe('a line whose writing nobody knows the outcome of', () => {
  test.each([
    ['had taken effect', 'before'],
    ['takes effect when it was written again', 'after'],
  ] as const)('and that %s stands there once', async (_, effect) => {
    const desk = scene.desk()
    const id = await created(desk, orderFor('acme'))
    await begun(desk)
    await until('its first lines are there', async () => (await read(desk, id)).numEvents === 2)
    const lines = createLineStore(scene.sql, { timeoutMs: 5_000 })
    const abandoned: Parameters<typeof lines.append>[] = []
    const writer = createLogWriter({
      lines: {
        append: async (...args) => {
          if (abandoned.length > 0) return lines.append(...args)
          abandoned.push(args)
          if (effect === 'before') await lines.append(...args)
          throw new Error('no answer')
        },
      },
      run: { id, generation: 1, lineCount: 2 },
      now: () => new Date(),
      onStored: () => {},
    })
    const line = (message: string) => ({ phase: 'apply', level: 'info', message }) as const
    writer.tell(line('one'))
    await until('it was tried', () => abandoned[0])
    writer.tell(line('two'))
    await writer.told()
    if (effect === 'after') for (const args of abandoned) await lines.append(...args)
    const rows = await scene.sql`select seq, message from deployment_log_lines where deployment_id = ${id} order by seq`
    expect(rows.map(({ seq, message }) => [seq, message])).toEqual([
      [1, 'The name acme.pool.test is reserved.'],
      [2, 'making acme.pool.test'],
      [3, 'one'],
      [4, 'two'],
    ])
    expect((await read(desk, id)).numEvents).toBe(4)
  })
})
