import { encodeRequest, openConnections } from '@pool/test-kit/http1.ts'
import { TOKEN } from '@pool/test-kit/lease-connection.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createTestDatabase, type TestDatabase } from './support/database.ts'
import { startReplica } from './support/replica.ts'

const WAITERS = 10
/** Far less than the wait, and than the time after which open requests are cut off. */
const MAX_STOP_MS = 5_000

let database: TestDatabase
beforeAll(async () => {
  database = await createTestDatabase({ schema: false, connections: 1 })
})
afterAll(() => database[Symbol.asyncDispose]())

test.each(['SIGTERM', 'SIGINT'] as const)('%s ends waits with 503, and the process with exit code 0', async signal => {
  await using replica = await startReplica(database.url)
  const path = `/lease/${signal}`
  const authorization = `Authorization: Bearer ${TOKEN}`
  const acquire = { method: 'PUT', path, headers: [authorization, 'If-Match: 0', 'X-Holder: region-a'] }
  const read = { path, headers: [authorization] }
  const wait = { path, headers: [authorization, 'If-None-Match: "1"', 'Prefer: wait=20'] }

  const connections = await openConnections(replica.port, WAITERS + 1)
  const [writer, ...waiters] = connections
  expect((await writer?.send(encodeRequest(acquire)))?.status).toBe(200)
  // Each connection is accepted before its wait, and the waits are received before the last read.
  for (const waiter of waiters) expect((await waiter.send(encodeRequest(read))).status).toBe(200)
  const responses = waiters.map(waiter => waiter.send(encodeRequest(wait), { timeoutMs: 30_000 }))
  expect((await writer?.send(encodeRequest(read)))?.status).toBe(200)

  const signalledAt = performance.now()
  const exited = replica.process.stop(signal)
  for (const { status, headers, text } of await Promise.all(responses)) {
    expect([status, JSON.parse(text).error]).toEqual([503, 'lease-unavailable'])
    expect(Number(headers.get('retry-after'))).toBeGreaterThanOrEqual(1)
  }
  expect(await exited).toEqual({ code: 0, signal: null })
  expect(performance.now() - signalledAt).toBeLessThan(MAX_STOP_MS)
  for (const connection of connections) connection.close()
})
