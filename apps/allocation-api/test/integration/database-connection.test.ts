import { once } from 'node:events'
import { chmod, chown, readFile, stat, writeFile } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { freePort } from '@pool/dev/ports'
import { createDatabaseClient, createSessions } from '@pool/runtime/database/client'
import { applySessionSettings } from '@pool/runtime/database/session-settings'
import { createCa } from '@pool/test-kit/ceph/test-ca.ts'
import { type DedicatedPostgres, startDedicatedPostgres } from '@pool/test-kit/dedicated-postgres.ts'
import { shouldSkip } from '@pool/test-kit/optional-deps.ts'
import { missingPgbouncer, startPgbouncer } from '@pool/test-kit/pgbouncer.ts'
import { until } from '@pool/test-kit/poll.ts'
import { runUntilExit, sendRequest, startApi, toApiEntry, toWitnessEntry } from '@pool/test-kit/services.ts'
import { startTcpProxy } from '@pool/test-kit/tcp-proxy.ts'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createTestDatabase, useTestDatabase } from '../support/database.ts'
import { run } from '../support/doctor.ts'

/** The lines of a start that is expected to fail, and the exit code. */
const startInVain = (url: string) =>
  runUntilExit({ entry: toApiEntry(), env: { PORT: '0', PDM_DATABASE_URL: url, PDM_LOG_LEVEL: 'error' } })

const withUrl = (url: string, parts: Partial<Pick<URL, 'hostname' | 'port' | 'username' | 'password' | 'pathname'>>) =>
  Object.assign(new URL(url), parts).href

