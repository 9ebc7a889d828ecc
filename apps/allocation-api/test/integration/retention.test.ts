import { randomUUID } from 'node:crypto'
import { afterAll, beforeEach, describe, expect, test } from 'vitest'
import { createRetention, type DeletedRows } from '../../src/database/retention.ts'
import { createTestDatabase } from '../support/database.ts'
import { createSteps, poolPath, startTestService } from '../support/service.ts'

const HOUR_MS = 3_600_000
const { call, database } = await startTestService()
const { sql } = database
const { reserveName, reserveAndCommit, commitBody } = createSteps(call)
const never = new AbortController().signal

/** Deletes history older than a day, and logs an hour after the end of their deployment. Returns what was deleted. */
const runRetention = async (options: { historyMs?: number | null; deploymentLogMs?: number | null } = {}) => {
  let deleted: DeletedRows = { allocationHistory: 0, deploymentHistory: 0, logLines: 0 }
  const run = createRetention(sql, {
    historyMs: 24 * HOUR_MS,
    deploymentLogMs: HOUR_MS,
    timeoutMs: 5_000,
    now: () => performance.now(),
    sleep: async () => {},
    onDeleted: rows => {
      deleted = rows
    },
    ...options,
  })
  await run(never)
  return deleted
}

const insertHistory = (count: number, age: string, subdomain = 'old') => sql`
  insert into allocation_history (pool_domain, subdomain, at, event, from_state, to_state, actor, created_by)
  select 'pool.test', ${subdomain}, now() - ${age}::interval, 'released', 'active', 'none', 'operator', ''
  from generate_series(1, ${count})`

const request = {
  orgName: 'Acme',
  orgEmail: 'ops@acme.test',
  providers: [],
  region: 'fsn1',
  objectStorageAccessKey: '',
  objectStorageSecretKey: '',
  objectStorageRegion: '',
}

/** `finished`: how long ago; null: it is running. */
const insertDeployment = async (finished: string | null, lines: number): Promise<string> => {
  const [id, lineageId, fqdn] = [randomUUID(), randomUUID(), `${randomUUID()}.example.test`]
  await sql`insert into lineages (id, sovereign_fqdn, infrastructure_changed_at, created_at) values (${lineageId}, ${fqdn}, now(), now())`
  await sql`
    insert into deployments (id, lineage_id, status, request, sovereign_fqdn, token_hash, started_at, finished_at, error, run_expires_at, line_count)
    values (${id}, ${lineageId}, ${finished === null ? 'provisioning' : 'failed'}, ${sql.json({ ...request, sovereignFQDN: fqdn })},
      ${fqdn}, ${Buffer.alloc(32)}, now(), now() - ${finished}::interval, ${finished === null ? null : 'no'},
      case when ${finished === null} then now() + interval '1 hour' end, ${lines})`
  await sql`
    insert into deployment_log_lines (deployment_id, seq, at, phase, level, message)
    select ${id}, n, now(), 'apply', 'info', 'line ' || n from generate_series(1, ${lines}) n`
  await sql`
    insert into deployment_history (at, event, deployment_id, lineage_id, sovereign_fqdn, org_name, actor)
    select now() - interval '2 days', event, ${id}, ${lineageId}, ${fqdn}, 'Acme', 'in-cluster'
    from unnest(array['created', 'failed']) event`
  return id
}

const countLines = async (id: string) =>
  (await sql`select from deployment_log_lines where deployment_id = ${id}`).length
const readEvents = async (id: string) =>
  (await sql<{ event: string }[]>`select event from deployment_history where deployment_id = ${id} order by id`).map(
    row => row.event,
  )

beforeEach(async () => {
  await runRetention({ historyMs: 1, deploymentLogMs: 1 })
})

