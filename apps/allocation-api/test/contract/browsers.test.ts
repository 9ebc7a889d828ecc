import { encodeRequest, HttpConnection, type HttpRequest, type HttpResponse } from '@pool/test-kit/http1.ts'
import { startApi } from '@pool/test-kit/services.ts'
import { describe, expect, test } from 'vitest'
import { poolPath, startTestService } from '../support/service.ts'
import { expectContract } from '../support/validate.ts'

const token = 'operator-token-of-tests'
const gate = 'https://console.example'
const { api, database } = await startTestService({
  PDM_OPERATOR_TOKENS: token,
  PDM_ALLOWED_ORIGINS: ` ${gate.toUpperCase()} , http://[::1]:3000`,
})

const portOf = (url: string | null): number => Number(new URL(url ?? '').port)
const ports = { 'in-cluster': portOf(api.url), operator: portOf(api.operatorUrl) }
const bearer = `Authorization: Bearer ${token}`

/** Sends exactly these header lines to a listener of the API. */
const send = async (request: HttpRequest, port = ports['in-cluster']): Promise<HttpResponse> => {
  using connection = await HttpConnection.open(port)
  const response = await connection.send(encodeRequest(request))
  expect([...response.headers.keys()].filter(name => name.startsWith('access-control-'))).toEqual([])
  if (response.status !== 400) expectContract(request.method ?? 'GET', request.path, response)
  return response
}
const sendReserve = (subdomain: string, headers: readonly string[], port?: number) =>
  send({ method: 'POST', path: `${poolPath}/reserve`, headers, body: JSON.stringify({ subdomain }) }, port)
const codeOf = (response: HttpResponse) => (JSON.parse(response.text) as { error?: string }).error
const isAvailable = async (subdomain: string): Promise<boolean> =>
  (await api.call('GET', `${poolPath}/check?sub=${subdomain}`)).body.available

test.each(['in-cluster', 'operator'] as const)(
  'a page of another site cannot write, as a form or a script without preflight would: %s',
  async listener => {
    const subdomain = `forged-${listener}`
    const headers = ['Host: evil.example', 'Origin: https://other.example', 'Content-Type: text/plain', bearer]
    const response = await sendReserve(subdomain, headers, ports[listener])
    expect([response.status, codeOf(response)]).toEqual([403, 'forbidden'])
    expect(await isAvailable(subdomain)).toBe(true)
  },
)

describe('403 forbidden', () => {
  test.each<readonly [rule: string, headers: readonly string[]]>([
    ['Sec-Fetch-Site: cross-site', ['Sec-Fetch-Site: cross-site']],
    ['two Sec-Fetch-Site headers', ['Sec-Fetch-Site: same-origin', 'Sec-Fetch-Site: cross-site']],
    ['the Origin of another host', ['Host: a.test', 'Origin: http://b.test']],
    ['an empty Origin', ['Origin:']],
    ['two equal Origin headers', ['Host: a.test', 'Origin: http://a.test', 'Origin: http://a.test']],
    ['two Origin headers, one of them listed', [`Origin: ${gate}`, 'Origin: https://evil.example']],
  ])('%s', async (_, headers) => {
    const response = await sendReserve('rejected', headers)
    expect([response.status, codeOf(response)]).toEqual([403, 'forbidden'])
    expect(await isAvailable('rejected')).toBe(true)
  })
})

describe('passes', () => {
  test.each<readonly [rule: string, headers: readonly string[]]>([
    ['a program without these headers', []],
    ['same-origin, whatever Host is', ['Sec-Fetch-Site: same-origin', 'Host: b.test', 'Origin: https://a.test']],
    ['the Origin of the host', ['Host: a.test:8080', 'Origin: http://a.test:8080']],
    ['a listed origin', [`Origin: ${gate}`]],
    ['a listed origin, IPv6', ['Sec-Fetch-Site: same-site', 'Origin: http://[::1]:3000']],
  ])('%s', async (rule, headers) => {
    const subdomain = `p${Buffer.from(rule).toString('hex').slice(0, 60)}`
    expect((await sendReserve(subdomain, headers)).status).toBe(201)
  })
})

test.each([
  ['GET', '/healthz'],
  ['GET', '/metrics'],
  ['GET', '/openapi.json'],
  ['GET', '/docs'],
  ['GET', `${poolPath}/list`],
  ['GET', '/nope'],
  ['DELETE', `${poolPath}/release?sub=acme`],
  ['PUT', `${poolPath}/reserve`],
])('every path is protected, before the token is checked: %s %s', async (method, path) => {
  for (const port of Object.values(ports)) {
    const response = await send({ method, path, headers: ['Sec-Fetch-Site: cross-site'] }, port)
    expect([response.status, codeOf(response)]).toEqual([403, 'forbidden'])
  }
})

