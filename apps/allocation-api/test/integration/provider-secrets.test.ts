import { randomBytes } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, describe, expect, test } from 'vitest'
import { providerKinds } from '../../src/dns/registry.ts'
import { type ApiResponse, startApi } from '../support/api.ts'
import { createTestDatabase, missingDsn, testDsn } from '../support/database.ts'
import { commit, pool, reserveToken } from '../support/operations.ts'

if (!testDsn) process.stderr.write(`${missingDsn}\n`)

const mark = () => `mark${randomBytes(12).toString('hex')}`
const operatorToken = 'operator-token'

/** Answers everything with an error that quotes the whole request, in the shape of each provider's API. */
const startEcho = async () => {
  let asked = 0
  const server = createServer((request, response) => {
    const text = `cannot do ${request.method} ${request.url} ${JSON.stringify(request.headers)}`
    asked += 1
    // Dynadot says 200 to everything.
    const status = request.url?.includes('command=') ? 200 : [500, 400, 422, 403][asked % 4]
    response.writeHead(status ?? 500, { 'Content-Type': 'application/json', 'X-Echo': text })
    const error = { ResponseCode: '-1', Status: 'error', Error: text }
    response.end(
      JSON.stringify({ success: false, errors: [{ code: 81_000, message: text }], error: text, Response: error }),
    )
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return { port, asked: () => asked, close: () => server.close() }
}

const echo = await startEcho()
afterAll(() => echo.close())

/** What makes a provider of that kind ask the echo, with a key that would be known anywhere. */
const envOf = (kind: string, key: string): Record<string, string> => {
  const url = `http://127.0.0.1:${echo.port}/api`
  switch (kind) {
    case 'cloudflare':
      return { DNSPROVIDER_CLOUDFLARE_URL: url, DNSPROVIDER_CLOUDFLARE_API_TOKEN: key }
    case 'dynadot':
      return { DNSPROVIDER_DYNADOT_URL: url, DNSPROVIDER_DYNADOT_API_KEY: key }
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
      throw new Error(`${kind}: say where its key stands`)
  }
}

describe.skipIf(!testDsn)(
  "a provider's key is in no answer, log, metric or row, even where the provider quotes it",
  () => {
    test.each(providerKinds.filter(kind => kind !== 'local'))('%s', async kind => {
      const key = mark()
      const database = await createTestDatabase({ connections: 2 })
      const api = await startApi(database.url, {
        ...envOf(kind, key),
        DNSPROVIDER_KIND: kind,
        PDM_LOG_LEVEL: 'trace',
        PDM_OPERATOR_TOKENS: operatorToken,
      })
      const said: string[] = []
      const note = (answer: ApiResponse): ApiResponse => {
        said.push(JSON.stringify([...answer.headers]), answer.text)
        return answer
      }
      const asOperator = (method: string, path: string) =>
        fetch(`${api.operatorUrl}/api/v1/pool/${pool}/${path}`, {
          method,
          headers: { Authorization: `Bearer ${operatorToken}` },
        })
      for (const name of ['one', 'two', 'three', 'four']) {
        const answer = note(await commit(api, name, await reserveToken(api, name)))
        expect(answer.status).toBe(202)
        note(await api.call('GET', `/api/v1/pool/${pool}/allocations/${name}`))
      }
      for (const query of ['?dryRun=true', '']) {
        const answer = await asOperator('POST', `converge${query}`)
        expect(answer.status).toBe(503)
        said.push(JSON.stringify([...answer.headers]), await answer.text())
      }
      for (const path of ['/metrics', `/api/v1/pool/${pool}/list`, `/api/v1/pool/${pool}/history`])
        note(await api.call('GET', path))
      for (const table of ['dns_names', 'allocation_history', 'dns_zones'])
        said.push(JSON.stringify(await database.sql`select * from ${database.sql(table)}`))
      await api.process.stop()
      said.push(...api.lines)
      await database.drop()

      expect(said.join('\n')).toContain('failing')
      for (const spelling of [key, Buffer.from(key).toString('base64'), Buffer.from(key).toString('hex')])
        expect(said.filter(text => text.toLowerCase().includes(spelling.toLowerCase()))).toEqual([])
    })

    test('they were asked, and had a key to quote', () => expect(echo.asked()).toBeGreaterThan(3))
  },
)
