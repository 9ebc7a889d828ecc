import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { listenOnLoopback } from '@pool/dev/ports'
import { until } from '@pool/test-kit/poll.ts'
import { startApi } from '@pool/test-kit/services.ts'
import { afterAll, expect, test } from 'vitest'
import * as z from 'zod'
import { createTestDatabase } from '../support/database.ts'
import { apiKey, testWithDynadot } from '../support/dynadot-fixture.ts'
import { commit, reserveToken } from '../support/operations.ts'

const exportRequest = z.object({
  resourceSpans: z.array(
    z.object({
      resource: z.object({ attributes: z.array(z.object({ key: z.string(), value: z.unknown() })) }),
      scopeSpans: z.array(
        z.object({
          spans: z.array(
            z.object({
              traceId: z.string(),
              spanId: z.string(),
              parentSpanId: z.string().default(''),
              name: z.string(),
            }),
          ),
        }),
      ),
    }),
  ),
})

/** An OTLP/HTTP receiver. */
const startCollector = async () => {
  const texts: string[] = []
  const server = createServer(async (request, response) => {
    let text = ''
    for await (const chunk of request.setEncoding('utf8')) text += chunk
    if (request.url === '/v1/traces' && request.headers['api-key'] === 'a,b') texts.push(text)
    response.writeHead(200, { 'Content-Type': 'application/json' }).end('{}')
  })
  const port = await listenOnLoopback(server)
  return {
    url: `http://127.0.0.1:${port}`,
    texts,
    spans: () =>
      texts
        .flatMap(text => exportRequest.parse(JSON.parse(text)).resourceSpans)
        .flatMap(({ scopeSpans }) => scopeSpans)
        .flatMap(({ spans }) => spans),
    close: () => server.close(),
  }
}

const collector = await startCollector()
afterAll(() => void collector.close())
const folder = mkdtempSync(join(tmpdir(), 'traces-'))
afterAll(() => rmSync(folder, { recursive: true }))
writeFileSync(join(folder, 'headers'), 'api-key=a%2Cb')
const tracingEnv = {
  OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
  OTEL_EXPORTER_OTLP_HEADERS_FILE: join(folder, 'headers'),
}

/** Each span of a trace as the names from its root. */
const toPaths = (traceId: string): string[] => {
  const spans = new Map(
    collector
      .spans()
      .filter(span => span.traceId === traceId)
      .map(span => [span.spanId, span]),
  )
  const toPath = (id: string): string => {
    const span = spans.get(id)
    return span ? `${toPath(span.parentSpanId)} > ${span.name}` : id
  }
  return [...spans.keys()].map(toPath)
}

testWithDynadot(
  'a commit is one trace, which continues that of the client and reaches the DNS provider',
  { env: { ...tracingEnv, OTEL_SERVICE_NAME: 'names-of-eu' } },
  async ({ api }) => {
    const tokens: string[] = []
    const traces: { readonly traceId: string; readonly parentId: string }[] = []
    // The periodic search can find a new name before its own request does. That sync is then in a trace of its own.
    for (let i = 0; i < 5; i += 1) {
      const [traceId, parentId] = [randomBytes(16).toString('hex'), randomBytes(8).toString('hex')]
      const token = await reserveToken(api, `traced-${i}`)
      const traceparent = `00-${traceId}-${parentId}-01`
      expect((await commit(api, `traced-${i}`, token, '192.0.2.17', { traceparent })).status).toBe(200)
      tokens.push(token)
      traces.push({ traceId, parentId })
    }
    const isWhole = (paths: readonly string[]) =>
      paths.some(path => path.endsWith('> dns provider apply')) && paths.some(path => path.endsWith('/commit'))
    const trace = await until('a trace reaches the provider', () =>
      traces.find(({ traceId }) => isWhole(toPaths(traceId))),
    )
    const request = `${trace.parentId} > POST /api/v1/pool/:domain/commit`
    const sync = `${request} > dns sync`
    expect(toPaths(trace.traceId)).toEqual(
      expect.arrayContaining([
        request,
        `${request} > sql allocation.commit`,
        sync,
        `${sync} > sql reconciler.findDue`,
        `${sync} > dns provider read`,
        `${sync} > sql reconciler.markAttempted`,
        `${sync} > dns provider apply`,
        `${sync} > sql reconciler.saveOutcomes`,
      ]),
    )
    const text = collector.texts.join('\n')
    expect(text).toContain('names-of-eu')
    for (const secret of [...tokens, apiKey, 'traced-', '192.0.2.17']) expect(text).not.toContain(secret)
  },
)

test('a trace that the client does not sample is not exported, and probes are no traces', async () => {
  const database = await createTestDatabase({ connections: 1 })
  const api = await startApi(database.url, tracingEnv)
  const [unsampled, sampled] = [randomBytes(16).toString('hex'), randomBytes(16).toString('hex')]
  const send = (path: string, traceId: string, flags: string) =>
    api.call('GET', path, undefined, { traceparent: `00-${traceId}-${'1'.repeat(16)}-${flags}` })
  await send('/api/v1/reserved', unsampled, '00')
  await send('/readyz', sampled, '01')
  await send('/api/v1/reserved', sampled, '01')
  // A shutdown exports the rest.
  await api.process.stop()
  await database.drop()
  expect(toPaths(unsampled)).toEqual([])
  expect(toPaths(sampled)).toEqual([`${'1'.repeat(16)} > GET /api/v1/reserved`])
})

test('a collector that does not respond delays neither requests nor the shutdown beyond its limit', async () => {
  const database = await createTestDatabase({ connections: 1 })
  const api = await startApi(database.url, { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1' })
  expect((await api.call('GET', '/api/v1/reserved')).status).toBe(200)
  expect((await api.process.stop()).code).toBe(0)
  await database.drop()
})
