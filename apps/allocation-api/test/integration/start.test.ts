import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { timed } from '@pool/test-kit/poll.ts'
import { runUntilExit, sendRequest, startApi, toApiEntry } from '@pool/test-kit/services.ts'
import { afterAll, describe, expect, test } from 'vitest'
import { useTestDatabase } from '../support/database.ts'

const entry = toApiEntry()
const database = await useTestDatabase({ schema: false, connections: 2 })

/** Runs the process until it exits. */
const run = async (env: Record<string, string>, command = 'main') => {
  const { result, ms } = await timed(() => runUntilExit({ entry: toApiEntry(command), env }))
  return { ...result, seconds: ms / 1_000 }
}

/** Listens on a port until the end of the tests. */
const occupyPort = async (): Promise<number> => {
  const server = createServer()
  server.listen(0)
  await once(server, 'listening')
  afterAll(() => server.close())
  const address = server.address()
  return typeof address === 'object' && address ? address.port : 0
}

const good = { PORT: '0', PDM_DATABASE_URL: database.url }

test.concurrent('exit code 1 immediately if the database does not exist, with one line that names the variable', async () => {
  const url = Object.assign(new URL(database.url), { pathname: '/no_such_database' }).href
  const { code, lines } = await run({ PORT: '0', PDM_DATABASE_URL: url, PDM_LOG_LEVEL: 'fatal' })
  expect(lines).toEqual([expect.stringContaining('PDM_DATABASE_URL')])
  expect(code).toBe(1)
})

describe.concurrent('exit code 2 with one line that names every invalid variable and reveals no secret', () => {
  test.each<Record<string, string>>([
    { PDM_LOG_LEVEL: 'loud' },
    {
      HTTPS_PROXY: 'http://mark-user:mark-password@proxy:port',
      HTTP_PROXY: 'mark-proxy://',
      NO_PROXY: 'http://mark-host',
    },
    { DNSPROVIDER_KIND: 'local', DNSPROVIDER_MANAGED_DOMAINS: 'a.test,pool.cloud' },
    {
      PORT: 'http',
      PDM_DATABASE_URL: '',
      PDM_RESERVATION_TTL: '600',
      OBJECT_STORAGE_CA_FILE: '/no/such/file.pem',
      PDM_DATABSE_URL: 'mark-misspelt',
    },
    {
      PORT: '65536',
      PDM_DATABASE_URL: 'mysql://user:mark-password@host/db',
      PDM_SWEEPER_INTERVAL: 'often',
      PDM_OPERATOR_TOKENS: 'mark-token with space',
      OBJECT_STORAGE_CA_FILE: entry,
    },
    {
      PDM_DATABASE_URL: 'postgres://user:mark-password%zz@127.0.0.1:1/db',
      DNSPROVIDER_MANAGED_DOMAINS: 'pool..test',
      DNSPROVIDER_KIND: 'nobody',
    },
  ])('%j', async invalid => {
    const { code, lines } = await run({ ...good, ...invalid })
    expect(lines).toHaveLength(1)
    for (const variable of Object.keys(invalid)) expect(lines[0]).toContain(variable)
    expect(lines[0]).not.toMatch(/mark-/)
    expect(code).toBe(2)
  })
})

test.concurrent('exit code 2 if the required variable is missing, too', async () => {
  const faulty = {
    PORT: '-1',
    PDM_RESERVATION_TTL: '10 minutes',
    PDM_SWEEPER_INTERVAL: '0s',
    PDM_LOG_LEVEL: 'loud',
    DNSPROVIDER_MANAGED_DOMAINS: 'good.test,-bad',
    DNSPROVIDER_RECORD_TTL: '300',
    PDM_OPERATOR_ONLY_LIST: 'perhaps',
    OBJECT_STORAGE_CA_FILE: '/',
    OBJECT_STORAGE_DOMAIN: 'https://s3.test',
  }
  const { code, lines } = await run(faulty)
  expect([code, lines.length]).toEqual([2, 1])
  for (const variable of [...Object.keys(faulty), 'PDM_DATABASE_URL']) expect(lines[0]).toContain(variable)
})

test.concurrent('exit code 2 of migrate names a misspelt variable beside the missing one', async () => {
  const { code, lines } = await run({ PDM_DATABSE_URL: 'mark-misspelt' }, 'migrate')
  expect(lines).toEqual([
    expect.stringMatching(
      /^configuration: PDM_DATABASE_URL is required.*PDM_DATABSE_URL .* did you mean PDM_DATABASE_URL/,
    ),
  ])
  expect(lines[0]).not.toContain('mark-')
  expect(code).toBe(2)
})