describe('a server that requires TLS', () => {
  let postgres: DedicatedPostgres
  let folder: string
  let url: string

  const write = async (name: string, text: string): Promise<string> => {
    const path = join(folder, name)
    const { uid, gid } = await stat(folder)
    await writeFile(path, text)
    await chown(path, uid, gid)
    await chmod(path, 0o600)
    return path
  }

  beforeAll(async () => {
    postgres = await startDedicatedPostgres()
    const sql = postgres.connect()
    const [row] = await sql`select current_setting('data_directory') as folder`
    folder = row?.folder
    const [ca, otherCa] = await Promise.all([createCa('database'), createCa('other')])
    const server = await ca.issue({ names: ['localhost'] })
    const client = await ca.issue({ names: ['postgres'] })
    await write('server.crt', server.cert)
    await write('server.key', server.key)
    await write('ca.crt', ca.cert)
    await write('other-ca.crt', otherCa.cert)
    await write('client.crt', client.cert)
    await write('client.key', client.key)
    const rules = await readFile(join(folder, 'pg_hba.conf'), 'utf8')
    await write('pg_hba.conf', rules.replaceAll(/^host\b/gm, 'hostssl'))
    await sql`alter system set ssl = on`
    await sql`alter system set ssl_ca_file = 'ca.crt'`
    await sql`select pg_reload_conf()`
    url = withUrl(postgres.url, { hostname: 'localhost' })
  })
  afterAll(() => postgres?.remove())

  const file = (name: string) => encodeURIComponent(join(folder, name))
  /** The TLS version of the session, or the code of the error. */
  const connect = async (target: string): Promise<string> => {
    const sql = createDatabaseClient(target, { maxConnections: 1, applicationName: 'tls' })
    try {
      const [row] = await sql`
        select ssl.version, ssl.client_dn as client from pg_stat_ssl ssl where pid = pg_backend_pid()`
      return `${row?.version} ${row?.client ?? ''}`.trim()
    } catch (error) {
      return error instanceof Error && 'code' in error ? String(error.code) : String(error)
    } finally {
      await sql.end({ timeout: 0 })
    }
  }

  test('sslmode, sslrootcert, sslcert and sslkey mean what they mean to libpq', async () => {
    const byAddress = withUrl(url, { hostname: '127.0.0.1' })
    expect({
      require: await connect(`${url}?sslmode=require`),
      requireWithAuthority: await connect(`${url}?sslmode=require&sslrootcert=${file('ca.crt')}`),
      requireWithOtherAuthority: await connect(`${url}?sslmode=require&sslrootcert=${file('other-ca.crt')}`),
      verifyCaByAddress: await connect(`${byAddress}?sslmode=verify-ca&sslrootcert=${file('ca.crt')}`),
      verifyFull: await connect(`${url}?sslmode=verify-full&sslrootcert=${file('ca.crt')}`),
      verifyFullByAddress: await connect(`${byAddress}?sslmode=verify-full&sslrootcert=${file('ca.crt')}`),
      verifyFullBySystem: await connect(`${url}?sslrootcert=system`),
      clientCertificate: await connect(
        `${url}?sslmode=require&sslcert=${file('client.crt')}&sslkey=${file('client.key')}`,
      ),
      missingFile: await connect(`${url}?sslmode=verify-full&sslrootcert=${file('no-such.crt')}`),
      disable: await connect(`${url}?sslmode=disable`),
    }).toEqual({
      require: 'TLSv1.3',
      requireWithAuthority: 'TLSv1.3',
      requireWithOtherAuthority: 'CONNECT_TLS_FAILED',
      verifyCaByAddress: 'TLSv1.3',
      verifyFull: 'TLSv1.3',
      verifyFullByAddress: 'CONNECT_TLS_FAILED',
      verifyFullBySystem: 'CONNECT_TLS_FAILED',
      clientCertificate: expect.stringMatching(/^TLSv1\.3 \/CN=/),
      missingFile: 'CONNECT_TLS_FILE',
      disable: '28000',
    })
  })

  test('a pool over TLS survives resets and keeps its silence timeout', async () => {
    const target = `${url}?sslmode=verify-full&sslrootcert=${file('ca.crt')}`
    const sql = createDatabaseClient(target, { maxConnections: 2, applicationName: 'tls', maxStatementMs: 100 })
    expect(await sql`select 1 as one`).toEqual([{ one: 1 }])
    await expect(sql`select pg_sleep(5)`).rejects.toMatchObject({ code: 'ETIMEDOUT' })
    expect(await sql`select 2 as two`).toEqual([{ two: 2 }])
    await sql.end({ timeout: 1 })
  })

  test('one line at the start says which setting is missing', async () => {
    const missing = await startInVain(url)
    expect(missing.lines).toEqual([expect.stringMatching(/^start: .*without TLS; add sslmode=verify-full.*\(28000\)$/)])
    const unreadable = await startInVain(`${url}?sslmode=verify-full&sslrootcert=${file('no-such.crt')}`)
    expect(unreadable.lines).toEqual([expect.stringMatching(/^start: the file of sslrootcert cannot be read/)])
    expect([missing.code, unreadable.code]).toEqual([1, 1])
  })

  test('a certificate that is not trusted is waited for: the server may get another one', async () => {
    const target = `${url}?sslmode=verify-full&sslrootcert=${file('other-ca.crt')}`
    const api = await startApi(target, {}, { isReady: line => line.msg === 'listening' })
    await until('it waits', () => /waiting.*TLS with the database server failed .*sslrootcert/.test(api.lines.join()))
    expect((await sendRequest(`${api.url}/livez`, 'GET')).status).toBe(200)
    await api.process.stop()
  })
})

