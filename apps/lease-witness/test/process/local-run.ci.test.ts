import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, statSync } from 'node:fs'
import { createServer, type Server } from 'node:net'
import { join, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { listenOnLoopback } from '@pool/dev/ports'
import { TOKEN } from '@pool/test-kit/lease-connection.ts'
import { until } from '@pool/test-kit/poll.ts'
import { findWorkerd, hasProc, listChildren, WITHOUT_PROC, waitForExit } from '@pool/test-kit/processes.ts'
import { proofSize } from '@pool/test-kit/proof-size.ts'
import { startLocalWitness } from '@pool/test-kit/services.ts'
import { describe, expect, test } from 'vitest'
import { createClient, parseLease } from './support/client.ts'
import { closeWaiters, openWaiters, untilWaiting } from './support/waiter.ts'
import { failToStart, temporaryDirectory } from './support/witness.ts'

/** Far more than a busy machine needs. */
const TIMEOUT_MS = 60_000

// Each test has its own witness and directory, so all run concurrently.
test.concurrent('a lease survives a restart', async () => {
  using directory = temporaryDirectory()
  {
    await using witness = await startLocalWitness(directory.path)
    using client = createClient(witness.port)
    const response = await client.send('PUT', '/lease/a%2Fb', { 'If-Match': '0', 'X-Holder': 'region-a' })
    expect(parseLease(response)).toMatchObject({ holder: 'region-a', generation: 1 })
  }
  await using witness = await startLocalWitness(directory.path)
  using client = createClient(witness.port)
  expect(parseLease(await client.send('GET', '/lease/a/b'))).toMatchObject({ holder: 'region-a', generation: 1 })

  // The bundler's process has ended: only workerd and the watchdog remain.
  if (hasProc) expect(listChildren(witness.process.pid, '/esbuild')).toEqual([])
})

describe.runIf(hasProc).concurrent('shutdown', () => {
  // A terminal or a supervisor signals the whole process group.
  const signals = [
    ['SIGTERM', 'alone'],
    ['SIGINT', 'with workerd'],
    ['SIGHUP', 'alone'],
    ['SIGINT', 'alone'],
    ['SIGTERM', 'with workerd'],
  ] as const
  test.each(signals.slice(0, proofSize(signals.length, 2)))(
    '%s, %s, stops it cleanly with 100 waiters',
    async (signal, target) => {
      using directory = temporaryDirectory()
      const witness = await startLocalWitness(directory.path)
      using client = createClient(witness.port)
      const waiters = await openWaiters(witness.port, 'awaited', 100)
      const ended = Promise.allSettled(waiters.map(waiter => waiter.wait(0, 60)))
      await untilWaiting(client, 'awaited', waiters.length)
      const pid = findWorkerd(witness.process.pid) ?? 0
      if (target === 'with workerd') process.kill(pid, signal)
      const exit = await witness.process.stop(signal)
      expect(exit).toEqual({ code: 0, signal: null })
      await waitForExit(pid, TIMEOUT_MS)
      // workerd itself has no event for a signal, so a signal to it alone or first breaks the connections.
      if (target === 'alone') {
        for (const result of await ended) {
          if (result.status === 'rejected') throw result.reason
          const { response } = result.value
          expect([response.status, Number(response.headers.get('retry-after')) >= 1]).toEqual([503, true])
        }
      }
      expect(readdirSync(join(directory.path, 'lease-witness')).sort()).toEqual(['cache', 'do', 'kv'])
      closeWaiters(waiters)
    },
  )

  test('SIGKILL of its parent process stops it too', async () => {
    using directory = temporaryDirectory()
    const code = `
      import { startNode } from '@pool/dev/process'
      const env = { PORT: '0', BEARER_TOKENS_CSV: '${TOKEN}', DATA_DIR: ${JSON.stringify(directory.path)} }
      const witness = startNode({ entry: 'local/main.ts', env })
      await witness.ready
      console.log(witness.pid)
      setInterval(() => {}, 1_000)`
    const parent = spawn(process.execPath, ['--input-type=module-typescript', '-e', code], {
      cwd: resolve(import.meta.dirname, '../..'),
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const [line] = await once(createInterface(parent.stdout), 'line')
    const node = Number(line)
    const workerd = findWorkerd(node) ?? 0
    expect(workerd).toBeGreaterThan(0)
    parent.kill('SIGKILL')
    await waitForExit(node, TIMEOUT_MS)
    await waitForExit(workerd, TIMEOUT_MS)
    expect(readdirSync(join(directory.path, 'lease-witness'))).not.toContain('start.lock')
  })

  test('SIGKILL ends workerd too, also a restarted one, and the next start reuses the data', async ({ expect }) => {
    using directory = temporaryDirectory()
    const witness = await startLocalWitness(directory.path)
    const { pid } = witness.process
    const first = findWorkerd(pid) ?? 0
    process.kill(first, 'SIGKILL')
    await waitForExit(first, TIMEOUT_MS)
    using client = createClient(witness.port)
    await expect
      .poll(async () => (await client.send('GET', '/leases').catch(() => undefined))?.status, { timeout: TIMEOUT_MS })
      .toBe(200)
    await expect
      .poll(() => witness.lines.filter(line => line.includes('workerd-restarted')), { timeout: TIMEOUT_MS })
      .toHaveLength(1)
    const second = findWorkerd(pid) ?? 0
    await witness.process.kill()
    await waitForExit(second, TIMEOUT_MS)
    expect(readdirSync(join(directory.path, 'lease-witness'))).toContain('start.lock')
    await using next = await startLocalWitness(directory.path)
    expect(next.port).toBeGreaterThan(0)
  })
})

/** A process of several threads can have exited before its sockets are closed. */
const listenWhenFree = (port: number): Promise<Server> =>
  until(
    `port ${port} is free`,
    async () => {
      const server = createServer().listen(port, '127.0.0.1')
      return once(server, 'listening').then(
        () => server,
        () => undefined,
      )
    },
    TIMEOUT_MS,
  )

test.runIf(hasProc).concurrent('if workerd cannot be restarted, it exits with the reason in one line', async () => {
  using directory = temporaryDirectory()
  const witness = await startLocalWitness(directory.path)
  const { pid } = witness.process
  const workerd = findWorkerd(pid) ?? 0
  // So that it restarts workerd only when the port is taken.
  process.kill(pid, 'SIGSTOP')
  process.kill(workerd, 'SIGKILL')
  const server = await listenWhenFree(witness.port).finally(() => process.kill(pid, 'SIGCONT'))
  expect(await witness.process.exited).toEqual({ code: 1, signal: null })
  server.close()
  expect(witness.lines.at(-1)).toMatch(/^lease-witness: .*failed to restart/)
  expect(readdirSync(join(directory.path, 'lease-witness'))).not.toContain('start.lock')
})

if (!hasProc) test.skip(`shutdown: ${WITHOUT_PROC}`)

describe.concurrent('a failing start', () => {
  test('names every invalid variable in one line, and no token', async () => {
    const secret = 'a secret with spaces'
    const env = { PORT: '123456', LOG_LEVEL: 'loud', BEARER_TOKENS_CSV: `${TOKEN},${secret}` }
    const { code, lines } = await failToStart(env)
    expect(code).toBe(2)
    expect(lines).toHaveLength(1)
    for (const variable of Object.keys(env)) expect(lines[0]).toContain(variable)
    expect(lines[0]).not.toContain(secret)
    expect(lines[0]).not.toContain(TOKEN)
  })

  test('reports a port in use in one line', async () => {
    using directory = temporaryDirectory()
    const server = createServer()
    const port = await listenOnLoopback(server)
    const { code, lines } = await failToStart({ PORT: String(port), DATA_DIR: directory.path })
    server.close()
    expect({ code, lines }).toEqual({
      code: 1,
      lines: [`lease-witness: port ${port} is in use: stop the process on it, or set PORT to another port`],
    })
    expect(readdirSync(join(directory.path, 'lease-witness'))).not.toContain('start.lock')
  })

  test('fails on the data of a running witness: there is one authority', async () => {
    using directory = temporaryDirectory()
    // A relative DATA_DIR starts at the directory of the command.
    await using witness = await startLocalWitness('deep/data', { INIT_CWD: directory.path })
    for (const path of ['deep', 'deep/data', 'deep/data/lease-witness']) {
      expect(statSync(join(directory.path, path)).mode & 0o777, path).toBe(0o700)
    }
    const { code, lines } = await failToStart({ DATA_DIR: join(directory.path, 'deep/data') })
    expect(code).toBe(1)
    expect(lines).toEqual([
      expect.stringContaining(`the data directory is in use by another start (process ${witness.process.pid})`),
    ])
    using client = createClient(witness.port)
    expect((await client.send('GET', '/leases')).status).toBe(200)
  })

  test('reports an unusable directory in one line', async () => {
    const { code, lines } = await failToStart({ DATA_DIR: '/proc/self/status/data' })
    expect(code).toBe(1)
    expect(lines).toHaveLength(1)
    expect(lines[0]).toMatch(/^lease-witness: .*\/proc\/self\/status/)
  })
})

test.concurrent('without tokens all requests are rejected, and the log explains why', async () => {
  using directory = temporaryDirectory()
  await using witness = await startLocalWitness(directory.path, { BEARER_TOKENS_CSV: ' , ' })
  using client = createClient(witness.port)
  for (const Authorization of [`Bearer ${TOKEN}`, 'Bearer ', 'Bearer undefined', '']) {
    const { status, text } = await client.send('GET', '/leases', { Authorization })
    expect({ status, text }).toEqual({ status: 401, text: '{"error":"unauthorized"}' })
  }
  expect(witness.lines.map(line => JSON.parse(line).msg)).toEqual(['no-tokens', 'ready'])
})

const OTHER = 'token-of-region-b-0123456789abcdef'

/** The log lines of a few requests that contain tokens in the wrong places. */
const readLogAt = async (level: string): Promise<readonly Record<string, unknown>[]> => {
  using directory = temporaryDirectory()
  const env = { LOG_LEVEL: level, BEARER_TOKENS_CSV: `${TOKEN}, ${OTHER}` }
  const witness = await startLocalWitness(directory.path, env)
  using client = createClient(witness.port)
  const headers = { 'If-Match': '0', 'X-Holder': OTHER, 'X-Request-Id': TOKEN, 'X-Lease-Slot': OTHER }
  await client.send('PUT', `/lease/${TOKEN}`, headers)
  await client.send('GET', `/lease/${encodeURIComponent('zwei\nZeilen ü')}`, { 'X-Request-Id': 'second' })
  await client.send('GET', '/leases', { Authorization: `Bearer ${OTHER}x` })
  await witness.process.stop()
  const text = witness.lines.join('\n')
  expect(text).not.toContain(TOKEN)
  expect(text).not.toContain(OTHER)
  return witness.lines.map(line => JSON.parse(line))
}

describe.concurrent('the log has one JSON object per line, no token, and', () => {
  const levels = [
    ['error', 0],
    ['debug', 3],
    ['', 3],
    ['info', 3],
  ] as const
  test.each(levels.slice(0, proofSize(levels.length, 2)))('at LOG_LEVEL=%s %i access lines', async (level, count) => {
    const lines = await readLogAt(level)
    expect(lines.filter(({ msg }) => msg === 'ready')).toHaveLength(1)
    const requests = lines.filter(({ msg }) => msg === 'request')
    expect(requests).toHaveLength(count)
    expect(requests.filter(({ slot }) => slot === 'zwei\nZeilen ü')).toHaveLength(count === 0 ? 0 : 1)
    expect(requests.some(line => 'request' in line)).toBe(level === 'debug')
    expect(lines.filter(({ msg }) => msg === 'workerd')).toEqual([])
  })
})