test('no response to a preflight permits anything', async () => {
  const preflight = ['Access-Control-Request-Method: POST', 'Access-Control-Request-Headers: content-type']
  const request = { method: 'OPTIONS', path: `${poolPath}/reserve` }
  const foreign = [...preflight, 'Sec-Fetch-Site: cross-site', 'Origin: https://evil.example']
  expect((await send({ ...request, headers: foreign })).status).toBe(403)
  expect((await send({ ...request, headers: [...preflight, `Origin: ${gate}`] })).status).toBe(405)
})

test('the log has the outcome of a rejected request', async () => {
  await send({ path: `${poolPath}/list`, headers: ['X-Request-Id: from-a-page', 'Sec-Fetch-Site: cross-site'] })
  const logged = () => api.lines.filter(line => line.includes('"from-a-page"')).map(line => JSON.parse(line))
  await expect.poll(logged).toMatchObject([{ status: 403, outcome: 'forbidden' }])
})

test('two Host headers are 400: RFC 9112 section 3.2', async () => {
  const response = await send({ path: '/livez', headers: ['Host: a.test', 'Host: b.test'] })
  expect([response.status, codeOf(response)]).toEqual([400, 'invalid-format'])
})

describe('PDM_LOOPBACK_HOSTS_ONLY, which start sets', () => {
  test('a page whose domain is rebound to this machine cannot write, although its Origin is its Host', async () => {
    const local = await startApi(database.url, { PDM_LOOPBACK_HOSTS_ONLY: 'true', PDM_SWEEPER_INTERVAL: '1h' })
    const headers = ['Host: evil.example', 'Origin: http://evil.example', 'Content-Type: text/plain']
    const response = await sendReserve('rebound', headers, portOf(local.url))
    expect([response.status, codeOf(response)]).toEqual([403, 'forbidden'])
    expect(await isAvailable('rebound')).toBe(true)
    await local.process.stop()
  })

  test('only loopback names reach the API', async () => {
    const local = await startApi(database.url, { PDM_LOOPBACK_HOSTS_ONLY: 'true', PDM_SWEEPER_INTERVAL: '1h' })
    const port = portOf(local.url)
    const statusOf = async (...headers: string[]) => (await send({ path: '/livez', headers }, port)).status
    try {
      for (const host of ['localhost', `LOCALHOST:${port}`, '127.0.0.1:1', '127.9.9.9', '[::1]:8080', 'a.localhost.']) {
        expect([host, await statusOf(`Host: ${host}`)]).toEqual([host, 200])
      }
      const foreign = [
        'evil.example',
        `evil.example:${port}`,
        '127.0.0.1.evil.example',
        'localhost.evil.example',
        '10.0.0.1',
      ]
      for (const host of [...foreign, '0.0.0.0', '[::2]', 'notlocalhost']) {
        expect([host, await statusOf(`Host: ${host}`, 'Sec-Fetch-Site: same-origin')]).toEqual([host, 403])
      }
    } finally {
      await local.process.stop()
    }
  })
})

test('with PDM_ALLOWED_HOSTS, another Host is 403, except for probes', async () => {
  await using limited = await startApi(database.url, {
    PDM_OPERATOR_TOKENS: token,
    PDM_ALLOWED_HOSTS: 'api.test, ::1',
    PDM_SWEEPER_INTERVAL: '1h',
  })
  const check = `${poolPath}/check?sub=a`
  const statusOf = async (port: number, host: string, path: string) => {
    const origin = `Origin: http://${host}`
    return (await send({ path, headers: [`Host: ${host}`, 'Sec-Fetch-Site: same-origin', origin, bearer] }, port))
      .status
  }
  for (const port of [portOf(limited.url), portOf(limited.operatorUrl)]) {
    for (const host of ['api.test', 'API.test.', 'api.test:9', '[::1]', '[::1]:80'])
      expect(await statusOf(port, host, check), host).toBe(200)
    for (const host of [
      'evil.example',
      'api.test.evil.example',
      'localhost',
      '127.0.0.1',
      'evil-api.test',
      'x.api.test',
    ])
      for (const path of [check, '/docs', '/no-such-route']) expect(await statusOf(port, host, path), host).toBe(403)
    for (const path of ['/livez', '/readyz', '/healthz', '/metrics'])
      expect(await statusOf(port, 'evil.example', path)).toBe(200)
  }
  expect(await statusOf(portOf(limited.operatorUrl), 'evil.example', '/console')).toBe(403)
})
