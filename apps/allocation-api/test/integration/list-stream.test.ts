import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { until } from '@pool/test-kit/poll.ts'
import { startTcpProxy, type TcpProxy } from '@pool/test-kit/tcp-proxy.ts'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Api, startApi } from '../support/api.ts'
import { createTestDatabase, missingDsn, type TestDatabase, testDsn } from '../support/database.ts'

const ROWS = 100_000

describe.skipIf(!testDsn)(`a list of ${ROWS} names (${testDsn ? 'real Postgres' : missingDsn})`, () => {
  let database: TestDatabase
  let link: TcpProxy
  let api: Api

  beforeAll(async () => {
    database = await createTestDatabase()
    await database.sql`
      insert into pool_allocations (pool_domain, subdomain, state, reserved_at, expires_at, reservation_token, created_by)
      select 'pool.test', 'n' || lpad(n::text, 6, '0'), 'reserved', now(), now() + interval '1 h', gen_random_uuid(), ''
      from generate_series(1, ${ROWS}) n`
    const url = new URL(database.url)
    link = await startTcpProxy(Number(url.port))
    api = await startApi(Object.assign(url, { port: String(link.port) }).href)
  })
  afterAll(async () => {
    await api.process.stop()
    await link.close()
    await database.drop()
  })

  const list = '/api/v1/pool/pool.test/list'

  /** What came, and whether it ended as whole answers do, when something was done after its first part. */
  const readCut = async (cut: () => unknown) => {
    const response = await fetch(api.url + list)
    const requestId = response.headers.get('X-Request-Id')
    let received = ''
    try {
      for await (const part of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
        if (received === '') await cut()
        received += part
      }
      return { end: 'whole', received, requestId }
    } catch {
      return { end: 'broken off', received, requestId }
    }
  }

  test('is whole, sorted, each name once', async () => {
    const { body } = await api.call('GET', list)
    const names: string[] = body.allocations.map((row: { subdomain: string }) => row.subdomain)
    expect(names).toHaveLength(ROWS)
    expect(names).toEqual([...new Set(names)].sort())
    expect(body).not.toHaveProperty('nextCursor')
  })

  test('is left unfinished when the database fails in the middle: no client can take it for the whole', async () => {
    const { end, received } = await readCut(async () => database.sql`alter table pool_allocations rename to elsewhere`)
    await database.sql`alter table elsewhere rename to pool_allocations`
    expect(end).toBe('broken off')
    expect(received).not.toMatch(/error|42P01|elsewhere/i)
    const isTold = () => api.lines.some(line => line.includes('"request failed"') && line.includes('42P01'))
    await until('it is in the log', isTold)
    expect(api.lines.filter(line => !line.startsWith('{'))).toEqual([])
    expect((await api.call('GET', '/healthz')).status).toBe(200)
  })

  test('is left unfinished when the database goes away in the middle, which is no defect of ours', async () => {
    const { end, received, requestId } = await readCut(() => link.refuse(true))
    link.refuse(false)
    expect(end).toBe('broken off')
    expect(received).not.toMatch(/error|ECONN|CONNECTION/i)
    const lines = () => api.lines.filter(line => line.includes(`"${requestId}"`)).map(line => JSON.parse(line))
    await until('it is in the log', () => lines().length > 1)
    expect(lines()).toMatchObject([
      { msg: 'request', status: 200, outcome: 'listed' },
      { msg: 'response aborted', level: 'warn', error: { code: expect.stringMatching(/^E?CONN/) } },
    ])
    expect((await api.call('GET', list)).status).toBe(200)
  })

  test('of several pages has its end in that of the connection, for a client of HTTP/1.0 (RFC 9112 section 6.1: no chunks)', async () => {
    const socket = connect(Number(new URL(api.url).port), '127.0.0.1')
    socket.write(`GET ${list}?limit=600 HTTP/1.0\r\nHost: localhost\r\n\r\n`)
    const [head = '', body = ''] = (await text(socket)).split('\r\n\r\n')
    expect(head).toMatch(/^HTTP\/1\.1 200 /)
    expect(head).not.toMatch(/^transfer-encoding:/im)
    expect(JSON.parse(body).allocations).toHaveLength(600)
  })

  const stopReading = async () => {
    const [{ before }] = await database.sql<[{ before: Date }]>`select clock_timestamp() as before`
    const socket = connect(Number(new URL(api.url).port), '127.0.0.1')
    socket.pause()
    socket.write(`GET ${list} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`)
    // The buffers between the two fill; then nothing more is asked of the database. A connection that goes on to
    // something else shows no page any more, so what was seen once is kept.
    let latest = before
    await until('half a second without a page being read', async () => {
      const [row] = await database.sql<{ latest: Date | null; now: Date }[]>`
        select max(query_start) filter (where query like '%order by a.subdomain%') as latest, clock_timestamp() as now
        from pg_stat_activity where datname = current_database() and application_name = 'allocation-api'`
      if (row?.latest && row.latest > latest) latest = row.latest
      return latest > before && Number(row?.now) - Number(latest) > 500
    })
    return socket
  }

  test('is forgotten with a reader that goes away', async () => {
    const socket = await stopReading()
    socket.destroy()
    expect((await api.call('GET', list)).body.allocations).toHaveLength(ROWS)
  })

  test('waits for a reader that stops: what is not read yet is not asked of the database', async () => {
    const socket = await stopReading()
    await database.sql`truncate pool_allocations`
    let names = 0
    socket.setEncoding('utf8')
    let rest = ''
    for await (const part of socket) {
      rest += part
      const parts = rest.split('"subdomain":')
      names += parts.length - 1
      rest = parts.at(-1)?.slice(-20) ?? ''
    }
    expect(names).toBeGreaterThan(0)
    expect(names).toBeLessThan(ROWS * 0.9)
  })
})
