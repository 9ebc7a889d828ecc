import { randomBytes } from 'node:crypto'
import { createServer } from 'node:http'
import { listenOnLoopback } from '@pool/dev/ports'
import { type ApiResponse, startApi } from '@pool/test-kit/services.ts'
import { afterAll, describe, expect, test } from 'vitest'
import { providerKinds } from '../../src/dns/registry.ts'
import { createTestDatabase } from '../support/database.ts'
import { commit, pool, reserveToken } from '../support/operations.ts'

const createMarker = () => `mark${randomBytes(12).toString('hex')}`
const operatorToken = 'operator-token-of-tests'

/** Responds to every request with an error that quotes it, in the format of each provider's API. */
const startEcho = async () => {
  let requestCount = 0
  const server = createServer((request, response) => {
    const text = `cannot do ${request.method} ${request.url} ${JSON.stringify(request.headers)}`
    requestCount += 1
    // Dynadot returns 200 for errors too.
    const status = request.url?.includes('command=') ? 200 : [500, 400, 422, 403][requestCount % 4]
    response.writeHead(status ?? 500, { 'Content-Type': 'application/json', 'X-Echo': text })
    const error = { ResponseCode: '-1', Status: 'error', Error: text }
    response.end(
      JSON.stringify({ success: false, errors: [{ code: 81_000, message: text }], error: text, Response: error }),
    )
  })
  const port = await listenOnLoopback(server)
  return { port, requestCount: () => requestCount, close: () => server.close() }
}

const echo = await startEcho()
afterAll(() => echo.close())

/** The environment with which a provider of this kind sends `key` to the echo server. */
const createEnv = (kind: string, key: string): Record<string, string> => {
  const url = `http://127.0.0.1:${echo.port}/api`
  switch (kind) {
    case 'cloudflare':
      return { PDM_TEST_SETTINGS: JSON.stringify({ providerUrl: url }), DNSPROVIDER_CLOUDFLARE_API_TOKEN: key }
    case 'dynadot':
      return { PDM_TEST_SETTINGS: JSON.stringify({ providerUrl: url }), DNSPROVIDER_DYNADOT_API_KEY: key }
    case 'powerdns':
      return { DNSPROVIDER_POWERDNS_URL: url, DNSPROVIDER_POWERDNS_API_KEY: key }
    case 'rfc2136':
      return {
        DNSPROVIDER_RFC2136_HOST: '127.0.0.1',
        DNSPROVIDER_RFC2136_PORT: String(echo.port),
        DNSPROVIDER_RFC2136_TSIG_NAME: 'key.test',
        DNSPROVIDER_RFC2136_TSIG_SECRET: Buffer.from(key).toString('base64'),
      }
    default:
      throw new Error(`${kind}: add the variable of its key here`)
  }
}

describe("no response, log line, metric or row contains a provider's key, even if the provider quotes it", () => {
  test.each(providerKinds.filter(kind => kind !== 'local'))('%s', async kind => {
    const key = createMarker()
    const database = await createTestDatabase({ connections: 2 })
    const api = await startApi(database.url, {
      ...createEnv(kind, key),
      DNSPROVIDER_KIND: kind,
      PDM_LOG_LEVEL: 'trace',
      PDM_OPERATOR_TOKENS: operatorToken,
    })
    const texts: string[] = []
    const recordResponse = (response: ApiResponse): ApiResponse => {
      texts.push(JSON.stringify([...response.headers]), response.text)
      return response
    }
    const asOperator = (method: string, path: string) =>
      fetch(`${api.operatorUrl}/api/v1/pool/${pool}/${path}`, {
        method,
        headers: { Authorization: `Bearer ${operatorToken}` },
      })
    for (const name of ['one', 'two', 'three', 'four']) {
      const response = recordResponse(await commit(api, name, await reserveToken(api, name)))
      expect(response.status).toBe(202)
      recordResponse(await api.call('GET', `/api/v1/pool/${pool}/allocations/${name}`))
    }
    for (const query of ['?dryRun=true', '']) {
      const response = await asOperator('POST', `converge${query}`)
      expect(response.status).toBe(503)
      texts.push(JSON.stringify([...response.headers]), await response.text())
    }
    for (const path of ['/metrics', `/api/v1/pool/${pool}/list`, `/api/v1/pool/${pool}/history`])
      recordResponse(await api.call('GET', path))
    for (const table of ['dns_names', 'allocation_history', 'dns_zones'])
      texts.push(JSON.stringify(await database.sql`select * from ${database.sql(table)}`))
    await api.process.stop()
    texts.push(...api.lines)
    await database.drop()

    expect(texts.join('\n')).toContain('failing')
    for (const encoding of [key, Buffer.from(key).toString('base64'), Buffer.from(key).toString('hex')])
      expect(texts.filter(text => text.toLowerCase().includes(encoding.toLowerCase()))).toEqual([])
  })

  test('the echo server received requests with a key', () => expect(echo.requestCount()).toBeGreaterThan(3))
})
