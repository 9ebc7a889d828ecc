import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, statSync } from 'node:fs'
import { createServer } from 'node:net'
import { join, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { childrenOf, hasProc, rssOf, untilGone, WITHOUT_PROC, workerdOf } from '@pool/test-kit/processes.ts'
import { describe, expect, test } from 'vitest'
import { createClient, leaseOf } from './support/client.ts'
import { ms, print } from './support/figures.ts'
import { openWaiters, untilWaiting } from './support/waiter.ts'
import { failedStart, startWitness, TOKEN, temporaryFolder } from './support/witness.ts'

const GONE_WITHIN_MS = 5_000

// Each with a witness and a folder of its own: all at the same time.
test.concurrent('a lease outlives a stop and a start', async () => {
  using folder = temporaryFolder()
  {
    await using witness = await startWitness(folder.path)
    using client = createClient(witness.port)
    const answer = await client.send('PUT', '/lease/a%2Fb', { 'If-Match': '0', 'X-Holder': 'region-a' })
    expect(leaseOf(answer)).toMatchObject({ holder: 'region-a', generation: 1 })
  }
  const started = performance.now()
  await using witness = await startWitness(folder.path)
  const readyAfter = performance.now() - started
  using client = createClient(witness.port)
  expect(leaseOf(await client.send('GET', '/lease/a/b'))).toMatchObject({ holder: 'region-a', generation: 1 })

  if (!hasProc) return
  const { pid } = witness.process
  print('the local run', [
    ['from the start of the process to ready, ms', ms(readyAfter)],
    ['resident memory of node, MiB', ms(rssOf(pid))],
    ['resident memory of workerd, MiB', ms(rssOf(workerdOf(pid) ?? 0))],
  ])
  // What bundled the worker has gone: nothing but workerd and the watchdog stays.
  expect(childrenOf(pid, '/esbuild')).toEqual([])
})

describe.runIf(hasProc).concurrent('how it ends', () => {
  test.each([
    ['SIGTERM', 'alone'],
    ['SIGINT', 'alone'],
    ['SIGHUP', 'alone'],
    // As from a terminal, or a supervisor that signals all of a unit.
    ['SIGINT', 'with workerd'],
    ['SIGTERM', 'with workerd'],
  ] as const)('%s, %s, ends it in order with 100 waiters', async (signal, whom) => {
    using folder = temporaryFolder()
    const witness = await startWitness(folder.path)
    const waiters = await openWaiters(witness.port, 'awaited', 100)
    for (const waiter of waiters) waiter.wait(0, 60).catch(() => {})
    await untilWaiting(waiters.length)
    const pid = workerdOf(witness.process.pid) ?? 0
    const asked = performance.now()
    if (whom === 'with workerd') process.kill(pid, signal)
    const exit = await witness.process.stop(signal)
    const took = performance.now() - asked
    expect(exit).toEqual({ code: 0, signal: null })
    await untilGone(pid, GONE_WITHIN_MS)
    expect(readdirSync(join(folder.path, 'lease-witness')).sort()).toEqual(['cache', 'do', 'kv'])
    for (const { connection } of waiters) connection[Symbol.dispose]()
    print(`${signal}, ${whom}, with 100 waiters`, [['ms until it has ended', ms(took)]])
  })

  test('the end of whoever started it, by SIGKILL, ends it too', async () => {
    using folder = temporaryFolder()
    const code = `
      import { startNode } from '@pool/dev-server/process'
      const env = { PORT: '0', BEARER_TOKENS_CSV: '${TOKEN}', DATA_DIR: ${JSON.stringify(folder.path)} }
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
    const workerd = workerdOf(node) ?? 0
    expect(workerd).toBeGreaterThan(0)
    parent.kill('SIGKILL')
    await untilGone(node, GONE_WITHIN_MS)
    await untilGone(workerd, GONE_WITHIN_MS)
    expect(readdirSync(join(folder.path, 'lease-witness'))).not.toContain('start.lock')
  })

  test('SIGKILL takes workerd with it, the one after a crash too, and the next start takes over', async ({
    expect,
  }) => {
    using folder = temporaryFolder()
    const witness = await startWitness(folder.path)
    const { pid } = witness.process
    const first = workerdOf(pid) ?? 0
    process.kill(first, 'SIGKILL')
    await untilGone(first, GONE_WITHIN_MS)
    using client = createClient(witness.port)
    await expect
      .poll(async () => (await client.send('GET', '/leases').catch(() => undefined))?.status, { timeout: 10_000 })
      .toBe(200)
    await expect.poll(() => witness.lines.filter(line => line.includes('workerd-restarted'))).toHaveLength(1)
    const second = workerdOf(pid) ?? 0
    await witness.process.kill()
    await untilGone(second, GONE_WITHIN_MS)
    expect(readdirSync(join(folder.path, 'lease-witness'))).toContain('start.lock')
    await using next = await startWitness(folder.path)
    expect(next.port).toBeGreaterThan(0)
  })
})

/** Listens on a port from the moment at which nobody else does. */
const seize = async (port: number) => {
  for (;;) {
    const server = createServer().listen(port, '127.0.0.1')
    const isOurs = await once(server, 'listening').then(
      () => true,
      () => false,
    )
    if (isOurs) return server
  }
}

test
  .runIf(hasProc)
  .concurrent('a workerd that cannot be started again ends it, and it says why in one line', async () => {
    using folder = temporaryFolder()
    const witness = await startWitness(folder.path)
    const seized = seize(witness.port)
    process.kill(workerdOf(witness.process.pid) ?? 0, 'SIGKILL')
    const server = await seized
    expect(await witness.process.exited).toEqual({ code: 1, signal: null })
    server.close()
    expect(witness.lines.at(-1)).toMatch(/^lease-witness: .*failed to restart/)
    expect(readdirSync(join(folder.path, 'lease-witness'))).not.toContain('start.lock')
  })

if (!hasProc) test.skip(`how it ends: ${WITHOUT_PROC}`)

describe.concurrent('a start that cannot be', () => {
  test('names every faulty variable in one line, and no token', async () => {
    const secret = 'a secret with spaces'
    const env = { PORT: '123456', LOG_LEVEL: 'loud', BEARER_TOKENS_CSV: `${TOKEN},${secret}` }
    const { code, lines } = await failedStart(env)
    expect(code).toBe(2)
    expect(lines).toHaveLength(1)
    for (const variable of Object.keys(env)) expect(lines[0]).toContain(variable)
    expect(lines[0]).not.toContain(secret)
    expect(lines[0]).not.toContain(TOKEN)
  })

  test('on a port that is taken, says so in one line', async () => {
    using folder = temporaryFolder()
    const server = createServer().listen(0, '127.0.0.1')
    await once(server, 'listening')
    const address = server.address()
    const port = typeof address === 'object' ? address?.port : undefined
    const { code, lines } = await failedStart({ PORT: String(port), DATA_DIR: folder.path })
    server.close()
    expect({ code, lines }).toEqual({
      code: 1,
      lines: [`lease-witness: port ${port} is taken: stop what listens there, or choose another with PORT=…`],
    })
    expect(readdirSync(join(folder.path, 'lease-witness'))).not.toContain('start.lock')
  })

  test('on the data of a witness that runs, refuses: there is one authority', async () => {
    using folder = temporaryFolder()
    await using witness = await startWitness(folder.path)
    const { code, lines } = await failedStart({ DATA_DIR: folder.path })
    expect(code).toBe(1)
    expect(lines).toEqual([expect.stringContaining(`in use by another start (process ${witness.process.pid})`)])
    using client = createClient(witness.port)
    expect((await client.send('GET', '/leases')).status).toBe(200)
  })

  test('in a folder that cannot be, says so in one line', async () => {
    const { code, lines } = await failedStart({ DATA_DIR: '/proc/self/status/data' })
    expect(code).toBe(1)
    expect(lines).toHaveLength(1)
    expect(lines[0]).toMatch(/^lease-witness: .*\/proc\/self\/status/)
  })
})

test.concurrent('without tokens nobody is let in, and the log says why', async () => {
  using folder = temporaryFolder()
  await using witness = await startWitness(folder.path, { BEARER_TOKENS_CSV: ' , ' })
  using client = createClient(witness.port)
  for (const Authorization of [`Bearer ${TOKEN}`, 'Bearer ', 'Bearer undefined', '']) {
    const answer = await client.send('GET', '/leases', { Authorization })
    expect({ status: answer.status, text: answer.text }).toEqual({ status: 401, text: '{"error":"unauthorized"}' })
  }
  expect(witness.lines.map(line => JSON.parse(line).msg)).toEqual(['no-tokens', 'ready'])
})

test.concurrent('DATA_DIR is meant from where the command was typed, and is ours alone', async () => {
  using folder = temporaryFolder()
  await using witness = await startWitness('deep/data', { INIT_CWD: folder.path })
  expect(witness.port).toBeGreaterThan(0)
  for (const path of ['deep', 'deep/data', 'deep/data/lease-witness']) {
    expect(statSync(join(folder.path, path)).mode & 0o777, path).toBe(0o700)
  }
})

const OTHER = 'token-of-region-b-0123456789abcdef'

/** The lines of a few requests that carry tokens where none belongs. */
const linesAt = async (level: string): Promise<readonly Record<string, unknown>[]> => {
  using folder = temporaryFolder()
  const env = { LOG_LEVEL: level, BEARER_TOKENS_CSV: `${TOKEN}, ${OTHER}` }
  const witness = await startWitness(folder.path, env)
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

describe.concurrent('the log: a JSON object a line, no token, and', () => {
  test.each([
    ['error', 0],
    ['info', 3],
    ['debug', 3],
    ['', 3],
  ])('at LOG_LEVEL=%s a line for %i requests', async (level, count) => {
    const lines = await linesAt(level)
    expect(lines.filter(({ msg }) => msg === 'ready')).toHaveLength(1)
    const answered = lines.filter(({ msg }) => msg === 'request')
    expect(answered).toHaveLength(count)
    expect(answered.filter(({ slot }) => slot === 'zwei\nZeilen ü')).toHaveLength(count === 0 ? 0 : 1)
    expect(answered.some(line => 'request' in line)).toBe(level === 'debug')
    expect(lines.filter(({ msg }) => msg === 'workerd')).toEqual([])
  })
})
