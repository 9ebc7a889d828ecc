import { randomUUID } from 'node:crypto'
import { createDatabaseClient } from '@pool/runtime/database/client'
import { startTcpProxy } from '@pool/test-kit/tcp-proxy.ts'
import { describe, expect, test } from 'vitest'
import { createReconcilerRepository } from '../../src/reconciler/repository.ts'
import { poolDomain, useDnsFixture } from '../support/dns-fixture.ts'

/** The type of a message that executes a statement (Postgres manual, message formats: Execute). */
const EXECUTE = 'E'.charCodeAt(0)

/** Calls `onStatement` for each statement in what a client of Postgres sends with the extended protocol, without TLS. */
const createStatementCounter = (onStatement: () => void) => {
  let rest: Buffer = Buffer.alloc(0)
  /** Only the first message of a connection has no type. */
  let typeBytes = 0
  return (sent: Buffer): void => {
    rest = Buffer.concat([rest, sent])
    while (rest.length >= typeBytes + 4) {
      const end = typeBytes + rest.readUInt32BE(typeBytes)
      if (rest.length < end) break
      if (typeBytes > 0 && rest[0] === EXECUTE) onStatement()
      rest = rest.subarray(end)
      typeBytes = 1
    }
  }
}

describe('what a sync of one name costs', () => {
  const fixture = useDnsFixture()
  const { replica, activate } = fixture

  test('three statements and as many round trips, beside the provider', async () => {
    await using cleanup = new AsyncDisposableStack()
    let statements = 0
    const inspect = () => createStatementCounter(() => (statements += 1))
    const link = await startTcpProxy(Number(new URL(fixture.url).port), inspect)
    cleanup.defer(() => link.close())
    const { dns } = replica({ url: Object.assign(new URL(fixture.url), { port: String(link.port) }).href })
    link.delay(20)
    const publish = async (subdomain: string) => {
      const committed = await activate(subdomain)
      const before = { roundTrips: link.roundTrips(), statements }
      expect(await dns.waitUntilApplied(committed)).toEqual({ status: 'published' })
      return { roundTrips: link.roundTrips() - before.roundTrips, statements: statements - before.statements }
    }
    const counts = []
    for (let i = 0; i < 8; i += 1) counts.push(await publish(`n${i}`))
    // More when statements are prepared.
    expect(Math.min(...counts.map(({ roundTrips }) => roundTrips))).toBe(3)
    // The lock with the due names, the attempt, and the outcome.
    expect(Math.min(...counts.map(count => count.statements))).toBe(3)
  })

  test.each([
    { what: 'before the server has statistics', analyze: false },
    { what: 'with statistics', analyze: true },
  ])('not the rows of the other names of the zone, $what', async ({ analyze }) => {
    await using cleanup = new AsyncDisposableStack()
    const sql = createDatabaseClient(fixture.url, { maxConnections: 1, applicationName: 'test', expires: false })
    cleanup.defer(() => sql.end({ timeout: 0 }))
    const repository = createReconcilerRepository(sql, { timeoutMs: 20_000 })
    await sql`
      insert into dns_names (zone, subdomain, version, applied_version, desired, changed_at, next_attempt_at)
      select ${poolDomain}, 'n' || i, i, i, '[]', now(), now() from generate_series(1, 1000) i`
    await sql`select setval('dns_version', 1000)`
    if (analyze) await sql`analyze dns_names`
    await activate('acme')
    await sql`begin`
    await sql`insert into zone_leases (name) values (${poolDomain}) on conflict do nothing`
    const lease = { name: poolDomain, holder: randomUUID() }
    const claimed = await repository.findDue(poolDomain, 10, { ...lease, expired: null })
    const names = claimed.isHeld ? claimed.first.names : []
    const attempt = await repository.markAttempted(
      poolDomain,
      names.map(name => ({ ...name, deletedRecords: [] })),
      'fake',
      lease,
    )
    expect([...(attempt?.subdomains ?? [])]).toEqual(['acme'])
    const applied = names.map(name => ({ ...name, event: 'published' as const, detail: null, leftover: null }))
    const outcomes = { applied, failed: [], isComplete: true, serial: null, firstDriftCheckMs: 0 }
    expect(await repository.saveOutcomes(poolDomain, outcomes, lease)).toBe(true)
    const [rows] = await sql<{ count: number }[]>`
      select seq_tup_read + idx_tup_fetch as count from pg_stat_xact_user_tables where relname = 'dns_names'`
    // Each statement reads versions of the row of the name, which it has locked or changed.
    expect(rows?.count).toBeGreaterThan(0)
    expect(rows?.count).toBeLessThan(20)
    await sql`rollback`
  })
})
