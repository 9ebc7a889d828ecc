import { readFileSync, statSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { isAlive, until } from '../src/poll.ts'
import { isPortTaken } from '../src/ports.ts'
import { readPidFile } from '../src/postgres/stale-server.ts'
import { apiLog, somePorts, startFake, witnessLog } from './fixtures/command.ts'
import { query } from './fixtures/server.ts'
import { tempFolder } from './fixtures/temp-folder.ts'

const RUNNING = 'Ctrl-C stops everything'

function environmentOf(dataDir: string, log = apiLog): Record<string, string> {
  const lines = log(dataDir).trim().split('\n')
  return JSON.parse(lines.find(line => line.includes('"environment"')) ?? '{}').env
}

const postgresPid = async (dataDir: string) => (await readPidFile(join(dataDir, 'postgres', 'cluster')))?.pid ?? 0

test('starts, says where all is, stops in order, and starts again with the same data', async () => {
  const dataDir = join(tempFolder(), 'data')
  const ports = await somePorts()
  const first = startFake(dataDir, { ...ports, PDM_RESERVATION_TTL: '3m', DRAIN_MS: '300' })
  expect(await first.said(RUNNING), first.output()).toBe(true)
  for (const text of [...Object.values(ports), 'operator-token', 'allocation-api.log', 'postgres.log', dataDir]) {
    expect(first.output()).toContain(text)
  }
  const env = environmentOf(dataDir)
  expect(env).toMatchObject({
    PORT: ports.PORT,
    PDM_OPERATOR_PORT: ports.PDM_OPERATOR_PORT,
    DNSPROVIDER_KIND: 'local',
    DNSPROVIDER_LOCAL_PORT: ports.DNS_PORT,
    PDM_RESERVATION_TTL: '3m',
    PDM_DEPLOYMENTS_DIR: join(dataDir, 'deployments'),
  })
  const token = readFileSync(join(dataDir, 'operator-token'), 'utf8').trim()
  expect(env.PDM_OPERATOR_TOKENS).toBe(token)
  expect(statSync(join(dataDir, 'operator-token')).mode & 0o777).toBe(0o600)
  expect(first.output()).not.toContain(token)
  const witnessEnv = environmentOf(dataDir, witnessLog)
  expect(witnessEnv).toMatchObject({ PORT: ports.WITNESS_PORT, DATA_DIR: dataDir })
  // The witness's token is printed, for there is nobody else to give it out; and it is a service's own.
  const witnessToken = readFileSync(join(dataDir, 'witness-token'), 'utf8').trim()
  expect(statSync(join(dataDir, 'witness-token')).mode & 0o777).toBe(0o600)
  expect(witnessEnv.BEARER_TOKENS_CSV).toBe(witnessToken)
  expect(first.output()).toContain(witnessToken)
  expect(env).not.toHaveProperty('BEARER_TOKENS_CSV')
  expect(Object.keys(witnessEnv).filter(name => name.startsWith('PDM_'))).toEqual([])
  await query(env.PDM_DATABASE_URL ?? '', 'create table kept as select 5 as answer')
  const pid = await postgresPid(dataDir)

  first.child.kill('SIGINT')
  first.child.kill('SIGINT') // as a package manager passes on what the terminal sent already
  expect(await first.exitCode).toBe(0)
  expect(apiLog(dataDir)).toContain('"drained"')
  expect(isAlive(pid)).toBe(false)

  const own = { PDM_OPERATOR_TOKENS: 'mine,yours', BEARER_TOKENS_CSV: 'ours,theirs', PDM_DEPLOYMENTS_DIR: '/elsewhere' }
  const second = startFake(dataDir, { ...ports, ...own })
  expect(await second.said(RUNNING), second.output()).toBe(true)
  const url = new URL(env.PDM_DATABASE_URL ?? '')
  url.port = /Postgres +127\.0\.0\.1:(\d+)/.exec(second.output())?.[1] ?? ''
  expect(await query(url.href, 'select answer from kept')).toBe(5)
  expect(second.output()).toContain('a token of your PDM_OPERATOR_TOKENS')
  expect(second.output()).toContain('a token of your BEARER_TOKENS_CSV')
  const ofTheSecond = (log: typeof apiLog) => environmentOf(dataDir, () => log(dataDir).split('"drained"')[1] ?? '')
  expect(ofTheSecond(witnessLog).BEARER_TOKENS_CSV).toBe('ours,theirs')
  expect(ofTheSecond(apiLog).PDM_DEPLOYMENTS_DIR).toBe('/elsewhere')
}, 60_000)

test('names every taken port and its variable, and starts nothing', async () => {
  const dataDir = tempFolder()
  const ports = await somePorts()
  const others = [ports.PORT, ports.DNS_PORT].map(port => createServer().listen(Number(port), '127.0.0.1'))
  const start = startFake(dataDir, ports)
  expect(await start.exitCode).toBe(1)
  expect(start.output()).toBe(
    `port ${ports.PORT} is taken by another process: stop it, or choose another with PORT=…\n` +
      `port ${ports.DNS_PORT} is taken by another process: stop it, or choose another with DNS_PORT=…\n`,
  )
  expect(await postgresPid(dataDir)).toBe(0)
  for (const other of others) other.close()
})

test('a second start on the same data says so, and leaves the first alone', async () => {
  const dataDir = tempFolder()
  const first = startFake(dataDir, await somePorts())
  expect(await first.said(RUNNING), first.output()).toBe(true)
  const second = startFake(dataDir, await somePorts())
  expect(await second.exitCode).toBe(1)
  expect(second.output()).toMatch(/^another start \(process \d+\) is using this data folder: .*DATA_DIR=….*\n$/)
  expect(await query(environmentOf(dataDir).PDM_DATABASE_URL ?? '', 'select 1')).toBe(1)
}, 60_000)

test('after a SIGKILL the API ends by itself, and the next start takes everything over', async () => {
  const dataDir = tempFolder()
  const ports = await somePorts()
  const first = startFake(dataDir, { ...ports, DRAIN_MS: '500' })
  expect(await first.said(RUNNING), first.output()).toBe(true)
  const leftover = await postgresPid(dataDir)
  first.child.kill('SIGKILL')
  const second = startFake(dataDir, ports)
  expect(await second.said(RUNNING), second.output()).toBe(true)
  expect(await postgresPid(dataDir)).not.toBe(leftover)
  expect(await query(environmentOf(dataDir).PDM_DATABASE_URL ?? '', 'select 1').catch(String)).toContain('ECONNREFUSED')
}, 60_000)

test('an API that ends by itself, and why, is told; nothing is left', async () => {
  const dataDir = tempFolder()
  const start = startFake(dataDir, { ...(await somePorts()), END_WITH: '2' })
  expect(await start.exitCode).toBe(1)
  expect(start.output()).toMatch(/^API ended by itself \(exit code 2\); the last lines of .*allocation-api\.log:\n/)
  expect(start.output()).toContain('cannot go on')
  expect(await postgresPid(dataDir)).toBe(0)
}, 60_000)

test('a Postgres that ends by itself is told; the API drains', async () => {
  const dataDir = tempFolder()
  const start = startFake(dataDir, await somePorts())
  expect(await start.said(RUNNING), start.output()).toBe(true)
  process.kill(await postgresPid(dataDir), 'SIGKILL')
  expect(await start.exitCode).toBe(1)
  expect(start.output()).toMatch(/Postgres ended by itself \(SIGKILL\); the last lines of .*postgres\.log:\n/)
  expect(apiLog(dataDir)).toContain('"drained"')
}, 60_000)

test('a second Ctrl-C does not wait for the API', async () => {
  const dataDir = tempFolder()
  const ports = await somePorts()
  // A log level may hide the ready line; the start is told over HTTP then.
  const start = startFake(dataDir, { ...ports, DRAIN_MS: '60000', QUIET: 'true' })
  expect(await start.said(RUNNING), start.output()).toBe(true)
  start.child.kill('SIGINT')
  await until(() => apiLog(dataDir).includes('"draining"'), { everyMs: 10, withinMs: 5_000 })
  const interval = setInterval(() => start.child.kill('SIGINT'), 300)
  expect(await start.exitCode).toBe(130)
  clearInterval(interval)
  expect(apiLog(dataDir)).not.toContain('"drained"')
  expect(await isPortTaken(Number(ports.PORT))).toBe(false)
  expect(await postgresPid(dataDir)).toBe(0)
}, 60_000)
