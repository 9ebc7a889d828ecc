import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { until } from '@pool/test-kit/poll.ts'
import { type Api, startApi } from '@pool/test-kit/services.ts'
import { startTcpProxy, type TcpProxy } from '@pool/test-kit/tcp-proxy.ts'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'

/** Each row is more than 1 KB of JSON, so the list does not fit into the socket buffers. */
const ROWS = 20_000

describe(`a list of ${ROWS} names`, () => {
  let database: TestDatabase
  let link: TcpProxy
  let api: Api

  beforeAll(async () => {
    database = await createTestDatabase()
    await database.sql`
      insert into pool_allocations (pool_domain, subdomain, state, reserved_at, expires_at, token_hash, created_by)
      select 'pool.test', 'n' || lpad(n::text, 6, '0'), 'reserved', now(), now() + interval '1 h', sha256(gen_random_uuid()::text::bytea),
        repeat(chr(128640), 253)
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

  /** Reads the list and calls `interrupt` after the first chunk. `end` is the client's view of the response. */
  const readInterrupted = async (interrupt: () => unknown) => {
    const response = await fetch(api.url + list)
    const requestId = response.headers.get('X-Request-Id')
    let received = ''
    try {
      for await (const part of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
        if (received === '') await interrupt()
        received += part
      }
      return { end: 'complete', received, requestId }
    } catch {
      return { end: 'aborted', received, requestId }
    }
  }

  test('is complete, sorted and without duplicates', async () => {
    const { body } = await api.call('GET', list)
    const names: string[] = body.allocations.map((row: { subdomain: string }) => row.subdomain)
    expect(names).toHaveLength(ROWS)
    expect(names).toEqual([...new Set(names)].sort())
    expect(body).not.toHaveProperty('nextCursor')
  })

  test('is aborted when a statement fails, so that no client takes it for complete', async () => {
    const { end, received } = await readInterrupted(() =>
      database.sql.begin(async sql => {
        await sql`alter table pool_allocations rename to renamed`
        await sql`create view pool_allocations as select * from renamed where 1 / length(left(subdomain, 0)) > 0`
      }),
    )
    await database.sql.begin(async sql => {
      await sql`drop view pool_allocations`
      await sql`alter table renamed rename to pool_allocations`
    })
    expect(end).toBe('aborted')
    expect(received).not.toMatch(/error|22012|division/i)
    const isLogged = () => api.lines.some(line => line.includes('"request failed"') && line.includes('22012'))
    await until('the error is logged', isLogged)
    expect(api.lines.filter(line => !line.startsWith('{'))).toEqual([])
    expect((await api.call('GET', '/healthz')).status).toBe(200)
  })

  test('is aborted when the database becomes unavailable, which is logged as a warning', async () => {
    const { end, received, requestId } = await readInterrupted(() => link.refuse(true))
    link.refuse(false)
    expect(end).toBe('aborted')
    expect(received).not.toMatch(/error|ECONN|CONNECTION/i)
    const lines = () => api.lines.filter(line => line.includes(`"${requestId}"`)).map(line => JSON.parse(line))
    await until('the warning is logged', () => lines().length > 1)
    expect(lines()).toMatchObject([
      { msg: 'request', status: 200, outcome: 'listed' },
      { msg: 'response aborted', level: 'warn', error: { code: expect.stringMatching(/^E?CONN/) } },
    ])
    expect((await api.call('GET', list)).status).toBe(200)
  })

  test('ends with the connection for an HTTP/1.0 client (RFC 9112 section 6.1: not chunked)', async () => {
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
    // Once the socket buffers are full, the service reads no further page. pg_stat_activity shows only the last statement
    // of a connection, so this keeps the highest page number.
    let latest = before
    await until('no page is read for half a second', async () => {
      const [row] = await database.sql<{ latest: Date | null; now: Date }[]>`
        select max(query_start) filter (where query like '%order by a.subdomain%') as latest, clock_timestamp() as now
        from pg_stat_activity where datname = current_database() and application_name like 'allocation-api%'`
      if (row?.latest && row.latest > latest) latest = row.latest
      return latest > before && Number(row?.now) - Number(latest) > 500
    })
    return socket
  }

  test('is abandoned when its reader disconnects', async () => {
    const socket = await stopReading()
    socket.destroy()
    expect((await api.call('GET', list)).body.allocations).toHaveLength(ROWS)
  })

  test('applies backpressure: pages that the reader does not request are not read', async () => {
    const socket = await stopReading()
    await database.sql`truncate pool_allocations`
    let names = 0
    socket.setEncoding('utf8')
    let remaining = ''
    for await (const part of socket) {
      remaining += part
      const parts = remaining.split('"subdomain":')
      names += parts.length - 1
      remaining = parts.at(-1)?.slice(-20) ?? ''
    }
    expect(names).toBeGreaterThan(0)
    expect(names).toBeLessThan(ROWS * 0.9)
  })
})