describe.concurrent('exit code 1 with one line if a port is in use', () => {
  test.each(['PORT', 'PDM_OPERATOR_PORT', 'DNSPROVIDER_LOCAL_PORT'])('%s', async variable => {
    const port = await occupyPort()
    const { code, lines } = await run({
      ...good,
      PDM_OPERATOR_TOKENS: 'token-of-these-tests',
      PDM_OPERATOR_PORT: '0',
      PDM_LOG_LEVEL: 'error',
      [variable]: String(port),
    })
    expect([code, lines.length]).toEqual([1, 1])
    expect(lines[0]).toContain(variable)
    expect(lines[0]).toContain(String(port))
  })
})

// Linux answers on every address of 127.0.0.0/8.
describe.runIf(process.platform === 'linux')('PDM_LISTEN_ADDRESS', () => {
  test.concurrent('both listeners are reachable at this address only', async () => {
    const api = await startApi(database.url, {
      PDM_LISTEN_ADDRESS: '127.0.0.1',
      PDM_OPERATOR_TOKENS: 'operator-token-of-tests',
    })
    for (const url of [api.url, api.operatorUrl]) {
      const { port } = new URL(url ?? '')
      expect((await fetch(`http://127.0.0.1:${port}/livez`)).status).toBeLessThan(500)
      await expect(fetch(`http://127.0.0.2:${port}/livez`)).rejects.toMatchObject({ cause: { code: 'ECONNREFUSED' } })
    }
    await api.process.kill()
  })

  test.concurrent('exit code 1 with the variable if this machine does not have the address', async () => {
    const { code, lines } = await run({ ...good, PDM_LISTEN_ADDRESS: '192.0.2.1', PDM_LOG_LEVEL: 'fatal' })
    expect(lines).toEqual([
      expect.stringMatching(/PDM_LISTEN_ADDRESS: .* correct PDM_LISTEN_ADDRESS \(EADDRNOTAVAIL\)/),
    ])
    expect(code).toBe(1)
  })
})

test.concurrent('it listens on PORT and PDM_OPERATOR_PORT, and the line "ready" contains both', async () => {
  const api = await startApi(database.url, { PDM_OPERATOR_TOKENS: 'token-of-these-tests' })
  expect((await sendRequest(`${api.url}/readyz`, 'GET')).body).toEqual({ status: 'ok' })
  expect(
    (await sendRequest(`${api.operatorUrl}/readyz`, 'GET', undefined, { Authorization: 'Bearer token-of-these-tests' }))
      .status,
  ).toBe(200)
  expect(await api.process.stop()).toEqual({ code: 0, signal: null })
})

test.concurrent('secrets come from files, and a misspelt variable and a short token are logged without their values', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'secret-files-'))
  await writeFile(join(folder, 'url'), `${database.url}\n`)
  await writeFile(join(folder, 'tokens'), 'mark-token-0123456789\n')
  const api = await startApi('', {
    PDM_DATABASE_URL_FILE: join(folder, 'url'),
    PDM_OPERATOR_TOKENS_FILE: join(folder, 'tokens'),
    DNSPROVIDER_MANGED_DOMAINS: 'mark.test',
  })
  const authorization = { Authorization: 'Bearer mark-token-0123456789' }
  expect((await sendRequest(`${api.operatorUrl}/readyz`, 'GET', undefined, authorization)).status).toBe(200)
  await api.process.stop()
  await rm(folder, { recursive: true })
  const warnings = api.lines.map(line => JSON.parse(line)).filter(({ msg }) => msg === 'questionable configuration')
  expect(warnings).toMatchObject([
    { variable: 'DNSPROVIDER_MANGED_DOMAINS', detail: expect.stringContaining('DNSPROVIDER_MANAGED_DOMAINS?') },
    { variable: 'PDM_OPERATOR_TOKENS', detail: expect.stringContaining('32 characters') },
  ])
  expect(api.lines.join()).not.toContain('mark')
})

test.concurrent('managed domains: the list, then the legacy variable, then the built-in default', async () => {
  const getDomains = async (env: Record<string, string>) => {
    const api = await startApi(database.url, env)
    const { body } = await sendRequest(`${api.url}/healthz`, 'GET')
    await api.process.stop()
    return body.managedDomains
  }
  const list = 'B.test\n a.test.,b.test'
  expect(await getDomains({ DNSPROVIDER_MANAGED_DOMAINS: list, DNSPROVIDER_DOMAIN: 'c.test' })).toEqual([
    'b.test',
    'a.test',
  ])
  expect(await getDomains({ DNSPROVIDER_MANAGED_DOMAINS: ' ,, ', DNSPROVIDER_DOMAIN: 'C.test.' })).toEqual(['c.test'])
  expect(await getDomains({})).toEqual(['pool.test'])
})

test.concurrent('PDM_LOG_LEVEL suppresses lines of lower levels', async () => {
  const { lines, code } = await run({
    ...good,
    PDM_LOG_LEVEL: 'silent',
    PDM_OPERATOR_TOKENS: 'token-of-these-tests',
    PDM_OPERATOR_PORT: String(await occupyPort()),
  })
  expect([lines.length, code]).toEqual([1, 1])
})