describe('a start that the operator must help', async () => {
  const database = await useTestDatabase({ schema: false, connections: 1 })

  test.each([
    [
      'a wrong password',
      () => withUrl(database.url, { password: 'wrong' }),
      /rejects the user or the password.*\(28P01\)$/,
    ],
    ['a missing database', () => withUrl(database.url, { pathname: '/none' }), /does not exist; create it.*\(3D000\)$/],
    ['a server without TLS', () => `${database.url}?sslmode=require`, /does not support TLS; correct sslmode/],
  ])('%s: exit code 1 and one line', async (_, toUrl, line) => {
    const { lines, code } = await startInVain(toUrl())
    expect(lines).toEqual([expect.stringMatching(line)])
    expect(code).toBe(1)
  })

  test.each([
    ['keepalives=0', /PDM_DATABASE_URL has the parameter keepalives/],
    ['pgbouncer=true', /PDM_DATABASE_URL has the parameter pgbouncer with/],
    ['work_mem=never', /PDM_DATABASE_URL has the parameter work_mem with/],
  ])('a parameter that nothing knows, %s: exit code 2, and the doctor names it too', async (parameter, text) => {
    const url = `${database.url}?${parameter}`
    const { lines, code } = await startInVain(url)
    expect(lines).toEqual([expect.stringMatching(text)])
    expect(code).toBe(2)
    const report = await run({ PDM_DATABASE_URL: url, PATH: '' })
    expect(report.text).toMatch(text)
  })

  test('an encoding that lacks characters: exit code 1, of the witness too', async () => {
    const name = `latin_${Date.now()}`
    await database.sql.unsafe(`create database ${name} encoding 'LATIN1' locale 'C' template template0`)
    const url = withUrl(database.url, { pathname: `/${name}` })
    const witness = runUntilExit({
      entry: toWitnessEntry(),
      env: { PORT: '0', WITNESS_DATABASE_URL: url, BEARER_TOKENS_CSV: 'token-of-the-witness' },
    })
    for (const { lines, code } of [await startInVain(url), await witness]) {
      expect(lines.at(-1)).toMatch(/the database has the encoding LATIN1.*encoding 'UTF8'/)
      expect(code).toBe(1)
    }
    expect((await run({ PDM_DATABASE_URL: url, PATH: '' })).text).toContain('the database has the encoding LATIN1')
    await database.sql.unsafe(`drop database ${name}`)
  })

  test('a role without privileges: exit code 1 and one line', async () => {
    const role = `poor_${Date.now()}`
    await database.sql.unsafe(`create role ${role} login password 'poor'; revoke create on schema public from public`)
    try {
      const { lines, code } = await startInVain(withUrl(database.url, { username: role, password: 'poor' }))
      expect(lines).toEqual([
        expect.stringMatching(/^start: the role lacks a privilege.*grant usage, create on schema/),
      ])
      expect(code).toBe(1)
    } finally {
      await database.sql.unsafe(`drop role ${role}`)
    }
  })

  test.skipIf(shouldSkip(missingPgbouncer))(
    'a pooler without prepared statements: exit code 1 and one line',
    async () => {
      const pgbouncer = await startPgbouncer(database.url, 8, { preparedStatements: false })
      try {
        const { lines, code } = await startInVain(pgbouncer.url)
        expect(lines).toEqual([
          expect.stringMatching(/^start: the connection pooler does not support prepared statements/),
        ])
        expect(code).toBe(1)
      } finally {
        await pgbouncer.stop()
      }
    },
  )
})

test.skipIf(shouldSkip(missingPgbouncer))(
  'target_session_attrs works behind a pooler, which does not report the state of its server',
  async () => {
    const database = await createTestDatabase({ schema: false, connections: 1 })
    const pgbouncer = await startPgbouncer(database.url)
    const url = `${pgbouncer.url}?prepare=false&target_session_attrs=primary`
    const sql = createDatabaseClient(url, { maxConnections: 2, applicationName: 'pooler' })
    try {
      const rows = await Promise.all([1, 2, 3].map(own => sql`select ${own}::int as own`))
      expect(rows.map(([row]) => row?.own)).toEqual([1, 2, 3])
    } finally {
      await sql.end({ timeout: 0 })
      await pgbouncer.stop()
      await database.drop()
    }
  },
)

