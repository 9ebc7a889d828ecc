import { chmodSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { freePort } from '@pool/dev/ports'
import { until } from '@pool/test-kit/poll.ts'
import { startAllocationApi, type TestAllocationApi } from '@pool/testing'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createCliFolder, runPoolctl } from './support/cli.ts'

let api: TestAllocationApi
const home = createCliFolder()
const file = (name: string) => join(home.folder, name)
const printed: string[] = []
const run = async (line: string, env: object = {}) => {
  const result = await runPoolctl(line.split(' '), { env: { ...home.env, ...env }, fetch: globalThis.fetch })
  printed.push(result.stdout, result.stderr)
  return result
}

beforeAll(async () => {
  api = await startAllocationApi({ env: { PDM_RECORDS: 'records' } })
  await run(`contexts set test --api ${api.url}`)
  await run('names reserve acme.pool.test')
  await run('names commit acme.pool.test --address 203.0.113.10 --wait')
  expect(
    await run(
      `records tokens mint acme.pool.test --scope records --out-file ${file('token')} --accounts-file ${file('accounts')}`,
    ),
  ).toMatchObject({ exitCode: 0, stdout: expect.stringMatching(/scope: +records/) })
})
afterAll(async () => {
  await api?.stop()
  home[Symbol.dispose]()
})
const token = () => readFileSync(file('token'), 'utf8').trim()

test('tokens are written to files that only the user can read, listed by id, and deleted', async () => {
  expect(token()).toMatch(/^pdr_[\w-]{43}$/)
  expect(JSON.parse(readFileSync(file('accounts'), 'utf8'))['acme.pool.test'].password).toBe(token())
  for (const name of ['token', 'accounts']) expect(statSync(file(name)).mode & 0o077).toBe(0)
  const mint = `records tokens mint acme.pool.test --scope acme --owner certs --expires-in-days 9 -o json`
  const minted = JSON.parse((await run(`${mint} --out-file ${file('other')}`)).stdout)
  expect(minted).toMatchObject({ scope: 'acme', owner: 'certs', fqdn: 'acme.pool.test' })
  expect(await run(mint)).toMatchObject({ exitCode: 2, stderr: expect.stringContaining('--out-file') })
  expect((await run('records tokens list acme.pool.test -o name')).stdout).toContain(minted.id)
  expect(await run(`records tokens delete ${minted.id} acme.pool.test --yes`)).toMatchObject({ exitCode: 0 })
  expect((await run('records tokens list acme.pool.test -o name')).stdout).not.toContain(minted.id)
})

test.each([
  ['a flag', () => ` --token-file ${file('token')}`, () => ({})],
  ['the environment', () => '', () => ({ PDM_RECORDS_TOKEN_FILE: file('token') })],
])('records are set, listed and deleted with the token of %s, also of a mounted Secret', async (_, toFlag, toEnv) => {
  chmodSync(file('token'), 0o444)
  const records = (line: string) => run(`records ${line}${toFlag()}`, toEnv())
  const set = await records('set shop.acme.pool.test A 203.0.113.20 203.0.113.21 --ttl 5m')
  expect(set).toMatchObject({ exitCode: 0, stdout: expect.stringMatching(/shop\.acme\.pool\.test +A +300/) })
  expect((await records('list -o name')).stdout).toBe('shop.acme.pool.test\n')
  expect(await records('set console.acme.pool.test A 203.0.113.20')).toMatchObject({
    exitCode: 3,
    stderr: expect.stringContaining('template-record'),
  })
  expect(await records('delete shop.acme.pool.test A')).toMatchObject({ exitCode: 0 })
  expect((await records('list')).stderr).toBe('No records of tenants at or below acme.pool.test.\n')
})

test('nothing printed has a token', () => {
  expect(printed.filter(text => text.includes('pdr_'))).toEqual([])
})

