import { readdirSync, statSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { until } from '@pool/test-kit/poll.ts'
import postgres from 'postgres'
import { expect, test } from 'vitest'
import { freePort } from '../src/ports.ts'
import { tempFolder } from './fixtures/command.ts'
import { query, start } from './fixtures/server.ts'
import { folderWithCluster } from './fixtures/template-cluster.ts'

test('data and password survive a restart', async () => {
  const dataDir = join(tempFolder(), 'deep', 'postgres')
  const first = await start(dataDir)
  await query(first.url, 'create table data as select 42 as answer')
  await first.stop()
  expect(await first.exited).toEqual({ code: 0, signal: null })

  const second = await start(dataDir)
  expect(await query(second.url, 'select answer from data')).toBe(42)
  expect(new URL(second.url).password).toBe(new URL(first.url).password)
  await second.stop()
  await second.stop()
  expect(readdirSync(dataDir).sort()).toEqual(['cluster', 'password', 'postgres.log'])
  expect(statSync(join(dataDir, 'password')).mode & 0o777).toBe(0o600)
})

test('uses UTF-8 and locale C, listens on loopback only, and requires the password', async () => {
  const { url } = await start(tempFolder())
  const select = 'select format($$%s %s %s %s$$, pg_encoding_to_char(encoding), datcollate, '
  const from =
    "current_setting('listen_addresses'), current_setting('unix_socket_directories')) from pg_database limit 1"
  expect(await query(url, select + from)).toBe('UTF8 C 127.0.0.1 ')
  const wrong = new URL(url)
  wrong.password = 'wrong'
  await expect(query(wrong.href, 'select 1')).rejects.toThrow('password authentication failed')
})

test('recovers committed data after a kill with a busy connection', async () => {
  const dataDir = folderWithCluster()
  const first = await start(dataDir)
  await query(first.url, 'create table data as select 7 as answer')
  const sql = postgres(first.url, { max: 1, onnotice: () => {} })
  const busy = sql`select count(*) from generate_series(1, 1000000000)`.catch((error: unknown) => error)
  const running =
    "select count(*)::int from pg_stat_activity where query like '%generate_series%' and pid <> pg_backend_pid()"
  await until('the query runs', async () => (await query(first.url, running)) === 1)
  process.kill(first.pid, 'SIGKILL')
  expect((await first.exited).signal).toBe('SIGKILL')

  const second = await start(dataDir)
  expect(await query(second.url, 'select answer from data')).toBe(7)
  await busy
  await sql.end({ timeout: 1 })
})

test('stops while frozen, and an immediate stop overrides a fast one', async () => {
  const server = await start(folderWithCluster())
  process.kill(server.pid, 'SIGSTOP')
  await Promise.all([server.stop('fast'), server.stop('immediate')])
  expect(await server.exited).toMatchObject({ signal: null })
})

test('uses the given port, and reports a port in use', async () => {
  const dataDir = folderWithCluster()
  const port = await freePort()
  const server = await start(dataDir, { port })
  expect([server.port, new URL(server.url).port]).toEqual([port, String(port)])
  await server.stop()

  const other = createServer()
  await new Promise<void>(resolve => other.listen(port, '127.0.0.1', resolve))
  await expect(start(dataDir, { port })).rejects.toThrow(`port ${port} is already in use`)
  other.close()
})
