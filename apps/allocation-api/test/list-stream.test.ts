import { connect } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Api, startApi } from './support/api.ts'
import { createTestDatabase, lacksDsn, type TestDatabase, testDsn } from './support/database.ts'
import { until } from './support/until.ts'

const ROWS = 100_000

describe.skipIf(!testDsn)(`a list of ${ROWS} names (${testDsn ? 'real Postgres' : lacksDsn})`, () => {
  let database: TestDatabase
  let api: Api

  beforeAll(async () => {
    database = await createTestDatabase()
    await database.sql`
      insert into pool_allocations (pool_domain, subdomain, state, reserved_at, expires_at, reservation_token, created_by)
      select 'pool.test', 'n' || lpad(n::text, 6, '0'), 'reserved', now(), now() + interval '1 h', gen_random_uuid(), ''
      from generate_series(1, ${ROWS}) n`
    api = await startApi(database.url)
  })
  afterAll(async () => {
    await api.process.stop()
    await database.drop()
  })

  const list = '/api/v1/pool/pool.test/list'

  test('is whole, sorted, each name once', async () => {
    const { body } = await api.call('GET', list)
    const names: string[] = body.allocations.map((row: { subdomain: string }) => row.subdomain)
    expect(names).toHaveLength(ROWS)
    expect(names).toEqual([...new Set(names)].sort())
    expect(body).not.toHaveProperty('nextCursor')
  })

  test('is left unfinished when the database fails in the middle: no client can take it for the whole', async () => {
    const response = await fetch(api.url + list)
    const reader = response.body?.getReader()
    await reader?.read()
    await database.sql`alter table pool_allocations rename to elsewhere`
    let text = ''
    const rest = (async () => {
      for (;;) {
        const chunk = await reader?.read()
        if (!chunk || chunk.done) return 'complete'
        text += new TextDecoder().decode(chunk.value)
      }
    })()
    await expect(rest).rejects.toThrow()
    await database.sql`alter table elsewhere rename to pool_allocations`
    expect(text).not.toMatch(/error|42P01|elsewhere/i)
    expect(api.lines.some(line => line.includes('"request failed"') && line.includes('42P01'))).toBe(true)
    expect(api.lines.filter(line => !line.startsWith('{'))).toEqual([])
    expect((await api.call('GET', '/healthz')).status).toBe(200)
  })

  test('waits for a reader that stops, without reading ahead, and forgets one that goes away', async () => {
    const statements = async () => {
      const [row] = await database.sql<{ n: number }[]>`
        select sum(idx_scan)::int as n from pg_stat_user_tables where relname = 'pool_allocations'`
      return row?.n ?? 0
    }
    const socket = connect(Number(new URL(api.url).port), '127.0.0.1')
    socket.pause()
    socket.write(`GET ${list} HTTP/1.1\r\nHost: localhost\r\n\r\n`)
    // The kernel's buffers fill, then nothing more is read from the database.
    let before = -1
    await until('the database is read no more', async () => {
      await new Promise(resolve => setTimeout(resolve, 200))
      await database.sql`select pg_stat_force_next_flush()`
      const now = await statements()
      const isStill = now === before
      before = now
      return isStill
    })
    socket.destroy()
    const probe = await api.call('GET', `${list}?limit=1`)
    expect(probe.body.allocations).toHaveLength(1)
    const { body } = await api.call('GET', list)
    expect(body.allocations).toHaveLength(ROWS)
  })
})
