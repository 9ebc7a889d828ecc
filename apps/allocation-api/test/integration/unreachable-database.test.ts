import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from '@pool/dev/ports'
import { createDatabaseClient } from '@pool/runtime/database/client'
import { isDatabaseUnavailable, isNotExecuted } from '@pool/runtime/database/errors'
import { until } from '@pool/test-kit/poll.ts'
import { sendRequest, smallPoolEnv, startApi, startWitness } from '@pool/test-kit/services.ts'
import { startTcpProxy } from '@pool/test-kit/tcp-proxy.ts'
import { afterAll, describe, expect, onTestFinished, test } from 'vitest'
import { useTestDatabase } from '../support/database.ts'

const database = await useTestDatabase({ schema: false, connections: 1 })
const folder = await mkdtemp(join(tmpdir(), 'pool-sockets-'))
afterAll(() => rm(folder, { recursive: true, force: true }))

const toUrl = (hosts: string, parameters = '') => {
  const { username, password, pathname } = new URL(database.url)
  return `postgres://${username}:${password}@${hosts}${pathname}${parameters}`
}
const toSocketHost = (path: string) => `${encodeURIComponent(path)}:5432`

/** A server that does this with each connection. */
const serve = async (onConnection: (socket: Socket) => void): Promise<number> => {
  const server = createServer(onConnection)
  await once(server.listen(0, '127.0.0.1'), 'listening')
  onTestFinished(() => void server.close())
  return (server.address() as AddressInfo).port
}

/** A server in this state answers every connection with the error, before a session. */
const serveError = (code: string) => {
  const fields = `SFATAL\0VFATAL\0C${code}\0Mexample\0\0`
  const length = Buffer.alloc(4)
  length.writeInt32BE(fields.length + 4)
  return serve(socket => {
    socket.on('error', () => {})
    socket.once('data', () => socket.end(Buffer.concat([Buffer.from('E'), length, Buffer.from(fields)])))
  })
}

describe('a connection that fails, whatever the address: unavailable, and the statement had no effect', () => {
  test.each<[string, (own: string) => Promise<string>]>([
    ['a Unix socket that does not exist', async () => toSocketHost('/nowhere')],
    ['a Unix socket whose folder is a file', async () => toSocketHost('/etc/hostname')],
    [
      'a Unix socket without permission, or a file in its place',
      async own => {
        await writeFile(join(own, '.s.PGSQL.5432'), '')
        await chmod(join(own, '.s.PGSQL.5432'), 0)
        return toSocketHost(own)
      },
    ],
    ['a Unix socket with a path that is too long', async () => toSocketHost(`/${'x'.repeat(200)}`)],
    ['a port without a server', async () => `127.0.0.1:${await freePort()}`],
    ['an address that cannot be routed', async () => '255.255.255.255:5432'],
    ['a name that does not exist', async () => 'no-such-host.invalid:5432'],
    ['a server that resets in the handshake', async () => `127.0.0.1:${await serve(one => one.resetAndDestroy())}`],
    [
      'a server that resets after the first message',
      async () => `127.0.0.1:${await serve(one => one.once('data', () => one.resetAndDestroy()))}`,
    ],
    ['a server that closes in the handshake', async () => `127.0.0.1:${await serve(one => one.resume().end())}`],
    ['a server that starts, stops or recovers', async () => `127.0.0.1:${await serveError('57P03')}`],
    ['too many connections', async () => `127.0.0.1:${await serveError('53300')}`],
    ['a database that accepts no connections', async () => `127.0.0.1:${await serveError('55000')}`],
    ['a pooler without a server', async () => `127.0.0.1:${await serveError('08P01')}`],
  ])('%s', async (_, toHosts) => {
    const hosts = await toHosts(await mkdtemp(join(folder, 'own-')))
    // Alone, and where both hosts fail.
    for (const target of [hosts, `${hosts},${hosts}`]) {
      const sql = createDatabaseClient(toUrl(target), { maxConnections: 1, applicationName: 'tests' })
      const error = await sql`select 1`.then(
        () => null,
        (reason: unknown) => reason,
      )
      expect([isDatabaseUnavailable(error), isNotExecuted(error)], String(error)).toEqual([true, true])
      await sql.end({ timeout: 0 })
    }
    // The next host is found, at the latest by the next statement.
    const both = createDatabaseClient(toUrl(`${hosts},127.0.0.1:${new URL(database.url).port}`), {
      maxConnections: 1,
      applicationName: 'tests',
    })
    await both`select 1`.catch(() => {})
    expect(await both`select 1 as one`).toEqual([{ one: 1 }])
    await both.end({ timeout: 0 })
  })
})

