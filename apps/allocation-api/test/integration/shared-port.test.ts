import { connect } from 'node:net'
import { freePort } from '@pool/dev/ports'
import { startNode } from '@pool/dev/process'
import { HttpConnection, HttpReadError } from '@pool/test-kit/http1.ts'
import { until } from '@pool/test-kit/poll.ts'
import { sendRequest, smallPoolEnv, startApi, toApiEntry } from '@pool/test-kit/services.ts'
import { afterAll, describe, expect, test } from 'vitest'
import { createTestDatabase } from '../support/database.ts'
import { pool } from '../support/operations.ts'

const database = await createTestDatabase({ schema: false, connections: 2 })
afterAll(() => database.drop())

/** Enough connections that the kernel gives some to each of two processes. */
const CONNECTIONS = 32

/** Starts a process on the shared ports. Its own port is in `own`, as a URL. */
const startProcess = async (env: Record<string, string>) => {
  const api = await startApi(database.url, { ...smallPoolEnv, PDM_PROCESS_PORT: '0', ...env })
  const [line = ''] = api.lines.filter(text => text.includes('"ready"'))
  return { ...api, own: `http://127.0.0.1:${JSON.parse(line).processPort}` }
}

const countChecks = async (url: string): Promise<number> => {
  const { text } = await sendRequest(`${url}/metrics`, 'GET')
  const counts = text.matchAll(/^pdm_http_request_duration_seconds_count\{[^}]*check[^}]*\} (\d+)$/gm)
  return Array.from(counts, ([, count]) => Number(count)).reduce((sum, count) => sum + count, 0)
}

/** The connection ended before a byte of a response. */
const isClosed = (error: unknown): boolean =>
  error instanceof HttpReadError
    ? error.kind === 'closed'
    : error instanceof Error && 'code' in error && error.code === 'ECONNRESET'

const CHECK = `GET /api/v1/pool/${pool}/check?sub=acme HTTP/1.1\r\nHost: localhost\r\n\r\n`

// Only Linux divides connections; elsewhere the start fails.
describe.runIf(process.platform === 'linux')('two processes on one port', () => {
  test('both serve, each has its own probes and metrics, and one stops while the other serves', async () => {
    const env = {
      PORT: String(await freePort()),
      PDM_OPERATOR_PORT: String(await freePort()),
      PDM_OPERATOR_TOKENS: 'operator-token',
    }
    const first = await startProcess(env)
    const second = await startProcess(env)
    try {
      expect(second.url).toBe(first.url)
      expect(second.operatorUrl).toBe(first.operatorUrl)
      expect(new Set([first.url, first.own, second.own]).size).toBe(3)
      for (const url of [first.own, second.own]) expect((await sendRequest(`${url}/readyz`, 'GET')).status).toBe(200)

      const port = Number(env.PORT)
      let isStopping = false
      let served = 0
      const statuses = new Set<number>()
      const lost: unknown[] = []
      /** Sends checks over one connection until it ends, and then over the next one. */
      const client = async (): Promise<void> => {
        while (!isStopping) {
          try {
            using connection = await HttpConnection.open(port)
            while (!isStopping && connection.isOpen) {
              const response = await connection.send(CHECK)
              statuses.add(response.status)
              served += 1
              if (response.isLast) break
            }
          } catch (error) {
            // A server may close a connection between two responses, or before the first one, at any time.
            if (!isClosed(error)) lost.push(error)
          }
        }
      }
      const clients = Array.from({ length: CONNECTIONS }, client)
      await until(
        'both processes serve',
        async () => (await countChecks(first.own)) > 100 && (await countChecks(second.own)) > 100,
      )

      const exit = await first.process.stop()
      expect(exit).toEqual({ code: 0, signal: null })
      const atStop = served
      await until('the other process serves', () => served > atStop + 1_000)
      isStopping = true
      await Promise.all(clients)
      expect({ statuses: [...statuses], lost }).toEqual({ statuses: [200], lost: [] })
      expect((await sendRequest(`${second.own}/readyz`, 'GET')).status).toBe(200)
      await expect(sendRequest(`${first.own}/readyz`, 'GET')).rejects.toThrow()

      const { body } = await sendRequest(`${second.operatorUrl}/api/v1/overview`, 'GET', undefined, {
        Authorization: 'Bearer operator-token',
      })
      // Both stored a sample when they started, each as a replica of its own.
      expect(body.replicas).toHaveLength(2)
    } finally {
      await Promise.all([first.process.stop(), second.process.stop()])
    }
  })

  test('a process that waits for the database leaves the port to the others', async () => {
    const port = await freePort()
    const lines: string[] = []
    const processPort = await freePort()
    const waiting = startNode({
      entry: toApiEntry(),
      env: {
        PORT: String(port),
        PDM_PROCESS_PORT: String(processPort),
        PDM_DATABASE_URL: `postgres://127.0.0.1:${await freePort()}/none`,
        DNSPROVIDER_KIND: 'local',
      },
      onLine: line => lines.push(line),
    })
    try {
      await until('the process waits', () => lines.some(line => line.includes('waiting for database')))
      expect((await sendRequest(`http://127.0.0.1:${processPort}/readyz`, 'GET')).status).toBe(503)
      const code = await new Promise(resolve => {
        connect(port, '127.0.0.1').on('error', (error: NodeJS.ErrnoException) => resolve(error.code))
      })
      expect(code).toBe('ECONNREFUSED')
    } finally {
      await waiting.stop()
    }
  })

  test('a port without PDM_PROCESS_PORT is not shared', async () => {
    const port = String(await freePort())
    const first = await startApi(database.url, { ...smallPoolEnv, PORT: port })
    try {
      const { code } = await startNode({
        entry: toApiEntry(),
        env: { PORT: port, PDM_PROCESS_PORT: '0', PDM_DATABASE_URL: database.url, DNSPROVIDER_KIND: 'local' },
      }).exited
      expect(code).toBe(1)
    } finally {
      await first.process.stop()
    }
  })
})
