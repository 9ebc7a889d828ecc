import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { request } from 'node:http'
import { connect } from 'node:net'
import type { Exit } from '@pool/dev/process'
import { startDedicatedPostgres } from '@pool/test-kit/dedicated-postgres.ts'
import { timed, until } from '@pool/test-kit/poll.ts'
import { type Api, smallPoolEnv, startApi, toApiEntry } from '@pool/test-kit/services.ts'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { expectConsistentTables, untilApplied } from '../support/consistency.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { holdLock, untilSessionsWait } from '../support/locks.ts'
import { commit, pool, reserve, reserveToken } from '../support/operations.ts'
import { tokenDigest } from '../support/token-repository.ts'

// The timeouts of a stop. The tests run concurrently.

const MAX_STOP_MS = 20_000
/** Stops the API, which must exit in time and without a SIGKILL. */
const expectTimelyStop = async (api: Api, what: string): Promise<Exit> => {
  const { result, ms } = await timed(() => api.process.stop('SIGTERM', 2 * MAX_STOP_MS))
  process.stdout.write(`SIGTERM with ${what}: ${JSON.stringify(result)} after ${Math.round(ms)} ms\n`)
  expect(result.signal).toBeNull()
  expect(ms).toBeLessThan(MAX_STOP_MS)
  return result
}

describe.concurrent('a graceful stop', () => {
  test('ends in time while a commit waits for its records, and the records are published later', async () => {
    const database = await createTestDatabase({ connections: 3 })
    const api = await startApi(database.url, { PDM_DNS_COMMIT_WAIT: '30s' })
    const token = await reserveToken(api, 'blocked')
    const held = await holdLock(database.sql, tx => tx`lock table local_dns_record_sets in share mode`)
    const response = commit(api, 'blocked', token).catch(() => null)
    await untilSessionsWait(database.sql, 1, '%insert into local_dns_record_sets%')
    await expectTimelyStop(api, 'DNS blocked')
    await held.release()
    expect([202, undefined]).toContain((await response)?.status)
    const next = await startApi(database.url)
    await untilApplied(database.sql)
    await expectConsistentTables(database.sql)
    await next.process.kill()
    await database.drop()
  })

  test('ends in time with requests in flight to a Postgres that hangs or is stopped', async () => {
    const postgres = await startDedicatedPostgres()
    try {
      const first = await startApi(postgres.url, { PDM_DATABASE_TIMEOUT: '1s' })
      await reserveToken(first, 'before')
      postgres.freeze()
      const hanging = Promise.allSettled([
        reserve(first, 'plain'),
        reserve(first, 'keyed', { 'Idempotency-Key': 'keyed' }),
        ...Array.from({ length: 30 }, (_, i) => reserve(first, `more-${i}`)),
      ])
      await until('the hang is detected', async () => (await first.call('GET', '/readyz')).status === 503)
      await expectTimelyStop(first, 'Postgres frozen')
      postgres.thaw()

      const second = await startApi(postgres.url)
      await reserveToken(second, 'again')
      await postgres.stop('fast')
      const failing = Promise.allSettled(Array.from({ length: 30 }, (_, i) => reserve(second, `down-${i}`)))
      await expectTimelyStop(second, 'Postgres stopped')
      for (const response of [...(await hanging), ...(await failing)]) {
        if (response.status === 'fulfilled') expect(response.value.status).toBe(503)
      }
    } finally {
      await postgres.remove()
    }
  })
})

interface ReserveResult {
  /** The status, or the error code of the system. */
  readonly outcome: number | string
  readonly token?: string
}

/** Reserves a name on a new connection, so that an error belongs to this request and not to an earlier one. */
const reserveAlone = (api: Api, subdomain: string): Promise<ReserveResult> =>
  new Promise(resolve => {
    const sent = request(`${api.url}/api/v1/pool/${pool}/reserve`, { method: 'POST', agent: false }, response => {
      let text = ''
      response.setEncoding('utf8').on('data', part => {
        text += part
      })
      response.on('error', error => resolve({ outcome: String(error) }))
      response.on('end', () =>
        resolve(
          response.statusCode === 201
            ? { outcome: 201, token: JSON.parse(text).reservationToken }
            : { outcome: response.statusCode ?? 'none' },
        ),
      )
    })
    sent.on('error', error => resolve({ outcome: 'code' in error ? String(error.code) : error.message }))
    sent.end(JSON.stringify({ subdomain }))
  })

const accepts = (api: Api): Promise<boolean> =>
  new Promise(resolve => {
    const socket = connect(Number(new URL(api.url).port), '127.0.0.1')
    socket.on('connect', () => {
      socket.destroy()
      resolve(true)
    })
    socket.on('error', () => resolve(false))
  })