const WITNESS_WRITE = { 'If-Match': '0', Authorization: 'Bearer token-of-tests-0' }

const SERVICES = [
  {
    service: 'the API',
    start: (url: string) => startApi(url, smallPoolEnv, { isReady: line => line.msg === 'listening' }),
    alive: '/livez',
    aliveStatus: 200,
    ready: '/readyz',
    read: '/api/v1/pool/pool.test/list',
    table: 'pool_allocations',
    write: (url: string, name: string) =>
      sendRequest(`${url}/api/v1/pool/pool.test/reserve`, 'POST', { subdomain: name }),
  },
  {
    service: 'the witness',
    start: (url: string) =>
      startWitness(
        url,
        { BEARER_TOKENS_CSV: 'token-of-tests-0', WITNESS_ALLOW_LOST_WRITES: 'true' },
        { isReady: line => line.msg === 'listening' },
      ),
    // It has no other probe: any response is one of a live process.
    alive: '/example',
    aliveStatus: 404,
    ready: '/healthz',
    read: '/lease/one',
    table: 'leases',
    write: (url: string, name: string) => sendRequest(`${url}/lease/${name}`, 'PUT', { holder: 'a' }, WITNESS_WRITE),
  },
] as const

describe('through a Unix socket', () => {
  /** A socket that leads to the database. Closed, it has no file, as that of a stopped server. */
  const openSocket = async (own: string): Promise<() => Promise<void>> => {
    const port = Number(new URL(database.url).port)
    const open = new Set<Socket>()
    const server: Server = createServer(near => {
      const far = connect(port, '127.0.0.1')
      for (const socket of [near, far]) {
        open.add(socket)
        socket.on('error', () => {}).on('close', () => [near, far].map(one => one.destroy()))
      }
      near.pipe(far).pipe(near)
    })
    await once(server.listen(join(own, '.s.PGSQL.5432')), 'listening')
    return async () => {
      const closed = once(server, 'close')
      server.close()
      for (const socket of open) socket.destroy()
      await closed
    }
  }

  test.each(SERVICES)(
    '$service waits for the server, and a stopped server is 503',
    async ({ start, alive, aliveStatus, ready, read, write }) => {
      const own = await mkdtemp(join(folder, 'own-'))
      const { url, process: child } = await start(toUrl(toSocketHost(own)))
      onTestFinished(async () => void (await child.kill()))
      const get = async (path: string) => (await sendRequest(url + path, 'GET', undefined, WITNESS_WRITE)).status
      expect([await get(alive), await get(ready)]).toEqual([aliveStatus, 503])
      const close = await openSocket(own)
      await until('it is ready', async () => (await get(ready)) === 200)
      await close()
      expect(await get(read)).toBe(503)
      const written = await write(url, 'one')
      expect(written.status).toBe(503)
      expect(written.body.detail).toMatch(/Nothing changed|read the lease and compare/)
      expect(await get(alive)).toBe(aliveStatus)
      const closeAgain = await openSocket(own)
      await until('it is ready again', async () => (await get(ready)) === 200)
      expect((await write(url, 'one')).status).toBeLessThan(300)
      expect(await child.stop()).toEqual({ code: 0, signal: null })
      await closeAgain()
    },
  )
})

