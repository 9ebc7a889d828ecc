import { createDatabaseClient } from '@pool/runtime/database/client'
import { withTimeout } from '@pool/runtime/database/time'
import { shouldSkip } from '@pool/test-kit/optional-deps.ts'
import { missingPgbouncer, pgbouncerVersion, startPgbouncer } from '@pool/test-kit/pgbouncer.ts'
import { smallPoolEnv, startApi, startReplicas } from '@pool/test-kit/services.ts'
import { describe, expect, test } from 'vitest'
import { activeNames, expectConsistentTables, expectDnsToMatch } from '../support/consistency.ts'
import { createTestDatabase } from '../support/database.ts'
import { holdLock, untilSessionsWait } from '../support/locks.ts'
import { commit, countStatuses, pool, release, reserve, reserveToken } from '../support/operations.ts'

/** Versions from 1.21 support prepared statements in transaction mode. */
const carriesPrepared = pgbouncerVersion && (pgbouncerVersion.major > 1 || pgbouncerVersion.minor >= 21)

/** On a busy machine, each commit waits until its records are published. */
const poolerEnv = { PDM_DATABASE_POOL_SIZE: '10', PDM_DNS_COMMIT_WAIT: '1m' }
const isSkipped = shouldSkip(missingPgbouncer)

const ways = [
  { how: 'without prepared statements', query: '?prepare=false' },
  ...(carriesPrepared ? [{ how: 'with prepared statements', query: '' }] : []),
]

describe.skipIf(isSkipped)('behind PgBouncer in transaction mode', () => {
  test.each(ways)('two processes serve every verb, concurrent commits included, $how', async ({ query }) => {
    const database = await createTestDatabase()
    const pgbouncer = await startPgbouncer(database.url)
    const fleet = await startReplicas(2, () =>
      startApi(pgbouncer.url + query, { ...smallPoolEnv, ...poolerEnv }),
    ).catch(async error => {
      await pgbouncer.stop()
      await database.drop()
      throw error
    })
    try {
      const [api, other] = [fleet.next(), fleet.next()]
      const reserved = await Promise.all(Array.from({ length: 100 }, () => reserve(fleet.next(), 'one')))
      expect(countStatuses(reserved)).toEqual({ 201: 1, 409: 99 })

      const names = Array.from({ length: 50 }, (_, i) => `many-${i}`)
      const tokens = await Promise.all(names.map(name => reserveToken(fleet.next(), name)))
      // The statement of the metrics has no parameters, and other statements follow it.
      const watched = Promise.all(Array.from({ length: 10 }, () => fleet.next().call('GET', '/metrics')))
      const commits = await Promise.all(names.map((name, i) => commit(fleet.next(), name, tokens[i] ?? '')))
      expect(countStatuses(commits)).toEqual({ 200: names.length })
      expect(countStatuses(await watched)).toEqual({ 200: 10 })

      const key = { 'Idempotency-Key': 'release-many-0' }
      const released = await Promise.all(Array.from({ length: 20 }, () => release(fleet.next(), 'many-0', key)))
      expect(countStatuses(released)).toEqual({ 200: 20 })
      expect((await release(other, 'many-1')).status).toBe(200)
      expect((await release(api, 'many-1')).status).toBe(404)

      const listed = await api.call('GET', `/api/v1/pool/${pool}/list`)
      expect(listed.body.allocations.map((one: { subdomain: string }) => one.subdomain)).toEqual(
        ['one', ...names.slice(2)].sort(),
      )
      expect((await other.call('GET', '/readyz')).status).toBe(200)
      await expectConsistentTables(database.sql)
      await expectDnsToMatch(other.dnsPort, await activeNames(database.sql), [`many-0.${pool}`, `one.${pool}`])
    } finally {
      await fleet.kill()
      await pgbouncer.stop()
      await database.drop()
    }
  })
  /**
   * At a ReadyForQuery, PgBouncer before 1.22.1 takes the server away from a client even if a later statement has not been
   * described yet. That response is lost, and the statement waits indefinitely. The lock delays it every time.
   */
  test.each(ways)(
    'a statement that is sent while another one is in flight gets its result, $how',
    async ({ query }) => {
      const database = await createTestDatabase({ schema: false, connections: 2 })
      const pgbouncer = await startPgbouncer(database.url)
      const sql = createDatabaseClient(pgbouncer.url + query, { maxConnections: 1, applicationName: 'pooler' })
      try {
        await database.sql`create table late ()`
        const held = await holdLock(database.sql, tx => tx`lock table late`)
        await sql`select 0 as own`
        const first = sql`select 1 as own`.execute()
        const second = withTimeout(sql`select ${2}::int as own where not exists (select from late)`, 60_000)
        expect(await first).toEqual([{ own: 1 }])
        await untilSessionsWait(database.sql, 1)
        await held.release()
        expect(await second).toEqual([{ own: 2 }])
      } finally {
        await sql.end({ timeout: 0 })
        await pgbouncer.stop()
        await database.drop()
      }
    },
  )
})
