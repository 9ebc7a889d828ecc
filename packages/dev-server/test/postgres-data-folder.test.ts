import { execFile, spawn } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import postgres from 'postgres'
import { expect, test } from 'vitest'
import { isAlive, until } from '../src/poll.ts'
import { readPidFile } from '../src/postgres/stale-server.ts'
import { query, start } from './fixtures/server.ts'
import { tempFolder } from './fixtures/temp-folder.ts'

const oneRound = join(import.meta.dirname, 'fixtures/one-round.ts')

test('an interrupted initdb does not break the next start', async () => {
  const dataDir = tempFolder()
  const child = execFile(process.execPath, [oneRound, dataDir])
  const halfMade = () => readdirSync(dataDir).find(name => name.startsWith('cluster.new-'))
  const isUnderWay = () => readdirSync(join(dataDir, halfMade() ?? '.')).includes('PG_VERSION')
  expect(await until(isUnderWay, { everyMs: 5, withinMs: 20_000 })).toBe(true)
  child.kill('SIGKILL')

  const server = await start(dataDir)
  expect(await query(server.url, 'select 1')).toBe(1)
  await server.stop()
  const again = await start(dataDir)
  expect(halfMade()).toBeUndefined()
  await again.stop()
})

/** A server whose starter is dead, and a client that it still has. */
async function leaveBehind(dataDir: string) {
  const child = spawn(process.execPath, [oneRound, dataDir, 'die'])
  const url = await new Promise<string>(resolve => child.stdout.once('data', text => resolve(JSON.parse(text).url)))
  const sql = postgres(url, { max: 1, onnotice: () => {} })
  const [session] = await sql`create table kept as select 1`.then(() => sql`select pg_backend_pid() as pid`)
  const { pid } = (await readPidFile(join(dataDir, 'cluster'))) ?? { pid: 0 }
  child.stdin.end()
  await new Promise(resolve => child.on('exit', resolve))
  return { url, pid, sql, session: session?.pid }
}

test('a server that a killed start left behind is stopped first', async () => {
  const dataDir = tempFolder()
  const leftover = await leaveBehind(dataDir)
  expect(await leftover.sql`select pg_backend_pid() as pid`).toEqual([{ pid: leftover.session }])

  const server = await start(dataDir)
  expect(server.pid).not.toBe(leftover.pid)
  expect(await query(server.url, 'select count(*)::int from kept')).toBe(1)
  await expect(query(leftover.url, 'select 1')).rejects.toThrow('ECONNREFUSED')
  await leftover.sql.end({ timeout: 1 })
})

test('a server that is left behind serves the clients that it has, and then stops by itself', async () => {
  const leftover = await leaveBehind(tempFolder())
  const refused = () =>
    query(leftover.url, 'select 1').then(
      () => false,
      error => /shutting down/.test(error.message),
    )
  expect(await until(refused, { everyMs: 10, withinMs: 10_000 })).toBe(true)
  expect(await leftover.sql`select pg_backend_pid() as pid`).toEqual([{ pid: leftover.session }])
  await leftover.sql.end()
  expect(await until(() => !isAlive(leftover.pid), { everyMs: 10, withinMs: 10_000 })).toBe(true)
})

test("a dead server's number that another process has now is not mistaken for it", async () => {
  const dataDir = tempFolder()
  const first = await start(dataDir)
  process.kill(first.pid, 'SIGKILL')
  await first.exited
  const pidFile = join(dataDir, 'cluster', 'postmaster.pid')
  const { uid, gid } = statSync(join(dataDir, 'cluster'))
  const bystander = execFile('sleep', ['60'], { uid, gid })
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
    /was made by Postgres 12, and this is Postgres \d+: move the folder away/,
  ],
  ['something else', 'README', 'hello', /is no Postgres cluster/],
])('a folder of %s is refused in one line, and left as it is', async (_name, file, text, message) => {
  const dataDir = tempFolder()
  const cluster = join(dataDir, 'cluster')
  // As left by an ordinary account; root's own would be refused before.
  const { uid, gid } = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : statSync(dataDir)
  mkdirSync(cluster)
  writeFileSync(join(cluster, file), text)
  await promisify(execFile)('chown', ['-R', `${uid}:${gid}`, cluster])
  const failed = await start(dataDir).catch(error => error)
  expect(failed.message).toMatch(message)
  expect(failed.message).not.toContain('\n')
  expect(readdirSync(cluster)).toEqual([file])
})

test('a cluster without its password is refused in one line', async () => {
  const dataDir = tempFolder()
  await (await start(dataDir)).stop()
  rmSync(join(dataDir, 'password'))
  await expect(start(dataDir)).rejects.toThrow(/password is missing/)
})
