import { readFileSync, statSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { readSignInCode } from '@pool/runtime/service/sign-in-code'
import { until } from '@pool/test-kit/poll.ts'
import { expect, test } from 'vitest'
import { isAlive } from '../src/poll.ts'
import { isPortInUse } from '../src/ports.ts'
import { readPidFile } from '../src/postgres/stale-server.ts'
import { DUPLICATE_SIGNAL_MS } from '../src/signals.ts'
import { apiLog, freePorts, startFake, tempFolder, witnessLog } from './fixtures/command.ts'
import { query } from './fixtures/server.ts'
import { folderWithCluster } from './fixtures/template-cluster.ts'

const RUNNING = 'Ctrl-C shuts everything down'

function loggedEnvironment(dataDir: string, log = apiLog): Record<string, string> {
  const lines = log(dataDir).trim().split('\n')
  return JSON.parse(lines.find(line => line.includes('"environment"')) ?? '{}').env
}

const postgresPid = async (dataDir: string) => (await readPidFile(join(dataDir, 'postgres', 'cluster')))?.pid ?? 0

test('starts, prints its addresses, shuts down gracefully, and restarts with the same data', async () => {
  const dataDir = join(tempFolder(), 'data')
  const ports = await freePorts()
  const first = startFake(dataDir, { ...ports, PDM_RESERVATION_TTL: '3m', DRAIN_MS: '300' })
  expect(await first.waitForOutput(RUNNING), first.output()).toBe(true)
  for (const text of [...Object.values(ports), 'operator-token', 'allocation-api.log', 'postgres.log', dataDir]) {
    expect(first.output()).toContain(text)
  }
  const env = loggedEnvironment(dataDir)
  expect(env).toMatchObject({
    PORT: ports.PORT,
    PDM_OPERATOR_PORT: ports.PDM_OPERATOR_PORT,
    PDM_LISTEN_ADDRESS: '127.0.0.1',
    PDM_LOOPBACK_HOSTS_ONLY: 'true',
    DNSPROVIDER_KIND: 'local',
    DNSPROVIDER_LOCAL_PORT: ports.DNS_PORT,
    PDM_RESERVATION_TTL: '3m',
    PDM_DEPLOYMENTS_DIR: join(dataDir, 'deployments'),
  })
  const token = readFileSync(join(dataDir, 'operator-token'), 'utf8').trim()
  expect(env.PDM_OPERATOR_TOKENS).toBe(token)
  expect(statSync(join(dataDir, 'operator-token')).mode & 0o777).toBe(0o600)
  // The console gets a code for one use, in a part of the URL that a browser sends to no server.
  const [, code = ''] = /\/console#code=(\S+) /.exec(first.output()) ?? []
  expect(readSignInCode(code, [token])?.token).toBe(token)
  const witnessEnv = loggedEnvironment(dataDir, witnessLog)
  expect(witnessEnv).toMatchObject({ PORT: ports.WITNESS_PORT, DATA_DIR: dataDir, LOOPBACK_HOSTS_ONLY: 'true' })
  const witnessToken = readFileSync(join(dataDir, 'witness-token'), 'utf8').trim()
  expect(statSync(join(dataDir, 'witness-token')).mode & 0o777).toBe(0o600)
  expect(witnessEnv.BEARER_TOKENS_CSV).toBe(witnessToken)
  // Nothing that is printed is a lasting credential.
  const password = new URL(env.PDM_DATABASE_URL ?? '').password
  for (const secret of [token, witnessToken, password]) expect(first.output()).not.toContain(secret)
  expect(env).toMatchObject({
    PDM_WITNESS_URL: `http://127.0.0.1:${ports.WITNESS_PORT}`,
    // The API shows the leases in the console.
    PDM_WITNESS_TOKEN: witnessToken,
  })
  expect(env).not.toHaveProperty('BEARER_TOKENS_CSV')
  expect(Object.keys(witnessEnv).filter(name => name.startsWith('PDM_'))).toEqual([])
  await query(env.PDM_DATABASE_URL ?? '', 'create table data as select 5 as answer')
  const pid = await postgresPid(dataDir)

  first.child.kill('SIGINT')
  first.child.kill('SIGINT') // a package manager forwards the signal that the terminal has already sent
  expect(await first.exitCode).toBe(0)
  expect(apiLog(dataDir)).toContain('"drained"')
  expect(isAlive(pid)).toBe(false)

  const witnessSettings = {
    BEARER_TOKENS_CSV: 'ours,theirs',
    TOKEN_POLICIES: '[]',
    MAX_REQUESTS_PER_MINUTE: '600',
    MAX_WAIT_SECONDS: '60',
  }
  const explicit = {
    PDM_OPERATOR_TOKENS: 'mine,yours',
    ...witnessSettings,
    PDM_DEPLOYMENTS_DIR: '/elsewhere',
    PDM_LISTEN_ADDRESS: '0.0.0.0',
    PDM_LOOPBACK_HOSTS_ONLY: 'false',
  }
  const second = startFake(dataDir, { ...ports, ...explicit })
  expect(await second.waitForOutput(RUNNING), second.output()).toBe(true)
  const url = new URL(env.PDM_DATABASE_URL ?? '')
  url.port = /Postgres +127\.0\.0\.1:(\d+)/.exec(second.output())?.[1] ?? ''
  expect(await query(url.href, 'select answer from data')).toBe(5)
  expect(second.output()).toContain('a token from PDM_OPERATOR_TOKENS')
  expect(second.output()).toContain('a token from BEARER_TOKENS_CSV')
  const secondEnvironment = (log: typeof apiLog) =>
    loggedEnvironment(dataDir, () => log(dataDir).split('"drained"')[1] ?? '')
  expect(secondEnvironment(witnessLog)).toMatchObject(witnessSettings)
  expect(secondEnvironment(apiLog)).toMatchObject({
    PDM_DEPLOYMENTS_DIR: '/elsewhere',
    PDM_LISTEN_ADDRESS: '0.0.0.0',
    PDM_LOOPBACK_HOSTS_ONLY: 'false',
  })
})

test('lists every port in use with its variable, and starts nothing', async () => {
  const dataDir = tempFolder()
  const ports = await freePorts()
  const others = [ports.PORT, ports.DNS_PORT].map(port => createServer().listen(Number(port), '127.0.0.1'))
  const start = startFake(dataDir, ports)
  expect(await start.exitCode).toBe(1)
  expect(start.output()).toBe(
    `port ${ports.PORT} is already in use; stop that process or set PORT\n` +
      `port ${ports.DNS_PORT} is already in use; stop that process or set DNS_PORT\n`,
  )
  expect(await postgresPid(dataDir)).toBe(0)
  for (const other of others) other.close()
})

test('prints warnings about variables, its own and those of the services', async () => {
  const misspelt = { TOKEN_POLICY: '[]', WITNES_PORT: '9', PDM_LOG_LEVLE: 'info' }
  const start = startFake(folderWithCluster('postgres'), { ...(await freePorts()), ...misspelt })
  expect(await start.waitForOutput('Warning: PDM_LOG_LEVLE is unknown'), start.output()).toBe(true)
  expect(start.output()).toMatch(/Warning: TOKEN_POLICY is not .* did you mean TOKEN_POLICIES\?\n/)
  expect(start.output()).toMatch(/Warning: WITNES_PORT is not .* did you mean WITNESS_PORT\?\n/)
})

test('a second start on the same data directory fails and does not affect the first', async () => {
  const dataDir = folderWithCluster('postgres')
  const first = startFake(dataDir, await freePorts())
  expect(await first.waitForOutput(RUNNING), first.output()).toBe(true)
  const second = startFake(dataDir, await freePorts())
  expect(await second.exitCode).toBe(1)
  expect(second.output()).toMatch(
    /^the data directory is in use by another start \(process \d+\): stop it, or set DATA_DIR\n$/,
  )
  expect(await query(loggedEnvironment(dataDir).PDM_DATABASE_URL ?? '', 'select 1')).toBe(1)
})

test('after a SIGKILL the API exits, and the next start replaces the stale Postgres', async () => {
  const dataDir = folderWithCluster('postgres')
  const ports = await freePorts()
  const first = startFake(dataDir, { ...ports, DRAIN_MS: '500' })
  expect(await first.waitForOutput(RUNNING), first.output()).toBe(true)
  const stalePid = await postgresPid(dataDir)
  first.child.kill('SIGKILL')
  const second = startFake(dataDir, ports)
  expect(await second.waitForOutput(RUNNING), second.output()).toBe(true)
  expect(await postgresPid(dataDir)).not.toBe(stalePid)
  expect(await query(loggedEnvironment(dataDir).PDM_DATABASE_URL ?? '', 'select 1').catch(String)).toContain(
    'ECONNREFUSED',
  )
})

test('reports an API that exits unexpectedly, and stops everything', async () => {
  const dataDir = folderWithCluster('postgres')
  const start = startFake(dataDir, { ...(await freePorts()), END_WITH: '2' })
  expect(await start.exitCode).toBe(1)
  expect(start.output()).toMatch(/^API exited unexpectedly \(exit code 2\); last lines of .*allocation-api\.log:\n/)
  expect(start.output()).toContain('fixture exits as END_WITH requests')
  expect(await postgresPid(dataDir)).toBe(0)
})

test('names the folder to move away in one line if the API cannot run on the database', async () => {
  const dataDir = folderWithCluster('postgres')
  const LAST_LINE = 'schema: the database has tables without a version; use an empty database'
  const start = startFake(dataDir, { ...(await freePorts()), END_WITH: '2', LAST_LINE })
  expect(await start.exitCode).toBe(1)
  expect(start.output()).toBe(
    `the database has tables without a version; use an empty database; \`start\` creates one if you move ${dataDir}/postgres away\n`,
  )
})

test('reports a Postgres that exits unexpectedly; the API drains', async () => {
  const dataDir = folderWithCluster('postgres')
  const start = startFake(dataDir, await freePorts())
  expect(await start.waitForOutput(RUNNING), start.output()).toBe(true)
  process.kill(await postgresPid(dataDir), 'SIGKILL')
  expect(await start.exitCode).toBe(1)
  expect(start.output()).toMatch(/Postgres exited unexpectedly \(SIGKILL\); last lines of .*postgres\.log:\n/)
  expect(apiLog(dataDir)).toContain('"drained"')
})

test('a second Ctrl-C does not wait for the API', async () => {
  const dataDir = folderWithCluster('postgres')
  const ports = await freePorts()
  // A log level can suppress the ready line; then start relies on the HTTP probe.
  const start = startFake(dataDir, { ...ports, DRAIN_MS: '60000', QUIET: 'true' })
  expect(await start.waitForOutput(RUNNING), start.output()).toBe(true)
  start.child.kill('SIGINT')
  await until('the API drains', () => apiLog(dataDir).includes('"draining"'))
  // A signal soon after the first one is taken for its duplicate. A third one could end the process as it exits.
  await sleep(DUPLICATE_SIGNAL_MS + 100)
  start.child.kill('SIGINT')
  expect(await start.exitCode).toBe(130)
  expect(apiLog(dataDir)).not.toContain('"drained"')
  expect(await isPortInUse(Number(ports.PORT))).toBe(false)
  expect(await postgresPid(dataDir)).toBe(0)
})
