import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { NodeProcess } from '@pool/dev/process'
import { until } from '@pool/test-kit/poll.ts'
import { missingPrometheus, runPromtool } from '@pool/test-kit/prometheus.ts'
import { runUntilExit, startWitness, toWitnessEntry } from '@pool/test-kit/services.ts'
import { startTcpProxy, type TcpProxy } from '@pool/test-kit/tcp-proxy.ts'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { createTestDatabase, type TestDatabase } from './support/database.ts'

const TOKEN = 'token-of-region-a'
const authorization = { Authorization: `Bearer ${TOKEN}` }

let database: TestDatabase
let proxy: TcpProxy
const processes: NodeProcess[] = []
beforeAll(async () => {
  database = await createTestDatabase({ schema: false, connections: 1 })
  proxy = await startTcpProxy(Number(new URL(database.url).port))
})
afterEach(async () => {
  proxy.refuse(false)
  await Promise.all(processes.splice(0).map(each => each.stop()))
})
afterAll(async () => {
  await proxy.close()
  await database[Symbol.asyncDispose]()
})

/** Runs a process until it exits. */
const run = (command: string, env: Record<string, string>) => runUntilExit({ entry: toWitnessEntry(command), env })

const start = async (env: Record<string, string> = {}, readyLine = 'ready') => {
  const witness = await startWitness(
    Object.assign(new URL(database.url), { port: String(proxy.port) }).href,
    { BEARER_TOKENS_CSV: TOKEN, ...env },
    { keepsLines: true, isReady: line => line.msg === readyLine },
  )
  const { process: child, lines, port, url } = witness
  processes.push(child)
  const send = async (method: string, path: string, headers: Record<string, string> = {}, body?: string) => {
    const response = await fetch(`${url}${path}`, {
      method,
      headers: { ...authorization, ...headers },
      ...(body === undefined ? {} : { body }),
    })
    const text = await response.text()
    return { status: response.status, headers: response.headers, body: text === '' ? undefined : JSON.parse(text) }
  }
  return { child, lines, port, url, send }
}

test('exit code 2 with one line for an invalid configuration', async () => {
  const { code, lines } = await run('main', { PORT: 'http', WITNESS_DATABASE_URL_FILE: '/no/such/file' })
  expect(lines).toEqual([expect.stringMatching(/WITNESS_DATABASE_URL_FILE.*ENOENT.*BEARER_TOKENS_CSV.*PORT/)])
  expect(code).toBe(2)
})

describe('GET /metrics', () => {
  const scrape = async (url: string) => (await fetch(`${url}/metrics`, { headers: authorization })).text()

  test('counts requests by route, status and outcome, and says whether the witness is ready', async () => {
    const { url, send } = await start()
    const write = { 'If-Match': '0', 'X-Holder': 'region-a' }
    await send('PUT', '/lease/metrics', write)
    await send('PUT', '/lease/metrics', write)
    const text = await scrape(url)
    for (const sample of [
      'lease_witness_ready 1',
      'lease_witness_operations_total{method="PUT",route="/lease/:slot",outcome="granted"} 1',
      'lease_witness_operations_total{method="PUT",route="/lease/:slot",outcome="rejected-expired"} 0',
      'lease_witness_http_request_duration_seconds_count{method="PUT",route="/lease/:slot",status="412"} 1',
    ]) {
      expect(text.split('\n')).toContain(sample)
    }
    // The server of the tests may run without fsync.
    expect(text).toMatch(/^lease_witness_database_durability\{mode="(?:single|volatile)"\} 1$/m)
    if (missingPrometheus === undefined)
      expect(await runPromtool(['check', 'metrics'], { input: text })).toEqual({ code: 0, output: '' })
  })

  test('needs a token, also while the witness has no database', async () => {
    const { url } = await start({ WITNESS_DATABASE_URL: 'postgres://user@127.0.0.1:1/db' }, 'listening')
    expect((await fetch(`${url}/metrics`)).status).toBe(401)
    expect((await scrape(url)).split('\n')).toContain('lease_witness_ready 0')
  })
})

test('secrets come from files, and a misspelt variable is logged without its value', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'secret-files-'))
  const write = async (name: string, content: string): Promise<string> => {
    await writeFile(join(folder, name), content)
    return join(folder, name)
  }
  const { send, lines } = await start({
    WITNESS_DATABASE_URL: '',
    WITNESS_DATABASE_URL_FILE: await write('url', `${database.url}\n`),
    WITNESS_LISTEN_URL_FILE: await write('listen-url', database.url),
    BEARER_TOKENS_CSV: '',
    BEARER_TOKENS_CSV_FILE: await write('tokens', `another-token-of-tests,${TOKEN}\n`),
    TOKEN_POLICIES_FILE: await write('policies', '[]\n'),
    WITNESS_DATABASE_TIMEOT: 'mark',
  })
  await rm(folder, { recursive: true })
  expect((await send('GET', '/lease/from-files')).status).toBe(404)
  const warnings = lines.map(line => JSON.parse(line)).filter(({ msg }) => msg === 'questionable-variable')
  expect(warnings).toMatchObject([{ level: 'error', detail: expect.stringContaining('WITNESS_DATABASE_TIMEOUT?') }])
  expect(lines.join()).not.toContain('mark')
})