describe('the webhook', () => {
  const type = 'application/external.dns.webhook+json;version=1'
  /** Starts the webhook for the service at this address. */
  const startWebhook = async (url: string) => {
    const port = await freePort()
    const stop = new AbortController()
    const line = `records webhook --api ${url} --token-file ${file('token')} --port ${port}`
    const ended = runPoolctl(line.split(' '), { interrupted: stop.signal })
    const send = async (method: string, path: string, body?: string, headers: Record<string, string> = {}) => {
      const init = { method, headers: { Accept: type, ...headers }, ...(body && { body }) }
      const response = await fetch(`http://localhost:${port}${path}`, init)
      return { status: response.status, type: response.headers.get('content-type'), text: await response.text() }
    }
    await until('the webhook listens', () =>
      send('GET', '/nothing').then(
        () => true,
        () => false,
      ),
    )
    return {
      send,
      stop: async () => {
        stop.abort('SIGTERM')
        return ended
      },
    }
  }
  const endpoint = (dnsName: string) => ({ dnsName, recordType: 'A', targets: ['203.0.113.20'] })

  test('speaks the protocol of external-dns, and prints once what the service rejects', async () => {
    const { send, stop } = await startWebhook(api.url)
    expect(await send('GET', '/')).toEqual({ status: 200, type, text: '{"include":["acme.pool.test"]}' })
    const wanted = JSON.stringify([endpoint('shop.acme.pool.test'), endpoint('console.acme.pool.test')])
    for (let cycle = 0; cycle < 2; cycle += 1) {
      const adjusted = await send('POST', '/adjustendpoints', wanted)
      expect(JSON.parse(adjusted.text)).toEqual([endpoint('shop.acme.pool.test')])
    }
    const changes = (name: string) => JSON.stringify({ create: [endpoint(name)] })
    expect(await send('POST', '/records', changes('shop.acme.pool.test'))).toMatchObject({ status: 204, text: '' })
    expect(await send('POST', '/records', changes('console.acme.pool.test'))).toMatchObject({ status: 503 })
    expect((await send('GET', '/records')).text).toContain('shop.acme.pool.test')
    expect((await send('GET', '/other')).status).toBe(404)
    expect((await send('POST', '/records', '{}', { Origin: 'http://evil.example' })).status).toBe(403)
    const { exitCode, stderr } = await stop()
    expect(exitCode).toBe(143)
    const lines = stderr.split('\n')
    expect(lines.filter(line => line.startsWith('left out console.acme.pool.test: template-record '))).toHaveLength(1)
    expect(lines.filter(line => line.startsWith('503 template-record '))).toHaveLength(1)
    expect(stderr).not.toContain('pdr_')
  })

  test.each<readonly [what: string, status: number | null, answer: string, expected: number]>([
    ['does not respond', null, '', 503],
    ['is behind a proxy without it', 404, 'not found', 503],
    ['is replaced by a login page', 401, '<html>', 503],
    ['limits', 429, '{"error":"rate-limited"}', 503],
    ['fails in a way that ends external-dns', 511, '', 503],
    ['does not accept the token', 401, '{"error":"unauthorized"}', 401],
    ['does not accept the name', 403, '{"error":"outside-scope"}', 403],
  ])('of a service that %s: %s', async (_, status, answer, expected) => {
    const upstream = createServer((request, response) => {
      if (status === null) request.destroy()
      else response.writeHead(status).end(answer)
    })
    await new Promise<void>(resolve => upstream.listen(0, '127.0.0.1', resolve))
    const address = upstream.address()
    const { send, stop } = await startWebhook(`http://127.0.0.1:${typeof address === 'object' ? address?.port : 0}`)
    for (const [method, path, body] of [
      ['GET', '/', ''],
      ['GET', '/records', ''],
      ['POST', '/adjustendpoints', '[]'],
    ] as const)
      expect((await send(method, path, body)).status, path).toBe(expected)
    await stop()
    upstream.closeAllConnections()
    upstream.close()
  })

  test('a token that is replaced in its file counts from the next request on', async () => {
    const seen: (string | undefined)[] = []
    const upstream = createServer((request, response) => {
      seen.push(request.headers.authorization)
      response.end('[]')
    })
    await new Promise<void>(resolve => upstream.listen(0, '127.0.0.1', resolve))
    const address = upstream.address()
    const former = token()
    const { send, stop } = await startWebhook(`http://127.0.0.1:${typeof address === 'object' ? address?.port : 0}`)
    await send('GET', '/records')
    chmodSync(file('token'), 0o644)
    writeFileSync(file('token'), `pdr_${'n'.repeat(43)}\n`)
    await send('GET', '/records')
    writeFileSync(file('token'), former)
    expect(seen).toEqual([`Bearer ${former}`, `Bearer pdr_${'n'.repeat(43)}`])
    await stop()
    upstream.closeAllConnections()
    upstream.close()
  })
})
