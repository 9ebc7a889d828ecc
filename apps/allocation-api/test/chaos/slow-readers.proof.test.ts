import { fileURLToPath } from 'node:url'
import { startNode } from '@pool/dev/process'
import { HttpConnection } from '@pool/test-kit/http1.ts'
import { readMemory } from '@pool/test-kit/processes.ts'
import { isProof, proofSize, reportProof } from '@pool/test-kit/proof-size.ts'
import { type Api, startApi } from '@pool/test-kit/services.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'

const READERS = proofSize(1_000, 300)
const ROWS = proofSize(100_000, 20_000)
const SECONDS = proofSize(5, 2)
const ROUNDS = proofSize(12)
/** Beside other tests fewer, which a busy machine can respond to in time. */
const CHECKS_PER_SECOND = isProof ? 200 : 50
const CONNECTIONS = 20
const readersFile = fileURLToPath(new URL('../support/slow-readers.ts', import.meta.url))

let database: TestDatabase
let api: Api
beforeAll(async () => {
  database = await createTestDatabase()
  await database.sql`
    insert into pool_allocations (pool_domain, subdomain, state, reserved_at, expires_at, token_hash, created_by)
    select 'pool.test', 'n' || lpad(n::text, 6, '0'), 'reserved', now(), now() + interval '1 h', sha256(gen_random_uuid()::text::bytea),
      repeat('x', 253)
    from generate_series(1, ${ROWS}) n`
  await database.sql`analyze pool_allocations`
  api = await startApi(database.url, { PDM_DATABASE_TIMEOUT: '1m' })
})
afterAll(async () => {
  await api.process.stop()
  await database.drop()
})

/** Latencies of checks at even intervals, ascending, in milliseconds. A late response delays no other request. */
const measureChecks = async (seconds: number): Promise<number[]> => {
  const port = Number(new URL(api.url).port)
  const idle = await Promise.all(Array.from({ length: CONNECTIONS }, () => HttpConnection.open(port)))
  const all = new Set(idle)
  const latencies: number[] = []
  const started = performance.now()
  const check = async (index: number) => {
    const due = performance.now()
    // In turn, because the service closes a connection that is idle for long.
    const connection = idle.shift() ?? (await HttpConnection.open(port))
    all.add(connection)
    const { status } = await connection.send(
      `GET /api/v1/pool/pool.test/check?sub=free-${index} HTTP/1.1\r\nHost: localhost\r\n\r\n`,
    )
    latencies.push(performance.now() - due)
    idle.push(connection)
    expect(status).toBe(200)
  }
  const checks: Promise<void>[] = []
  for (let index = 0; index < seconds * CHECKS_PER_SECOND; ) {
    await new Promise(resolve => setTimeout(resolve, 1))
    for (; index <= ((performance.now() - started) / 1_000) * CHECKS_PER_SECOND; index += 1) checks.push(check(index))
  }
  await Promise.all(checks)
  for (const connection of all) connection.close()
  return latencies.sort((a, b) => a - b)
}

const p99 = (ascending: readonly number[]) => ascending[Math.floor(ascending.length * 0.99)] ?? Number.NaN
const median = (values: readonly number[]) =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN

interface ReaderFigures {
  readonly started: number
  /** Lists that the service has ended, for example because their reader stalled. Another reader gets the place. */
  readonly closed: number
  readonly rejected: number
  readonly maxRejectionMs: number
  readonly withoutRetryAfter: number
}

/** Starts the readers, measures checks, and stops the readers. */
const measureWithReaders = async (): Promise<{ latencies: number[]; figures: ReaderFigures }> => {
  const stopped = Promise.withResolvers<ReaderFigures>()
  const readers = startNode({
    entry: readersFile,
    env: { PORT: new URL(api.url).port, LIST_PATH: '/api/v1/pool/pool.test/list', READERS: String(READERS) },
    onLine: line => {
      if (line.includes('"stopped"')) stopped.resolve(JSON.parse(line))
    },
  })
  await readers.ready
  const latencies = await measureChecks(SECONDS)
  await readers.stop()
  return { latencies, figures: await stopped.promise }
}

test(`${READERS} readers that read slowly or nothing hardly delay a check, and those over the limit get a 503 soon`, async () => {
  await measureChecks(1)
  const without: number[] = []
  const during: number[] = []
  let peakBytes = 0
  let maxRejectionMs = 0
  for (let round = 0; round < ROUNDS; round += 1) {
    without.push(p99(await measureChecks(SECONDS)))
    const { latencies, figures } = await measureWithReaders()
    during.push(p99(latencies))
    peakBytes = Math.max(peakBytes, readMemory(api.process.pid)?.residentBytes ?? 0)
    expect(figures).toMatchObject({ started: 100 + figures.closed, withoutRetryAfter: 0 })
    expect(figures.rejected).toBeGreaterThanOrEqual(READERS - 100)
    maxRejectionMs = Math.max(maxRejectionMs, figures.maxRejectionMs)
  }
  const ratio = median(during) / median(without)
  const texts = [without, during].map(values => values.map(value => value.toFixed(2)).join(' '))
  reportProof(
    `p99 of check with ${READERS} slow readers ${ratio.toFixed(2)} times that without, ms: ${texts.join(' against ')}; ${(peakBytes / 1e6).toFixed(0)} MB`,
  )
  // Below the full size, other tests run beside this one.
  if (!isProof) return
  expect(ratio).toBeLessThanOrEqual(1.2)
  expect(maxRejectionMs).toBeLessThan(1_000)
}, 600_000)
