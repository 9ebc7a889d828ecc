import { execFile, spawn } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { until } from '@pool/test-kit/poll.ts'
import postgres from 'postgres'
import { expect, test } from 'vitest'
import { isAlive } from '../src/poll.ts'
import { readPidFile } from '../src/postgres/stale-server.ts'
import { tempFolder } from './fixtures/command.ts'
import { query, start } from './fixtures/server.ts'
import { folderWithCluster } from './fixtures/template-cluster.ts'

const startPostgresEntry = join(import.meta.dirname, 'fixtures/start-postgres.ts')

test('an interrupted initdb does not break the next start', async () => {
  const dataDir = tempFolder()
  const child = execFile(process.execPath, [startPostgresEntry, dataDir])
  const incomplete = () => readdirSync(dataDir).find(name => name.startsWith('cluster.new-'))
  const isRunning = () => readdirSync(join(dataDir, incomplete() ?? '.')).includes('PG_VERSION')
  await until('the server runs', isRunning)
  child.kill('SIGKILL')

  const server = await start(dataDir)
  expect(await query(server.url, 'select 1')).toBe(1)
  await server.stop()
  const again = await start(dataDir)
  expect(incomplete()).toBeUndefined()
  await again.stop()
})

/** Starts a server, kills the process that started it, and keeps a client connected. */
async function createStaleServer(dataDir: string) {
  const child = spawn(process.execPath, [startPostgresEntry, dataDir, 'die'])
  let errors = ''
  child.stderr.setEncoding('utf8').on('data', text => {
    errors += text
  })
  const url = await new Promise<string>((resolve, reject) => {
    child.stdout.once('data', text => resolve(JSON.parse(text).url))
    child.once('close', () => reject(new Error(`no server was started:\n${errors}`)))
  })
  const sql = postgres(url, { max: 1, onnotice: () => {} })
  const [session] = await sql`create table data as select 1`.then(() => sql`select pg_backend_pid() as pid`)
  const { pid } = (await readPidFile(join(dataDir, 'cluster'))) ?? { pid: 0 }
  child.stdin.end()
  await new Promise(resolve => child.on('exit', resolve))
  return { url, pid, sql, session: session?.pid }
}

test('stops a stale server before it starts a new one', async () => {
  const dataDir = folderWithCluster()
  const stale = await createStaleServer(dataDir)
  expect(await stale.sql`select pg_backend_pid() as pid`).toEqual([{ pid: stale.session }])

  const server = await start(dataDir)
  expect(server.pid).not.toBe(stale.pid)
  expect(await query(server.url, 'select count(*)::int from data')).toBe(1)
  await expect(query(stale.url, 'select 1')).rejects.toThrow('ECONNREFUSED')
  await stale.sql.end({ timeout: 1 })
})

test('a stale server serves its connected clients and then stops', async () => {
  const stale = await createStaleServer(folderWithCluster())
  const rejectsConnections = () =>
    query(stale.url, 'select 1').then(
      () => false,
      error => /shutting down/.test(error.message),
    )
  await until('the server rejects connections', rejectsConnections)
  expect(await stale.sql`select pg_backend_pid() as pid`).toEqual([{ pid: stale.session }])
  await stale.sql.end()
  await until('the stale server has exited', () => !isAlive(stale.pid))
})

test('a process that reuses the id of a dead server is not stopped', async () => {
  const dataDir = folderWithCluster()
  const first = await start(dataDir)
  process.kill(first.pid, 'SIGKILL')
  await first.exited
  const pidFile = join(dataDir, 'cluster', 'postmaster.pid')
  const { uid, gid } = statSync(join(dataDir, 'cluster'))
  const bystander = execFile('sleep', ['600'], { uid, gid })
  writeFileSync(pidFile, readFileSync(pidFile, 'utf8').replace(/^\d+/, String(bystander.pid)))

  const second = await start(dataDir)
  expect(await query(second.url, 'select 1')).toBe(1)
  expect(isAlive(bystander.pid ?? 0)).toBe(true)
  bystander.kill()
})

test.each([
  [
    'another major version',
    'PG_VERSION',
    '12\n',
    /was created by Postgres 12; this version is Postgres \d+: move the directory away/,
  ],
  ['something else', 'README', 'hello', /is not a Postgres cluster/],
])('a directory of %s is rejected with one line and not changed', async (_name, file, text, message) => {
  const dataDir = tempFolder()
  const cluster = join(dataDir, 'cluster')
  // Owned by an unprivileged user; a cluster of root would be rejected earlier.
  const { uid, gid } = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : statSync(dataDir)
  mkdirSync(cluster)
  writeFileSync(join(cluster, file), text)
  await promisify(execFile)('chown', ['-R', `${uid}:${gid}`, cluster])
  const failed = await start(dataDir).catch(error => error)
  expect(failed.message).toMatch(message)
  expect(failed.message).not.toContain('\n')
  expect(readdirSync(cluster)).toEqual([file])
})

test('a cluster without its password is rejected with one line', async () => {
  const dataDir = folderWithCluster()
  rmSync(join(dataDir, 'password'))
  await expect(start(dataDir)).rejects.toThrow(/password is missing/)
})