describe('the history', () => {
  test('is deleted once it is older than its retention, in any number of batches', async () => {
    await insertHistory(1_203, '25 hours')
    await insertHistory(3, '23 hours', 'young')
    expect(await runRetention()).toEqual({ allocationHistory: 1_203, deploymentHistory: 0, logLines: 0 })
    expect((await call('GET', `${poolPath}/history`)).body.entries).toHaveLength(3)
    expect(await runRetention()).toMatchObject({ allocationHistory: 0 })
  })

  test('is kept indefinitely by default', async () => {
    await insertHistory(10, '20 years')
    expect(await runRetention({ historyMs: null, deploymentLogMs: null })).toMatchObject({ allocationHistory: 0 })
    expect((await call('GET', `${poolPath}/history`)).body.entries).toHaveLength(10)
  })

  test('is deleted by several replicas at the same time', async () => {
    await insertHistory(2_000, '25 hours')
    const deleted = await Promise.all([runRetention(), runRetention(), runRetention()])
    expect(deleted.reduce((sum, { allocationHistory }) => sum + allocationHistory, 0)).toBe(2_000)
  })

  test('an old entry between younger ones does not stay longer than they do', async () => {
    await insertHistory(300, '23 hours')
    await insertHistory(1, '25 hours')
    expect(await runRetention()).toMatchObject({ allocationHistory: 0 })
    expect(await runRetention({ historyMs: 22 * HOUR_MS })).toMatchObject({ allocationHistory: 301 })
  })

  test.each(['allocation_history', 'deployment_history'])(
    '%s is append-only for everything else, also in a session and a transaction that has deleted old entries',
    async table => {
      await insertHistory(2, '25 hours')
      await insertDeployment('0 s', 0)
      for (const statement of [
        `delete from ${table}`,
        `update ${table} set detail = 'x'`,
        `truncate ${table}`,
        `delete from ${table} where at < now() - interval '24 hours'`,
      ]) {
        const change = sql.begin(async transaction => {
          await transaction.unsafe(`select * from delete_${table}(0, now() - interval '1 year', 10)`)
          await transaction.unsafe(statement)
        })
        await expect(change).rejects.toMatchObject({ message: `${table} is append-only` })
      }
      expect((await sql.unsafe(`select from ${table}`)).length).toBeGreaterThan(0)
    },
  )

  test('the creation of a deployment stays as long as its lineage', async () => {
    const id = await insertDeployment('1 minute', 0)
    expect(await runRetention()).toMatchObject({ deploymentHistory: 1 })
    expect(await readEvents(id)).toEqual(['created'])
    await sql`with gone as (delete from deployments where id = ${id} returning lineage_id) select from gone`
    await sql`delete from lineages l where not exists (select from deployments d where d.lineage_id = l.id)`
    await runRetention()
    expect(await readEvents(id)).toEqual([])
  })

  test('the next holder of a name gets the records of earlier ones purged, although the history no longer shows them', async () => {
    await reserveAndCommit('again')
    await call('DELETE', `${poolPath}/release?sub=again`)
    await sql`delete from dns_names where subdomain = 'again'`
    await runRetention({ historyMs: 1 })
    expect((await call('GET', `${poolPath}/history?sub=again`)).body.entries).toEqual([])
    await reserveAndCommit('again')
    const purged = () => sql`select purge_version > 0 as purged from dns_names where subdomain = 'again'`
    expect(await purged()).toEqual([{ purged: true }])
    // In contrast to a name that was never active.
    await reserveAndCommit('first')
    expect(await sql`select purge_version from dns_names where subdomain = 'first'`).toEqual([{ purge_version: 0 }])
  })
})

describe('the log of a deployment', () => {
  test('is deleted after the end of the deployment; the deployment and its stream remain', async () => {
    const [old, young, running] = [
      await insertDeployment('2 hours', 1_100),
      await insertDeployment('30 minutes', 20),
      await insertDeployment(null, 30),
    ]
    expect(await runRetention()).toMatchObject({ logLines: 1_100 })
    expect([await countLines(old), await countLines(young), await countLines(running)]).toEqual([0, 20, 30])
    expect((await call('GET', `/api/v1/deployments/${old}`)).body).toMatchObject({ status: 'failed', numEvents: 1_100 })
    const { text } = await call('GET', `/api/v1/deployments/${old}/logs`)
    expect(text).toMatch(/^retry: 1000\n\nevent: done\n/)
  })

  test('is found among more deployments than a batch has', async () => {
    const ids: string[] = []
    for (let n = 0; n < 300; n += 1) ids.push(await insertDeployment(n % 100 === 99 ? '2 hours' : '0 s', 1))
    expect(await runRetention()).toMatchObject({ logLines: 3 })
    expect(await runRetention({ deploymentLogMs: null })).toMatchObject({ logLines: 0 })
  })
})

test('no request waits for a batch, even if it takes long', async () => {
  await insertHistory(100, '25 hours', 'busy')
  const id = await insertDeployment('2 hours', 10)
  await sql.begin(async transaction => {
    await transaction`select * from delete_allocation_history(0, now(), 250)`
    await transaction`select * from delete_deployment_history(0, now(), 250)`
    await transaction`delete from deployment_log_lines where deployment_id = ${id}`
    const { reservationToken } = await reserveName('busy')
    expect((await call('POST', `${poolPath}/renew`, { subdomain: 'busy', reservationToken })).status).toBe(200)
    expect((await call('POST', `${poolPath}/commit`, commitBody('busy', reservationToken))).status).toBe(200)
    expect((await call('DELETE', `${poolPath}/release?sub=busy`)).status).toBe(200)
    expect((await call('GET', `${poolPath}/history?sub=busy`)).body.entries.length).toBeGreaterThan(100)
    expect((await call('GET', `/api/v1/deployments/${id}/logs`)).text).toContain('line 10')
  })
})

test('a role without rights to change the schema can delete old entries', async () => {
  const own = await createTestDatabase({ connections: 1 })
  afterAll(() => own.drop())
  const role = `r_${randomUUID().replaceAll('-', '')}`
  await own.sql.unsafe(`create role ${role}`)
  await own.sql.unsafe(`grant select, insert, update, delete on all tables in schema public to ${role}`)
  await own.sql`
    insert into allocation_history (pool_domain, subdomain, at, event, from_state, to_state, actor, created_by)
    values ('pool.test', 'a', now() - interval '2 days', 'released', 'active', 'none', 'operator', '')`
  await own.sql.unsafe(`set role ${role}`)
  const deleted: DeletedRows[] = []
  await createRetention(own.sql, {
    historyMs: 24 * HOUR_MS,
    deploymentLogMs: HOUR_MS,
    timeoutMs: 5_000,
    now: () => 0,
    sleep: async () => {},
    onDeleted: rows => deleted.push(rows),
  })(never)
  expect(deleted).toEqual([{ allocationHistory: 1, deploymentHistory: 0, logLines: 0 }])
  await expect(own.sql`alter table allocation_history disable trigger all`).rejects.toMatchObject({ code: '42501' })
  await own.sql.unsafe(`reset role; drop owned by ${role}; drop role ${role}`)
})
