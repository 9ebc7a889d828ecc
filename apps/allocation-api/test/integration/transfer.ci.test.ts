import { request } from 'node:http'
import { exportLine, importResponse } from '@pool/contract'
import { until } from '@pool/test-kit/poll.ts'
import { proofSize, reportProof } from '@pool/test-kit/proof-size.ts'
import { type Api, startApi } from '@pool/test-kit/services.ts'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { listTransferTables } from '../../src/transfer/import.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { holdLock } from '../support/locks.ts'

const token = 'operator-token-of-the-transfer'
const headers = { Authorization: `Bearer ${token}` }
const pool = '/api/v1/pool/pool.test'
const NAMES = proofSize(100_000, 300)

interface Installation {
  readonly database: TestDatabase
  readonly api: Api
}

const startInstallation = async (env: Record<string, string> = {}): Promise<Installation> => {
  const database = await createTestDatabase({ connections: 3 })
  const api = await startApi(database.url, {
    DNSPROVIDER_RECORD_NAMES: '@',
    PDM_OPERATOR_TOKENS: token,
    PDM_NAME_COOL_OFF: '24h',
    PDM_SWEEPER_INTERVAL: '1h',
    PDM_TERRAFORM_BINARY: '/nowhere/terraform',
    ...env,
  })
  return { database, api }
}
const stop = async ({ database, api }: Installation) => {
  await api.process.stop()
  await database.drop()
}
const startTarget = async (): Promise<Installation> => {
  const target = await startInstallation()
  onTestFinished(() => stop(target))
  return target
}

const exportText = async ({ api }: Installation): Promise<string> => {
  const response = await fetch(`${api.operatorUrl}/api/v1/export`, { headers })
  expect([response.status, response.headers.get('content-type')]).toEqual([200, 'application/x-ndjson'])
  return response.text()
}
const importText = async ({ api }: Installation, body: string | Uint8Array<ArrayBuffer>, query = '') => {
  const response = await fetch(`${api.operatorUrl}/api/v1/import${query}`, { method: 'POST', headers, body })
  // biome-ignore lint/suspicious/noExplicitAny: a result or a problem.
  const json: any = await response.json()
  return { status: response.status, body: json }
}
const toLines = (text: string) => text.trimEnd().split('\n')
/** The lines that are about this installation and not about the service that reads it. */
const toRows = (text: string) => toLines(text).filter(line => line.startsWith('{"type":"row"'))

const countRows = async ({ sql }: TestDatabase): Promise<number> => {
  const [row] = await sql<{ count: number }[]>`
    select (select count(*) from pool_allocations) + (select count(*) from allocation_history)
      + (select count(*) from dns_names) + (select count(*) from idempotency_keys) as count`
  return row?.count ?? 0
}

test('every table of the schema is either exported or omitted for a reason', async () => {
  const database = await createTestDatabase({ connections: 1 })
  onTestFinished(() => database.drop())
  const tables = await database.sql<{ name: string }[]>`
    select table_name as name from information_schema.tables
    where table_schema = current_schema() and table_type = 'BASE TABLE' order by name`
  expect(tables.map(({ name }) => name)).toEqual(listTransferTables().toSorted())
})