describe('of several hosts, one that does not respond', () => {
  const statements = async (url: string, clients: number) => {
    for (let count = 0; count < clients; count += 1) {
      const sql = createDatabaseClient(url, { maxConnections: 2, applicationName: 'tests', maxStatementMs: 60_000 })
      expect(await sql`select 1 as one`).toEqual([{ one: 1 }])
      await sql.end({ timeout: 0 })
    }
  }

  test('in the handshake: is waited for once by the whole process, whatever its place', async () => {
    const { port } = new URL(database.url)
    let connections = 0
    const silent = await serve(one => {
      connections += 1
      one.on('error', () => {}).resume()
    })
    await statements(toUrl(`127.0.0.1:${silent},127.0.0.1:${port}`), 5)
    expect(connections).toBe(1)
    await statements(toUrl(`127.0.0.1:${port},127.0.0.1:${silent}`), 5)
    expect(connections).toBe(1)
  })

  test('in TCP: an address that drops packets', async () => {
    const port = await freePort()
    // Its queue of connections is short, and it accepts none.
    const script = `require('net').createServer().listen({ port: ${port}, host: '127.0.0.1', backlog: 1 }, () => process.kill(process.pid, 'SIGSTOP'))`
    const child = spawn(process.execPath, ['-e', script])
    const filling: Socket[] = []
    onTestFinished(() => {
      child.kill('SIGKILL')
      for (const socket of filling) socket.destroy()
    })
    await until('its queue is full', async () => {
      const socket = connect(port, '127.0.0.1').on('error', () => {})
      filling.push(socket)
      const outcome = await Promise.race([
        once(socket, 'connect').then(
          () => 'connected',
          () => 'refused',
        ),
        new Promise(resolve => setTimeout(resolve, 500, 'dropped')),
      ])
      return outcome === 'dropped'
    })
    const url = toUrl(`127.0.0.1:${port},127.0.0.1:${new URL(database.url).port}`)
    await statements(url, 1)
    const startedAt = performance.now()
    await statements(url, 3)
    // Each would wait for the connect timeout.
    expect(performance.now() - startedAt).toBeLessThan(10_000)
  })

  test('in a session: the next statement finds the other host', async () => {
    const port = Number(new URL(database.url).port)
    const [first, second] = [await startTcpProxy(port), await startTcpProxy(port)]
    const sql = createDatabaseClient(toUrl(`127.0.0.1:${first.port},127.0.0.1:${second.port}`), {
      maxConnections: 4,
      applicationName: 'tests',
      maxStatementMs: 500,
    })
    expect(await sql`select 1 as one`).toEqual([{ one: 1 }])
    expect([first.count(), second.count()]).toEqual([1, 0])
    first.freeze()
    await expect(sql`select 1`).rejects.toMatchObject({ code: 'ETIMEDOUT' })
    expect(await sql`select 1 as one`).toEqual([{ one: 1 }])
    expect(second.count()).toBe(1)
    await sql.end({ timeout: 0 })
    await Promise.all([first.close(), second.close()])
  })

  test.each(SERVICES)('while $service runs: one write fails, and the next one succeeds', async one => {
    const port = Number(new URL(database.url).port)
    const [first, second] = [await startTcpProxy(port), await startTcpProxy(port)]
    const { url, process: child } = await one.start(toUrl(`127.0.0.1:${first.port},127.0.0.1:${second.port}`))
    onTestFinished(async () => void (await child.kill()))
    const isReady = async () => (await sendRequest(url + one.ready, 'GET')).status === 200
    await until('it is ready', isReady)
    expect((await one.write(url, 'before')).status).toBeLessThan(300)
    first.freeze()
    expect((await one.write(url, 'during')).status).toBe(503)
    expect((await one.write(url, 'after')).status).toBeLessThan(300)
    await child.stop()
    await Promise.all([first.close(), second.close()])
  })
})

test.each(SERVICES)(
  'a table that $service loses while it runs: 503 without an effect, and no restart is needed',
  async ({ start, alive, aliveStatus, ready, read, table, write }) => {
    const { url, process: child } = await start(database.url)
    onTestFinished(async () => void (await child.kill()))
    const get = async (path: string) => (await sendRequest(url + path, 'GET', undefined, WITNESS_WRITE)).status
    await until('it is ready', async () => (await get(ready)) === 200)
    const rename = (from: string, to: string) =>
      database.sql`alter table ${database.sql(from)} rename to ${database.sql(to)}`
    await rename(table, 'taken_away')
    const written = await write(url, 'taken-away')
    expect([await get(read), written.status, await get(alive)]).toEqual([503, 503, aliveStatus])
    expect(written.body.detail).toMatch(/Nothing changed|read the lease and compare/)
    await rename('taken_away', table)
    expect((await write(url, 'taken-away')).status).toBeLessThan(300)
  },
)