describe('several hosts', async () => {
  const database = await useTestDatabase({ schema: false, connections: 1 })
  const withHosts = (hosts: string, parameters = '') => {
    const { username, password, pathname } = new URL(database.url)
    return `postgres://${username}:${password}@${hosts}${pathname}${parameters}`
  }

  test('a host that refuses connections is skipped, whichever place it has', async () => {
    const { port } = new URL(database.url)
    const closed = await freePort()
    for (const hosts of [`127.0.0.1:${port},127.0.0.1:${closed}`, `127.0.0.1:${closed},127.0.0.1:${port}`]) {
      const sql = createDatabaseClient(withHosts(hosts), { maxConnections: 5, applicationName: 'hosts' })
      const rows = await Promise.all(Array.from({ length: 20 }, (_, own) => sql`select ${own}::int as own`))
      expect(rows.map(([row]) => row?.own)).toEqual(Array.from({ length: 20 }, (_, own) => own))
      await sql.end({ timeout: 1 })
    }
  })

  test('a host that closes connections before the session is skipped', async () => {
    const { port } = new URL(database.url)
    const closing = createServer(socket => socket.once('data', () => socket.end()))
    await once(closing.listen(0, '127.0.0.1'), 'listening')
    const hosts = `127.0.0.1:${(closing.address() as AddressInfo).port},127.0.0.1:${port}`
    const sql = createDatabaseClient(withHosts(hosts), { maxConnections: 1, applicationName: 'hosts' })
    expect(await sql`select 1 as one`).toEqual([{ one: 1 }])
    await sql.end({ timeout: 1 })
    closing.close()
  })

  test('a setting that no server knows is left out, as with a single host, whatever the others do', async () => {
    const port = Number(new URL(database.url).port)
    const wanted = {
      client_encoding: { value: 'UTF8' },
      'pool.no': { value: '1' },
      no_such: { value: '1', since: 17 },
    } as const
    const options = { applicationName: 'hosts', timeoutMs: 10_000 }
    const closed = await freePort()
    for (const [first, second] of [
      [port, port],
      [closed, port],
      [port, closed],
    ]) {
      const url = withHosts(`127.0.0.1:${first},localhost:${second}`)
      const applied = await applySessionSettings(url, wanted, options)
      expect(Object.keys(applied.parameters)).toEqual(['client_encoding', 'pool.no'])
    }
  })

  test('if every host refuses, statements fail quickly, and the pool recovers', async () => {
    const [first, second] = [await freePort(), await freePort()]
    const sql = createDatabaseClient(withHosts(`127.0.0.1:${first},127.0.0.1:${second}`), {
      maxConnections: 1,
      applicationName: 'hosts',
    })
    await expect(sql`select 1`).rejects.toMatchObject({ code: 'ECONNREFUSED' })
    await sql.end({ timeout: 0 })
  })
})

describe('a server that vanishes without closing its connections', () => {
  const IDLE = 4
  const POOL = { applicationName: 'vanished', pipelines: false }

  /** Two pools with the same sessions: one with idle connections only, and one that finds the server silent. */
  const setUp = async (cleanup: AsyncDisposableStack) => {
    const database = await createTestDatabase({ schema: false, connections: 1 })
    cleanup.defer(() => database.drop())
    const link = await startTcpProxy(Number(new URL(database.url).port))
    cleanup.defer(() => link.close())
    const url = withUrl(database.url, { port: String(link.port) })
    const sessions = createSessions()
    const idle = createDatabaseClient(url, { ...POOL, maxConnections: IDLE, maxStatementMs: 60_000, sessions })
    cleanup.defer(() => idle.end({ timeout: 0 }))
    const active = createDatabaseClient(url, { ...POOL, maxConnections: 1, maxStatementMs: 100, sessions })
    cleanup.defer(() => active.end({ timeout: 0 }))
    const useAll = () => Promise.all(Array.from({ length: IDLE }, (_, own) => idle`select ${own}::int, pg_sleep(0.05)`))
    await useAll()
    await active`select 1`
    return { link, idle, active, useAll }
  }

  test('the first statement without an answer closes the idle connections of all pools', async () => {
    await using cleanup = new AsyncDisposableStack()
    const { link, active, useAll } = await setUp(cleanup)
    await link.abandon()
    await expect(active`select 1`).rejects.toMatchObject({ code: 'ETIMEDOUT' })
    expect(await useAll()).toHaveLength(IDLE)
  })

  test('a connection that waits for its answer, or has received data since, stays open', async () => {
    await using cleanup = new AsyncDisposableStack()
    const { idle, active } = await setUp(cleanup)
    const readPids = async () => {
      const rows = await Promise.all(
        Array.from({ length: IDLE }, () => idle<{ pid: number }[]>`select pg_backend_pid() as pid, pg_sleep(0.5)`),
      )
      return rows.map(([row]) => row?.pid).sort()
    }
    const before = await readPids()
    const [during] = await Promise.all([
      readPids(),
      expect(active`select pg_sleep(10)`).rejects.toMatchObject({ code: 'ETIMEDOUT' }),
    ])
    expect(during).toEqual(before)
    expect(await readPids()).toEqual(before)
  })
})