test('exit code 1 if the database does not exist, with one line that names the variable', async () => {
  const url = Object.assign(new URL(database.url), { pathname: '/no_such_database' }).href
  const { code, lines } = await run('main', {
    PORT: '0',
    WITNESS_DATABASE_URL: url,
    BEARER_TOKENS_CSV: TOKEN,
    LOG_LEVEL: 'error',
  })
  expect(lines).toEqual([expect.stringMatching(/^start: the database does not exist.*WITNESS_DATABASE_URL/)])
  expect(code).toBe(1)
})

test('while the database is away at the start it responds 503, and then it serves', async () => {
  proxy.refuse(true)
  const { send, lines, child } = await start({}, 'listening')
  await until('it waits', () => lines.some(line => line.includes('waiting for the database')))
  const rejected = await send('GET', '/lease/a')
  expect([rejected.status, rejected.body.error]).toEqual([503, 'lease-unavailable'])
  expect((await send('GET', '/healthz')).status).toBe(503)
  proxy.refuse(false)
  await until('it serves', async () => (await send('GET', '/lease/a')).status === 404)
  expect((await send('GET', '/healthz')).status).toBe(200)
  expect(await child.stop()).toEqual({ code: 0, signal: null })
})

test('WITNESS_LISTEN_ADDRESS binds to that address only, and names the variable if the machine does not have it', async () => {
  const { port } = await start({ WITNESS_LISTEN_ADDRESS: '127.0.0.1' })
  // All of 127/8 is this machine.
  await expect(fetch(`http://127.0.0.2:${port}/healthz`)).rejects.toMatchObject({ cause: { code: 'ECONNREFUSED' } })
  expect((await fetch(`http://127.0.0.1:${port}/healthz`)).status).toBe(200)
  const { code, lines } = await run('main', {
    PORT: '0',
    WITNESS_DATABASE_URL: database.url,
    BEARER_TOKENS_CSV: TOKEN,
    LOG_LEVEL: 'error',
    WITNESS_LISTEN_ADDRESS: '192.0.2.1',
  })
  expect([code, lines]).toEqual([1, [expect.stringMatching(/^start: WITNESS_LISTEN_ADDRESS: this machine/)]])
})

test('a request that is not valid HTTP gets 400 with a body', async () => {
  const { port } = await start()
  const send = (text: string): Promise<string> =>
    new Promise((resolve, reject) => {
      let received = ''
      const socket = connect(port, '127.0.0.1', () => socket.end(text))
      socket.on('data', data => {
        received += data
      })
      socket.on('end', () => resolve(received)).on('error', reject)
    })
  for (const head of ['GET /lease/a HTTP/1.1\r\nHost: a\r\nHost: b', 'GET /lease/a HTTP/1.1', 'no request']) {
    expect(await send(`${head}\r\nConnection: close\r\n\r\n`)).toMatch(
      /^HTTP\/1.1 400 [\s\S]*"error":"invalid-request"/,
    )
  }
})

test('an older build does not start on a newer schema', async () => {
  await start()
  await database.sql`insert into lease_witness_migrations (version, name, oldest_build) values (99, 'newer', 99)`
  const { code, lines } = await run('main', {
    PORT: '0',
    WITNESS_DATABASE_URL: database.url,
    BEARER_TOKENS_CSV: TOKEN,
    LOG_LEVEL: 'error',
  })
  await database.sql`delete from lease_witness_migrations where version = 99`
  expect(lines).toEqual([expect.stringMatching(/^schema: .*requires build 99/)])
  expect(code).toBe(2)
})

test('declare-restore: the generations of a running witness jump', async () => {
  const { send } = await start()
  const slot = '/lease/declared'
  expect((await send('PUT', slot, { 'If-Match': '0' }, '{"holder":"a"}')).body.generation).toBe(1)
  const { code, lines } = await run('declare-restore', { WITNESS_DATABASE_URL: database.url })
  expect([code, lines]).toEqual([0, [expect.stringMatching(/^Epoch 2 has started/)]])
  const { body } = await send('GET', slot)
  expect(body.holder).toBe('a')
  expect(body.generation).toBeGreaterThan(2 ** 20)
  expect((await send('PUT', slot, { 'If-Match': '1' }, '{"holder":"a"}')).status).toBe(412)
  expect((await send('PUT', slot, { 'If-Match': `${body.generation}` }, '{"holder":"a"}')).status).toBe(200)
})

test('declare-restore explains what is missing', async () => {
  const other = await createTestDatabase({ schema: false, connections: 1 })
  const { code, lines } = await run('declare-restore', { WITNESS_DATABASE_URL: other.url })
  await other[Symbol.asyncDispose]()
  expect([code, lines]).toEqual([1, [expect.stringContaining('start the witness once')]])
  expect(await run('declare-restore', { WITNESS_DATABSE_URL: 'mark' })).toMatchObject({
    code: 2,
    lines: [expect.stringMatching(/WITNESS_DATABASE_URL is required.*WITNESS_DATABSE_URL is not a variable/)],
  })
})
