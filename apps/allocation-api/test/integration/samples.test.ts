import { randomUUID } from 'node:crypto'
import { beforeEach, expect, test } from 'vitest'
import { createSamples, type ReplicaSample } from '../../src/operator/samples.ts'
import { createOperatorSessions } from '../../src/operator/sessions.ts'
import { useTestDatabase } from '../support/database.ts'

const database = await useTestDatabase({ connections: 4 })
const { sql } = database
beforeEach(() => sql`truncate replicas, replica_samples, pool_samples, operator_sessions`)

const createReplica = () => {
  const id = randomUUID()
  return { id, ...createSamples(sql, { replica: { id, version: '1.0.0', nodeVersion: 'v24' }, timeoutMs: 60_000 }) }
}
const sample: ReplicaSample = {
  requests: 10,
  errors: 1,
  requestMs: 100,
  eventLoopMs: 50,
  isReady: true,
  circuitOpen: false,
  activeRuns: 1,
  pendingNames: 4,
  failingNames: 2,
}
/** Moves the samples back in time, as if they had been stored earlier. */
const age = async (seconds: number) => {
  await sql`update replica_samples set at = at - ${seconds}::int * interval '1 s'`
  await sql`update replicas set started_at = started_at - ${seconds}::int * interval '1 s'`
}

test('the series are the sums of the replicas, and a restart of one does not make a negative rate', async () => {
  const [a, b] = [createReplica(), createReplica()]
  await a.add(sample)
  await b.add(sample)
  await age(60)
  await a.add({ ...sample, requests: 610, errors: 61, requestMs: 6_100, pendingNames: 3 })
  // The process began again: its counters did too, and it has another id.
  const restarted = createReplica()
  await restarted.add({ ...sample, requests: 0, errors: 0 })
  const { times, stepSeconds, requests, dns, deployments, replicas } = await a.readOverview({ minutes: 5, points: 5 })
  expect([times.length, stepSeconds]).toEqual([5, 60])
  expect(requests.perSecond.at(-1)).toBeCloseTo(10, 0)
  expect(requests.errorsPerSecond.at(-1)).toBeCloseTo(1, 0)
  expect(requests.meanMilliseconds.at(-1)).toBeCloseTo(10, 0)
  expect([dns.pendingNames.at(-1), dns.failingNames.at(-1), deployments.active.at(-1)]).toEqual([4, 2, 2])
  expect(requests.perSecond.every(rate => rate === null || rate >= 0)).toBe(true)
  expect(replicas.map(({ id }) => id).toSorted()).toEqual([a.id, b.id, restarted.id].toSorted())
})

test('replicas that count the names at the same time store one count', async () => {
  const replicas = Array.from({ length: 4 }, createReplica)
  const counts = [
    { poolDomain: 'pool.test', state: 'active', count: 7 },
    { poolDomain: 'pool.test', state: 'cooling-off', count: 2 },
    { poolDomain: 'other.test', state: 'held', count: 1 },
  ]
  let counted = 0
  const count = async () => {
    counted += 1
    return counts
  }
  await Promise.all(replicas.map(({ addPools }) => addPools(count)))
  await replicas[0]?.addPools(count)
  const minutes = await sql`select distinct at from pool_samples`
  expect(await sql`select pool_domain from pool_samples`).toHaveLength(2 * minutes.length)
  expect(counted).toBeLessThanOrEqual(replicas.length + minutes.length)
  const { pools } = (await replicas[0]?.readOverview({ minutes: 5, points: 5 })) ?? { pools: [] }
  expect(
    pools.map(({ poolDomain, active, coolingOff, held }) => [
      poolDomain,
      active.at(-1),
      coolingOff.at(-1),
      held.at(-1),
    ]),
  ).toEqual([
    ['other.test', 0, 0, 1],
    ['pool.test', 7, 2, 0],
  ])
})

test('a week of samples of one replica has the documented size, and older rows are deleted', async () => {
  const { id, add, deleteOld } = createReplica()
  await add(sample)
  await sql`
    insert into replica_samples select ${id}::uuid, now() - i * interval '10 s', i, 0, i, i, 0, 0, 0
    from generate_series(1, 60480 + 1000) i`
  await sql`insert into pool_samples select 'pool.test', now() - i * interval '1 min', 1, 1, 0, 0 from generate_series(1, 10080 + 500) i`
  while (await deleteOld(250));
  const [row] = await sql`
    select (select count(*)::int from replica_samples) as samples, (select count(*)::int from pool_samples) as pools,
      pg_total_relation_size('replica_samples')::float8 / 1e6 as megabytes`
  expect(row?.samples).toBeGreaterThan(60_400)
  expect(row?.samples).toBeLessThanOrEqual(60_481)
  expect(row?.pools).toBeLessThanOrEqual(10_080)
  expect(row?.megabytes).toBeLessThan(16)
})

test('a replica that stored nothing for a week is forgotten', async () => {
  const { add, deleteOld } = createReplica()
  await add(sample)
  await sql`update replicas set last_seen_at = now() - interval '8 days'`
  await deleteOld(250)
  expect(await sql`select from replicas`).toHaveLength(0)
  expect(await sql`select from replica_samples`).toHaveLength(0)
})

test('sessions that have ended are deleted, and the others stay', async () => {
  const sessions = createOperatorSessions(sql, { timeoutMs: 60_000, tokens: ['token'] })
  const ids = await Promise.all(Array.from({ length: 4 }, async () => (await sessions.start('token')).id))
  await sql`update operator_sessions set last_used_at = now() - interval '1 day' where id_hash in (select id_hash from operator_sessions limit 3)`
  expect(await sessions.deleteEnded(2)).toBe(true)
  expect(await sessions.deleteEnded(2)).toBe(false)
  expect(await sql`select from operator_sessions`).toHaveLength(1)
  const found = await Promise.all(ids.map(id => sessions.find(id)))
  expect(found.filter(session => session !== null)).toHaveLength(1)
})

test('a request that races with the end of its session is accepted or not, and none after it', async () => {
  const sessions = createOperatorSessions(sql, { timeoutMs: 60_000, tokens: ['token'] })
  for (let round = 0; round < 10; round += 1) {
    const { id } = await sessions.start('token')
    await sql`update operator_sessions set last_used_at = now() - interval '5 minutes'`
    await Promise.all([sessions.find(id), sessions.end(id), sessions.find(id)])
    expect(await sessions.find(id)).toBeNull()
    expect(await sql`select from operator_sessions`).toHaveLength(0)
  }
})