describe('an installation', () => {
  let source: Installation
  let exported: string
  const tokens: string[] = []
  const keys = { reserve: 'key-of-the-reservation-0001', commit: 'key-of-the-commit-00000001' }

  beforeAll(async () => {
    source = await startInstallation()
    const { call } = source.api
    for (const subdomain of ['active', 'reserved', 'cooling']) {
      const key = subdomain === 'reserved' ? { 'Idempotency-Key': keys.reserve } : {}
      const { body } = await call('POST', `${pool}/reserve`, { subdomain, createdBy: 'import-test' }, key)
      tokens.push(body.reservationToken)
    }
    for (const [index, subdomain] of ['active', 'cooling'].entries()) {
      const commit = {
        subdomain,
        reservationToken: tokens[index * 2],
        sovereignFQDN: `${subdomain}.pool.test`,
        loadBalancerIP: '203.0.113.10',
      }
      const key = subdomain === 'active' ? { 'Idempotency-Key': keys.commit } : {}
      expect((await call('POST', `${pool}/commit`, commit, key)).status).toBe(200)
    }
    expect((await call('DELETE', `${pool}/release?sub=cooling`)).status).toBe(200)
    await source.database.sql`
      insert into lineages (id, sovereign_fqdn, pool_domain, subdomain, has_infrastructure, infrastructure_changed_at, created_at)
      values ('11111111-1111-4111-8111-111111111111', 'active.pool.test', 'pool.test', 'active', true, now(), now())`
    await source.database.sql`
      insert into bucket_claims (bucket, lineage_id, sovereign_fqdn, claimed_at)
      values ('catalyst-active-pool-test', '11111111-1111-4111-8111-111111111111', 'active.pool.test', now())`
    await until('all is published', async () => {
      const rows = await source.database.sql`select from dns_names where applied_version < version`
      return rows.length === 0
    })
    exported = await exportText(source)
  })
  afterAll(() => stop(source))

  test('is exported as lines of the contract, without a token', () => {
    for (const line of toLines(exported)) expect(exportLine.safeParse(JSON.parse(line)).error).toBe(undefined)
    const first = exportLine.parse(JSON.parse(toLines(exported)[0] ?? ''))
    expect(first).toMatchObject({ type: 'header', version: 1 })
    for (const secret of [...tokens, ...Object.values(keys)]) expect(exported).not.toContain(secret)
  })

  test('works in another database: equal rows, valid tokens and keys, and new numbers', async () => {
    const target = await startTarget()
    const { status, body } = await importText(target, exported)
    expect([status, importResponse.safeParse(body).error]).toEqual([200, undefined])
    expect(body.rows).toMatchObject({ pool_allocations: 3, lineages: 1, bucket_claims: 1, idempotency_keys: 2 })
    expect(toRows(await exportText(target))).toEqual(toRows(exported))
    const { call } = target.api
    const replay = await call(
      'POST',
      `${pool}/reserve`,
      { subdomain: 'reserved', createdBy: 'import-test' },
      { 'Idempotency-Key': keys.reserve },
    )
    expect([replay.status, replay.body.reservationToken]).toEqual([201, tokens[1]])
    expect((await call('POST', `${pool}/reserve`, { subdomain: 'cooling' })).body.error).toBe('cooling-off')
    const renewed = await call('POST', `${pool}/renew`, { subdomain: 'reserved', reservationToken: tokens[1] })
    expect(renewed.status).toBe(200)
    // A sequence that was not moved would give the number of an existing row.
    expect((await call('POST', `${pool}/reserve`, { subdomain: 'new' })).status).toBe(201)
    expect((await importText(target, exported)).body).toMatchObject({ error: 'not-empty' })
  })

  test('takes no lock in a database in use', async () => {
    const target = await startTarget()
    await target.api.call('POST', `${pool}/reserve`, { subdomain: 'own' })
    const writer = await holdLock(target.database.sql, tx => tx`update pool_allocations set created_by = 'writer'`)
    const { status, body } = await importText(target, exported)
    await writer.release()
    expect([status, body.error]).toEqual([409, 'not-empty'])
  })

  test('is checked by a dry run, which changes nothing, also if it is of the last build before the baseline', async () => {
    const target = await startTarget()
    // It had the outcomes of the keys in a table of their own, which this build leaves out.
    const older = exported
      .replace(/"schema":\d+/, '"schema":19')
      .replaceAll('"table":"idempotency_keys"', '"table":"idempotency_results"')
    expect(older).toContain('idempotency_results')
    const { body } = await importText(target, older, '?dryRun=true')
    expect(body).toMatchObject({ dryRun: true, rows: { pool_allocations: 3 } })
    expect(JSON.stringify(body.rows)).not.toContain('idempotency')
    expect(await countRows(target.database)).toBe(0)
    expect((await importText(target, exported)).status).toBe(200)
  })

  test('is not imported from an export that is damaged or of another program', async () => {
    const target = await startTarget()
    const lines = toLines(exported)
    const row = lines.findIndex(line => line.includes('"table":"pool_allocations"'))
    const replaceLine = (index: number, text: string) => lines.with(index, text).join('\n')
    const damaged: readonly (readonly [body: string | Uint8Array<ArrayBuffer>, detail: RegExp])[] = [
      ['', /no end line/],
      ['\n', /^Line 1 is not a line/],
      ['{"hello":1}', /^Line 1 is not a line/],
      [Uint8Array.of(0xff, 0x0a), /not UTF-8/],
      [lines.slice(0, -1).join('\n'), /truncated/],
      [lines.toSpliced(row, 1).join('\n'), /incomplete/],
      [lines.slice(1).join('\n'), /one header, in its first line/],
      [[...lines, lines[0]].join('\n'), /one header/],
      [[...lines, lines[row]].join('\n'), /follows the end/],
      [replaceLine(0, lines[0]?.replace(/"schema":\d+/, '"schema":9999') ?? ''), /run a newer build/],
      [replaceLine(0, lines[0]?.replace('"version":1', '"version":2') ?? ''), /^Line 1 is not a line/],
      [replaceLine(row, '{"type":"row","table":"pg_authid","row":{}}'), /imports no rows of "pg_authid"/],
      [replaceLine(row, '{"type":"row","table":"pools","row":{"domain":"x"}}'), /imports no rows of "pools"/],
      [replaceLine(row, lines[row]?.replace('"created_by"', '"x\\"; drop table pools"') ?? ''), /has no column/],
      [
        replaceLine(row, lines[row]?.replace(/"state": "\w+"/, '"state": "owned"') ?? ''),
        /pool_allocations_state_check/,
      ],
      [replaceLine(row, lines[row]?.replace(/"reserved_at": "[^"]+"/, '"reserved_at": "x"') ?? ''), /22007/],
      [replaceLine(row, lines[row + 1] ?? ''), /pool_allocations_pkey/],
      [replaceLine(row, '{"type":"sequence","name":"x","value":1}'), /no sequence "x"/],
      [replaceLine(row, '{"type":"row","table":"deployments","row":{"finished_at":null}}'), /in progress/],
      ...['pool_allocations', 'dns_names'].map(table => {
        const index = lines.findIndex(line => line.includes(`"table":"${table}"`))
        const other = lines[index]?.replace(/"(pool_domain|zone)": "pool\.test"/, '"$1": "other.test"') ?? ''
        return [replaceLine(index, other), /other\.test, which this service does not manage/] as const
      }),
    ]
    for (const [body, detail] of damaged) {
      const response = await importText(target, body)
      expect([response.status, response.body.error], String(detail)).toEqual([422, 'invalid-import'])
      expect(response.body.detail).toMatch(detail)
    }
    expect(await countRows(target.database)).toBe(0)
  })

  test('is not half imported when the client disconnects', async () => {
    const target = await startTarget()
    const body = exported.slice(0, exported.length / 2)
    const client = request(`${target.api.operatorUrl}/api/v1/import`, { method: 'POST', headers })
    client.on('error', () => {})
    client.write(body)
    await until('the import is in progress', async () => {
      const rows = await target.database.sql`
        select from pg_locks where mode = 'ShareRowExclusiveLock' and relation = 'pool_allocations'::regclass`
      return rows.length > 0
    })
    client.destroy()
    await until('it has ended', async () => (await importText(target, exported, '?dryRun=true')).status === 200)
    expect(await countRows(target.database)).toBe(0)
  })

  test('is not exported or imported without an operator token, or in-cluster', async () => {
    expect((await source.api.call('GET', '/api/v1/export')).status).toBe(404)
    expect((await source.api.call('POST', '/api/v1/import', 'x')).status).toBe(404)
    expect((await fetch(`${source.api.operatorUrl}/api/v1/export`)).status).toBe(401)
    const rejected = await fetch(`${source.api.operatorUrl}/api/v1/import`, { method: 'POST', body: 'x' })
    expect(rejected.status).toBe(401)
  })

  test('whose reader stops reading holds no snapshot after it is closed', async () => {
    const target = await startTarget()
    await fillDatabase(target.database, 20_000)
    const client = request(`${target.api.operatorUrl}/api/v1/export`, { headers })
    // Without a listener, Node would read and discard the response.
    client.on('response', response => response.on('error', () => {}))
    client.on('error', () => {})
    client.end()
    const countSnapshots = async () => {
      const rows = await target.database.sql`
        select from pg_stat_activity where application_name = 'allocation-api transfer' and datname = current_database()`
      return rows.length
    }
    await until('the export is in progress', async () => (await countSnapshots()) === 1)
    client.destroy()
    await until('it has ended', async () => (await countSnapshots()) === 0)
  })
})

describe('the names of one pool in another pool', () => {
  const into = '?from=pool.test&to=other.test'
  const tokens: Record<string, string> = {}
  let exported: string
  let target: Installation

  beforeAll(async () => {
    const source = await startInstallation()
    const { call } = source.api
    for (const subdomain of ['active', 'reserved', 'taken', 'blocked', 'released']) {
      tokens[subdomain] = (
        await call('POST', `${pool}/reserve`, { subdomain, createdBy: 'mover' })
      ).body.reservationToken
    }
    for (const subdomain of ['active', 'released']) {
      const commit = {
        subdomain,
        reservationToken: tokens[subdomain],
        sovereignFQDN: `${subdomain}.pool.test`,
        ...(subdomain === 'active' ? { loadBalancerHostname: 'lb.cloud.example' } : { loadBalancerIP: '203.0.113.10' }),
      }
      expect((await call('POST', `${pool}/commit`, commit)).status).toBe(200)
    }
    expect((await call('DELETE', `${pool}/release?sub=released`)).status).toBe(200)
    exported = await exportText(source)
    await stop(source)
    target = await startInstallation({ DNSPROVIDER_MANAGED_DOMAINS: 'other.test,blocked.other.test' })
  })
  afterAll(() => stop(target))

  test('keep their tokens, and active ones are published; those that the pool cannot give are listed', async () => {
    const { call } = target.api
    const other = '/api/v1/pool/other.test'
    expect((await call('POST', `${other}/reserve`, { subdomain: 'taken' })).status).toBe(201)
    expect((await call('POST', `${other}/reserve`, { subdomain: 'reserved' })).status).toBe(201)
    await target.database.sql`
      update pool_allocations set reserved_at = now() - interval '1 min', expires_at = now() - interval '1 s', renewal_count = 2
      where subdomain = 'reserved'`
    // An earlier holder, of whom the history no longer shows anything.
    await target.database.sql`insert into former_names (pool_domain, subdomain) values ('other.test', 'active')`
    const planned = await importText(target, exported, `${into}&dryRun=true`)
    expect((await call('GET', `${other}/check?sub=active`)).body.available).toBe(true)
    const { status, body } = await importText(target, exported, into)
    expect([status, importResponse.safeParse(body).error]).toEqual([200, undefined])
    expect(body).toEqual({
      dryRun: false,
      rows: { pool_allocations: 2 },
      stoppedZones: [],
      skipped: [
        { subdomain: 'blocked', detail: expect.stringContaining('reserved') },
        { subdomain: 'taken', detail: expect.stringContaining('taken') },
      ],
      skippedCount: 2,
    })
    expect(planned.body).toEqual({ ...body, dryRun: true })
    expect((await call('GET', `${other}/allocations/active`)).body).toMatchObject({
      state: 'active',
      sovereignFQDN: 'active.other.test',
      loadBalancerHostname: 'lb.cloud.example',
      createdBy: 'mover',
    })
    await until('its records are published', async () => {
      const { body: allocation } = await call('GET', `${other}/allocations/active`)
      return allocation.dns.status === 'published'
    })
    const [purged] = await target.database.sql`
      select purge_version > 0 as "isPurged" from dns_names where zone = 'other.test' and subdomain = 'active'`
    expect(purged, 'records of the earlier holder are deleted').toEqual({ isPurged: true })
    const commit = {
      subdomain: 'reserved',
      reservationToken: tokens.reserved,
      sovereignFQDN: 'reserved.other.test',
      loadBalancerIP: '203.0.113.11',
    }
    expect((await call('POST', `${other}/commit`, commit)).status).toBe(200)
    const { body: history } = await call('GET', `${other}/history?sub=active`)
    expect(history.entries.map(({ event }: { event: string }) => event)).toEqual(['published', 'committed', 'reserved'])
    const { body: replaced } = await call('GET', `${other}/history?sub=reserved`)
    expect(
      replaced.entries.map(({ event, renewalCount }: { event: string; renewalCount?: number }) => [
        event,
        renewalCount,
      ]),
    ).toEqual([
      ['published', undefined],
      ['committed', undefined],
      ['reserved', undefined],
      ['expired', 2],
      ['reserved', undefined],
    ])
    // Repeated, it changes nothing.
    expect((await importText(target, exported, into)).body).toMatchObject({ rows: { pool_allocations: 0 } })
  })

  test.each([
    ['?from=pool.test', 422, 'invalid-format'],
    ['?from=pool.test&to=unknown.test', 422, 'unsupported-pool'],
    ['?dryRun=maybe', 422, 'invalid-format'],
  ])('%s is rejected', async (query, status, error) => {
    const response = await importText(target, exported, query)
    expect([response.status, response.body.error]).toEqual([status, error])
  })

  test('a damaged export moves nothing', async () => {
    const damaged = exported.replaceAll('"subdomain": "active"', '"subdomain": "again"').trimEnd().split('\n')
    const { body } = await importText(target, damaged.slice(0, -1).join('\n'), into)
    expect(body).toMatchObject({ error: 'invalid-import' })
    expect((await target.api.call('GET', '/api/v1/pool/other.test/check?sub=again')).body.available).toBe(true)
    const invalid = exported.replaceAll('"subdomain": "active"', '"subdomain": "-not-a-label"')
    expect((await importText(target, invalid, into)).body.detail).toMatch(/pool_allocations_subdomain_check/)
  })
})

/** Active names with records and three history entries each. */
const fillDatabase = async ({ sql }: TestDatabase, count: number): Promise<void> => {
  await sql`
    insert into pool_allocations
      (pool_domain, subdomain, state, reserved_at, token_hash, created_by, sovereign_fqdn, load_balancer_ip, committed_at)
    select 'pool.test', 'n' || i, 'active', now(), sha256(i::text::bytea), 'fill', 'n' || i || '.pool.test', '203.0.113.10', now()
    from generate_series(1, ${count}::int) i`
  await sql`
    insert into dns_names (zone, subdomain, version, desired, changed_at, next_attempt_at, applied_version, attempted_version, applied_at)
    select 'pool.test', 'n' || i, v, jsonb_build_array(jsonb_build_object(
      'name', 'n' || i || '.pool.test', 'type', 'A', 'ttl', 300, 'values', jsonb_build_array('203.0.113.10'))), now(), now(), v, v, now()
    from (select i, nextval('dns_version') as v from generate_series(1, ${count}::int) i) versions`
  await sql`
    insert into allocation_history (pool_domain, subdomain, event, from_state, to_state, actor, created_by)
    select 'pool.test', 'n' || i, event, from_state, to_state, 'in-cluster', 'fill'
    from generate_series(1, ${count}::int) i,
      (values ('reserved', 'none', 'reserved'), ('committed', 'reserved', 'active'), ('published', 'active', 'active'))
        as transition (event, from_state, to_state)`
}

test(`an installation of ${NAMES} names with history is equal on both sides`, { timeout: 600_000 }, async () => {
  const source = await startTarget()
  await fillDatabase(source.database, NAMES)
  const target = await startTarget()
  const started = performance.now()
  const exported = await exportText(source)
  const exportedAt = performance.now()
  const { status, body } = await importText(target, exported)
  const importedAt = performance.now()
  expect([status, body.rows.pool_allocations, body.rows.allocation_history]).toEqual([200, NAMES, 3 * NAMES])
  const rows = toRows(exported)
  expect(toRows(await exportText(target))).toEqual(rows)
  const seconds = (from: number, to: number) => ((to - from) / 1_000).toFixed(1)
  reportProof(
    `export and import: ${rows.length} rows (${(exported.length / 1e6).toFixed(0)} MB) exported in ${seconds(started, exportedAt)} s, imported in ${seconds(exportedAt, importedAt)} s, equal on both sides`,
  )
})
