import { encodeRequest, openConnections } from '@pool/test-kit/http1.ts'
import { TOKEN } from '@pool/test-kit/lease-connection.ts'
import { startWitness } from '@pool/test-kit/services.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createClient } from '../process/support/client.ts'
import { untilWaiting } from '../process/support/waiter.ts'
import { createTestDatabase, type TestDatabase } from './support/database.ts'

const WAITERS = 10

let database: TestDatabase
beforeAll(async () => {
  database = await createTestDatabase({ schema: false, connections: 1 })
})
afterAll(() => database[Symbol.asyncDispose]())

test.each(['SIGTERM', 'SIGINT'] as const)('%s ends waits with 503, and the process with exit code 0', async signal => {
  await using replica = await startWitness(database.url, { MAX_WAIT_SECONDS: '60' })
  const path = `/lease/${signal}`
  const authorization = `Authorization: Bearer ${TOKEN}`
  const acquire = { method: 'PUT', path, headers: [authorization, 'If-Match: 0', 'X-Holder: region-a'] }
  const wait = { path, headers: [authorization, 'If-None-Match: "1"', 'Prefer: wait=60'] }

  const connections = await openConnections(replica.port, WAITERS + 1)
  const [writer, ...waiters] = connections
  expect((await writer?.send(encodeRequest(acquire)))?.status).toBe(200)
  const responses = waiters.map(waiter => waiter.send(encodeRequest(wait), { timeoutMs: 120_000 }))
  using client = createClient(replica.port)
  await untilWaiting(client, signal, WAITERS)

  const exited = replica.process.stop(signal)
  for (const { status, headers, text } of await Promise.all(responses)) {
    expect([status, JSON.parse(text).error]).toEqual([503, 'lease-unavailable'])
    expect(Number(headers.get('retry-after'))).toBeGreaterThanOrEqual(1)
  }
  expect(await exited).toEqual({ code: 0, signal: null })
  for (const connection of connections) connection.close()
})