describe('a graceful stop', () => {
  let database: TestDatabase
  const running = new Set<Api>()
  const start = async (url: string, env: Record<string, string> = {}) => {
    const api = await startApi(url, { ...smallPoolEnv, ...env })
    running.add(api)
    return api
  }

  beforeAll(async () => {
    database = await createTestDatabase()
  })
  afterEach(async () => {
    for (const api of running) await api.process.kill()
    running.clear()
  })
  afterAll(() => database?.drop())

  test('under load: readiness fails first, clients that respect it lose no request, and the exit code is 0', async () => {
    const api = await start(database.url, { PDM_DRAIN_DELAY: '5s' })
    const sent: ReserveResult[] = []
    const names: string[] = []
    const readiness: string[] = []
    let off = false
    const callers = Array.from({ length: 16 }, async (_, caller) => {
      for (let round = 0; !off; round += 1) {
        const name = `respects-${caller}-${round}`
        names.push(name)
        sent.push(await reserveAlone(api, name))
      }
    })
    // Like a load balancer: it checks readiness and sends nothing after the check fails.
    const balancer = (async () => {
      while (!off) {
        const { status, body } = await api.call('GET', '/readyz')
        readiness.push(`${status} ${body.status}`)
        off = status !== 200
      }
    })()
    await until('the load runs', () => sent.length > 100)
    const exit = await api.process.stop('SIGTERM', MAX_STOP_MS)
    await Promise.all([...callers, balancer])
    expect(exit).toEqual({ code: 0, signal: null })
    expect(new Set(readiness)).toEqual(new Set(['200 ok', '503 draining']))
    expect(new Set(sent.map(one => one.outcome))).toEqual(new Set([201]))
    const rows = await database.sql<{ digest: string }[]>`
      select encode(token_hash, 'hex') as digest from pool_allocations where subdomain like 'respects-%'`
    expect(new Set(rows.map(row => row.digest))).toEqual(new Set(sent.map(one => tokenDigest(one.token ?? ''))))
    process.stdout.write(`SIGTERM under load: ${sent.length} requests, all answered\n`)
  })

  test('under continuing load: no acknowledged write is lost, and later connections are refused', async () => {
    const api = await start(database.url)
    const sent: ReserveResult[] = []
    const callers = Array.from({ length: 16 }, async (_, caller) => {
      for (let round = 0; ; round += 1) {
        const answer = await reserveAlone(api, `regardless-${caller}-${round}`)
        sent.push(answer)
        if (answer.outcome === 'ECONNREFUSED') return
      }
    })
    await until('the load runs', () => sent.length > 100)
    const exit = await api.process.stop('SIGTERM', MAX_STOP_MS)
    await Promise.all(callers)
    expect(exit).toEqual({ code: 0, signal: null })
    // A connection in the accept queue is reset when the listener closes; none gets a wrong response.
    expect([201, 'ECONNREFUSED', 'ECONNRESET']).toEqual(
      expect.arrayContaining([...new Set(sent.map(one => one.outcome))]),
    )
    expect(sent.filter(one => one.outcome === 'ECONNREFUSED')).toHaveLength(16)
    const acknowledged = sent.flatMap(one => one.token ?? [])
    const rows = await database.sql<{ digest: string }[]>`
      select encode(token_hash, 'hex') as digest from pool_allocations where subdomain like 'regardless-%'`
    const stored = new Set(rows.map(row => row.digest))
    expect(acknowledged.filter(token => !stored.has(tokenDigest(token)))).toEqual([])
    expect((await reserveAlone(api, 'late')).outcome).toBe('ECONNREFUSED')
  })

  test('requests in progress or waiting for a batch get their responses before the process ends', async () => {
    const api = await start(database.url)
    const held = await holdLock(database.sql, tx => tx`lock table pool_allocations in share mode`)
    const answers = Array.from({ length: 10 }, (_, i) => reserveAlone(api, `patient-${i}`))
    await untilSessionsWait(database.sql, 1, '%insert into pool_allocations%')
    // Connections are accepted in their order: after this response, the API has all requests.
    expect((await api.call('GET', '/livez')).status).toBe(200)
    const ended = api.process.stop('SIGTERM')
    await until('it accepts nothing more', async () => !(await accepts(api)))
    await held.release()
    expect((await Promise.all(answers)).map(({ outcome }) => outcome)).toEqual(Array(10).fill(201))
    expect(await ended).toEqual({ code: 0, signal: null })
  })

  test('the process ends without process.exit, which can hang', async () => {
    const hang = 'process.exit = () => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)'
    const api = await start(database.url, { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(hang)}` })
    expect((await api.call('GET', '/readyz')).status).toBe(200)
    expect(await api.process.stop('SIGTERM', MAX_STOP_MS)).toEqual({ code: 0, signal: null })
  })

  test('the process stops when its parent process ends', async () => {
    const entry = toApiEntry()
    const child = spawn(process.execPath, [entry], {
      env: { PATH: process.env.PATH, PORT: '0', PDM_DATABASE_URL: database.url, DNSPROVIDER_KIND: 'local' },
      stdio: ['ignore', 'pipe', 'ignore', 'ipc'],
    })
    let output = ''
    child.stdout?.setEncoding('utf8').on('data', text => {
      output += text
    })
    const exited = once(child, 'exit')
    await until('it is ready', () => output.includes('"msg":"ready"'))
    child.disconnect()
    expect(await exited).toEqual([0, null])
    expect(output).toContain('parent gone')
  })
})
