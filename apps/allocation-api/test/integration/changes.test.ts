import { expect, test } from 'vitest'
import { createChangeReader } from '../../src/operator/changes.ts'
import { diffChanges } from '../../src/operator/domain/change.ts'
import { useTestDatabase } from '../support/database.ts'

const database = await useTestDatabase({ connections: 3 })
const { sql } = database

let time = 0
const readChanges = createChangeReader(sql, { timeoutMs: 60_000, now: () => time })
/** A read after the time for which the one before is kept. */
const read = () => {
  time += 10_000
  return readChanges()
}
const insertEntry = (client: typeof sql) => client`
  insert into allocation_history (pool_domain, subdomain, event, from_state, to_state, actor, created_by)
  values ('pool.test', 'acme', 'reserved', 'none', 'reserved', 'operator', '')`

test('an entry that is committed after one with a higher id is a change', async () => {
  const { promise: isAllowed, resolve: allow } = Promise.withResolvers<void>()
  const { promise: isInserted, resolve: reportInserted } = Promise.withResolvers<void>()
  const first = sql.begin(async transaction => {
    await insertEntry(transaction as unknown as typeof sql)
    reportInserted()
    await isAllowed
  })
  await isInserted
  const before = await read()
  await insertEntry(sql)
  const between = await read()
  expect(diffChanges(before, between)).toEqual(['names'])
  allow()
  await first
  expect(diffChanges(between, await read())).toEqual(['names'])
})

test.each([
  ['zones', "insert into dns_zones (zone, next_drift_check_at) values ('new.test', now())"],
  ['zones', "update dns_zones set drift_checked_at = now() where zone = 'new.test'"],
  ['zones', "insert into dns_zone_writes (zone, stopped_cause) values ('new.test', 'imported')"],
  ['zones', "update dns_zone_writes set stopped_cause = null where zone = 'new.test'"],
  ['samples', "insert into replicas select gen_random_uuid(), '1', '24', now(), now(), true, false"],
] as const)('%s: %s', async (topic, statement) => {
  const before = await read()
  await sql.unsafe(statement)
  if (topic === 'samples') await sql`insert into replica_samples select id, now(), 0, 0, 0, 0, 0, 0, 0 from replicas`
  expect(diffChanges(before, await read())).toEqual([topic])
})

test('the streams of a process share one read a second', async () => {
  time += 10_000
  const [a, b] = [readChanges(), readChanges()]
  expect(a).toBe(b)
  time += 999
  expect(readChanges()).toBe(a)
  time += 1
  expect(readChanges()).not.toBe(a)
  await a
})
