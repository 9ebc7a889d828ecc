import '@pool/test-kit/ceph/storage-names.ts'
import { randomBytes } from 'node:crypto'
import { request } from 'node:http'
import { missingGateway, startGateway } from '@pool/test-kit/ceph/gateway.ts'
import { shouldSkip } from '@pool/test-kit/optional-deps.ts'
import { timed, until } from '@pool/test-kit/poll.ts'
import { afterAll, describe, expect, test } from 'vitest'
import { createKeyCheck } from '../../src/credentials/check-s3-keys.ts'
import { createHttpsGet } from '../../src/credentials/https-client.ts'
import {
  createHttpFailures,
  createS3Failures,
  createTransportFailures,
  errorXml,
  forwardTo,
  listXml,
  makeIdentities,
  overTls,
  startScriptedServer,
  toHttpResponse,
  withStorageNames,
} from '../support/credentials.ts'
import { startTestService } from '../support/service.ts'
import { expectContract, type ObservedResponse } from '../support/validate.ts'

interface ValidationResponse extends ObservedResponse {
  readonly body: {
    readonly valid: boolean
    readonly message: string
    readonly error?: string
    readonly detail?: string
  }
  readonly ms: number
}

/** Posts from an address of this machine, which has all of 127.0.0.0/8. The response is validated against the contract. */
const callFrom = async (
  localAddress: string,
  base: string,
  path: string,
  body: unknown,
): Promise<ValidationResponse> => {
  const started = performance.now()
  const { promise, resolve, reject } = Promise.withResolvers<ValidationResponse>()
  request(base + path, { method: 'POST', localAddress, agent: false }, async response => {
    let text = ''
    for await (const chunk of response.setEncoding('utf8')) text += chunk
    const headers = new Headers(Object.entries(response.headers).map(([name, value]) => [name, String(value)]))
    const answer = { status: response.statusCode ?? 0, headers, text }
    resolve({ ...answer, body: JSON.parse(text), ms: performance.now() - started })
  })
    .on('error', reject)
    .end(typeof body === 'string' ? body : JSON.stringify(body))
  const answer = await promise
  expectContract('POST', path, answer)
  return answer
}

/** Unique to this test: any occurrence elsewhere is a leak. */
const mark = (length: number) => `mark${randomBytes(length).toString('hex')}`.slice(0, length)
const keys = { region: 'fsn1', accessKey: mark(20), secretKey: mark(40) }
const suspendedKeys = { ...keys, accessKey: mark(20), secretKey: mark(40) }
const wrongSecret = { ...keys, secretKey: mark(40) }
const unknownKey = { ...keys, accessKey: mark(20) }
const token = mark(64)
const secrets = [keys, suspendedKeys, wrongSecret, unknownKey]
  .flatMap(({ accessKey, secretKey }) => [accessKey, secretKey])
  .concat(token)

const gateway = missingGateway === undefined ? await startGateway({ names: ['*.storage.test'] }) : null
const identities = await makeIdentities()
const server = await startScriptedServer()
/** The target of redirects. */
const target = await startScriptedServer()
target.respondWith(
  gateway
    ? forwardTo(gateway.port)
    : overTls(identities.good, socket => void socket.end(toHttpResponse(200, listXml('x')))),
)
await gateway?.addUser(keys)
await (await gateway?.addUser(suspendedKeys))?.suspend()

const domain = `storage.test:${server.port}`
const { api } = await startTestService({
  OBJECT_STORAGE_DOMAIN: domain,
  OBJECT_STORAGE_CA_FILE: gateway?.caFile ?? identities.caFile,
  PROVIDER_TOKEN_URLS: `hetzner=https://fsn1.${domain}/v1/locations?per_page=1, unheard=https://hel1.${domain}/ nowhere=https://a.nowhere.test/`,
  PDM_OPERATOR_TOKENS: 'operator-token-of-tests',
  PDM_LOG_LEVEL: 'trace',
  NODE_EXTRA_CA_CERTS: identities.caFile,
  NODE_OPTIONS: withStorageNames,
})
afterAll(async () => {
  await Promise.all([server.close(), target.close(), gateway?.stop(), identities.remove()])
})

const responses: string[] = []
let callers = 0
/** A new client address for each call, as each address has its own limit. */
const post = async (path: string, body: unknown, from = `127.1.${callers >> 8}.${callers++ % 256}`) => {
  const answer = await callFrom(from, api.url, `/api/v1/credentials/${path}`, body)
  responses.push(JSON.stringify([...answer.headers]), answer.text)
  return answer
}
const postKeys = (body: unknown = keys, from?: string) => post('object-storage/validate', body, from)
const postToken = (body: unknown = { provider: 'hetzner', token }, from?: string) => post('validate', body, from)

// First, so that their 8 s pass during all other tests.
let hanging = 0
server.respondWith(
  overTls(identities.good, (_, head) => {
    // Not a check of the start, which has no credentials.
    if (/^authorization:/im.test(head)) hanging += 1
  }),
)
const late = Promise.all([postKeys(), postToken()])
await until('both hang', () => hanging === 2)

describe.skipIf(shouldSkip(missingGateway))('a real gateway', () => {
  const ask = (body: object) => {
    server.respondWith(forwardTo(gateway?.port ?? 0))
    return postKeys(body)
  }

  test.each(['fsn1', 'nbg1'])('good keys in %s are valid', async region => {
    const answer = await ask({ ...keys, region, accessKey: ` ${keys.accessKey}\n` })
    expect([answer.status, answer.body]).toEqual([200, { valid: true, message: expect.stringMatching(/accepts/) }])
  })

  test.each([
    ['a wrong secret', wrongSecret, /secret key does not belong/],
    ['an unknown key', unknownKey, /does not know this access key/],
    ['a suspended user', suspendedKeys, /suspended/],
  ])('%s is not valid', async (_, body, message) => {
    const answer = await ask(body)
    expect([answer.status, answer.body]).toEqual([200, { valid: false, message: expect.stringMatching(message) }])
  })

  test("the object storage's CA is trusted for the object storage, but not for token checks", async () => {
    server.respondWith(forwardTo(gateway?.port ?? 0))
    expect((await postKeys()).status).toBe(200)
    const { status, body } = await postToken()
    expect([status, body.message]).toEqual([503, expect.stringMatching(/TLS/)])
  })

  test('a clock difference does not reject the keys', async () => {
    server.respondWith(forwardTo(gateway?.port ?? 0))
    const get = createHttpsGet({ deadlineMs: 5_000, extraCa: gateway?.ca ?? null })
    const check = (shiftMs: number) =>
      createKeyCheck({ domain, get, now: () => Date.now() + shiftMs })({ ...keys, region: 'fsn1' })
    expect(await check(20 * 60_000)).toEqual({ kind: 'unavailable', message: expect.stringMatching(/clock/) })
    expect(await check(5 * 60_000)).toMatchObject({ kind: 'accepted' })
  })
})

describe('a failure that says nothing about the credentials is 503, without a retry', () => {
  const faults = [...createTransportFailures(identities), ...createHttpFailures(identities, target.port)]
  const rows = [
    ...faults.map(fault => ['keys', fault.what, fault] as const),
    ...faults.map(fault => ['token', fault.what, fault] as const),
    ...createS3Failures(identities).map(fault => ['keys', fault.what, fault] as const),
  ]
  test.each(rows)('%s: %s', async (kind, _, { handler, message }) => {
    server.respondWith(handler)
    const before = server.count()
    const answer = await (kind === 'keys' ? postKeys() : postToken())
    const error = kind === 'keys' ? 'object-storage-unavailable' : 'provider-unavailable'
    expect(answer.status).toBe(503)
    expect(answer.body).toEqual({ error, detail: answer.body.message, valid: false, message: answer.body.message })
    expect(answer.body.message).toMatch(message)
    expect(server.count() - before).toBe(1)
  })

  test('a refused connection', async () => {
    const answers = [await postKeys({ ...keys, region: 'hel1' }), await postToken({ provider: 'unheard', token })]
    for (const { status, body } of answers) {
      expect([status, body.message]).toEqual([503, expect.stringMatching(/connection was refused/)])
    }
  })

  test('a name without an address', async () => {
    const { status, body } = await postToken({ provider: 'nowhere', token })
    expect([status, body.message]).toEqual([503, expect.stringMatching(/name could not be resolved/)])
    const get = createHttpsGet({ deadlineMs: 5_000, extraCa: null })
    const check = createKeyCheck({ domain: 'nowhere.test', get, now: Date.now })
    expect(await check({ ...keys, region: 'fsn1' })).toEqual({
      kind: 'unavailable',
      message: expect.stringMatching(/^Request to fsn1\.nowhere\.test failed: .*name could not be resolved/),
    })
  })

  test('redirects are not followed', () => expect(target.count()).toBe(0))
})

describe('a token', () => {
  const status = (code: number, body = '') =>
    server.respondWith(overTls(identities.good, socket => void socket.end(toHttpResponse(code, body))))

  test.each([
    [200, true],
    [204, true],
    [401, false],
    [403, false],
  ])('status %i: valid %s', async (code, valid) => {
    status(code, code === 204 ? '' : 'not JSON')
    const answer = await postToken({ provider: ' HETZNER', token: ` ${token}\n` })
    expect([answer.status, answer.body.valid]).toEqual([200, valid])
    expect(answer.body.message).toMatch(valid ? /accepts/ : /rejects/)
  })

  test('is sent once, unchanged, to the configured URL', async () => {
    let received = ''
    server.respondWith(
      overTls(identities.good, (socket, head) => {
        received += head
        socket.end(toHttpResponse(200))
      }),
    )
    await postToken()
    expect(received).toMatch(/^GET \/v1\/locations\?per_page=1 HTTP\/1.1\r\n/)
    expect(received.match(/^authorization: .*$/gim)).toEqual([`Authorization: Bearer ${token}`])
    expect(received).toMatch(new RegExp(`^host: fsn1\\.${domain}\r$`, 'im'))
  })
})

test('keys sign one ListBuckets request for their region, and the secret key is not sent', async () => {
  let received = ''
  server.respondWith(
    overTls(identities.good, (socket, head) => {
      received += head
      socket.end(toHttpResponse(403))
    }),
  )
  await postKeys({ ...keys, region: 'nbg1' })
  expect(received).toMatch(/^GET \/ HTTP\/1\.1\r\n/)
  expect(received).toMatch(new RegExp(`^host: nbg1\\.${domain}\r$`, 'im'))
  expect(received).toMatch(new RegExp(`Credential=${keys.accessKey}/\\d{8}/nbg1/s3/aws4_request, `))
  expect(received).not.toContain(keys.secretKey)
})

test('when the client disconnects, the provider request ends', async () => {
  const closed = Promise.withResolvers<void>()
  const caller = new AbortController()
  server.respondWith(
    overTls(identities.good, socket => {
      socket.once('close', () => closed.resolve())
      caller.abort()
    }),
  )
  const url = `${api.url}/api/v1/credentials/validate`
  const body = JSON.stringify({ provider: 'hetzner', token })
  await expect(fetch(url, { method: 'POST', body, signal: caller.signal })).rejects.toThrow()
  const { ms } = await timed(() => closed.promise)
  // Before the timeout of the check, which would close it too.
  expect(ms).toBeLessThan(7_000)
})

describe('400 in both formats, without a provider request', () => {
  const [short, long] = ['abc', 'x'.repeat(300)]
  const rows: readonly (readonly [what: string, path: string, body: unknown, error: string, detail: RegExp])[] = [
    ['no JSON', 'object-storage/validate', '{', 'invalid-json', /JSON/],
    ['no body', 'object-storage/validate', '', 'invalid-json', /required/],
    ['no region', 'object-storage/validate', { ...keys, region: '' }, 'missing-region', /region/],
    ['no object', 'object-storage/validate', [], 'missing-region', /region/],
    ...['FSN1', 'fsn1.evil.test/', 'fsn1@x', 'fsn1#', '\uff46sn1', '../fsn1', 'fsn1\u3002evil'].map(
      region => [region, 'object-storage/validate', { ...keys, region }, 'invalid-region', /fsn1, nbg1, hel1/] as const,
    ),
    ['a short key', 'object-storage/validate', { ...keys, accessKey: short }, 'invalid-access-key', /access key/],
    ['a short secret', 'object-storage/validate', { ...keys, secretKey: short }, 'invalid-secret-key', /secret key/],
    ['a long secret', 'object-storage/validate', { ...keys, secretKey: long }, 'invalid-secret-key', /secret key/],
    ['<redacted>', 'object-storage/validate', { ...keys, secretKey: '<redacted>' }, 'invalid-secret-key', /<redacted>/],
    ['another provider', 'object-storage/validate', { ...keys, provider: 'aws' }, 'unsupported-provider', /hetzner/],
    ['no JSON', 'validate', 'x', 'invalid-json', /JSON/],
    ['no provider', 'validate', { token }, 'unsupported-provider', /hetzner, unheard, nowhere/],
    [
      'an unknown provider',
      'validate',
      { provider: 'aws', token },
      'unsupported-provider',
      /hetzner, unheard, nowhere/,
    ],
    ['no token', 'validate', { provider: 'hetzner' }, 'invalid-token', /token/],
    ['a header in a token', 'validate', { provider: 'hetzner', token: `${token}\r\nX: y` }, 'invalid-token', /ASCII/],
  ]
  test.each(rows)('%s -> %s', async (_, path, body, error, detail) => {
    const before = server.count()
    // One client for all, beyond its limit: a request that does not reach a provider does not count.
    const answer = await post(path, body, '127.2.0.1')
    expect([answer.status, answer.body.error]).toEqual([400, error])
    expect(answer.body).toEqual({
      error,
      detail: expect.stringMatching(detail),
      valid: false,
      message: answer.body.detail,
    })
    expect(server.count()).toBe(before)
  })

  test('they do not count against the limit', async () => {
    for (let count = 0; count < 10; count += 1) await post('validate', { token }, '127.2.0.1')
    server.respondWith(overTls(identities.good, socket => void socket.end(toHttpResponse(200))))
    expect((await postToken(undefined, '127.2.0.1')).status).toBe(200)
  })
})

test('20 concurrent checks per address, of both kinds; more are 429 with Retry-After, and other addresses have their own limit', async () => {
  server.respondWith(overTls(identities.good, socket => void socket.end(toHttpResponse(401))))
  const before = server.count()
  const { result: answers, ms } = await timed(() =>
    Promise.all(
      Array.from({ length: 32 }, (_, at) => (at % 2 ? postKeys(keys, '127.3.0.1') : postToken(undefined, '127.3.0.1'))),
    ),
  )
  const rejected = answers.filter(({ status }) => status !== 200)
  const checked = answers.length - rejected.length
  // One attempt is available again every 3 s.
  expect(checked).toBeGreaterThanOrEqual(20)
  expect(checked).toBeLessThanOrEqual(20 + Math.floor(ms / 3_000))
  expect(server.count() - before).toBe(checked)
  for (const { status, headers, body } of rejected) {
    expect([status, body.error, body.valid]).toEqual([429, 'too-many-attempts', false])
    expect(headers.get('retry-after')).toMatch(/^[123]$/)
  }
  expect((await postKeys(keys, '127.3.0.2')).status).toBe(200)
})

test.each(['object-storage/validate', 'validate'])(
  '%s: other methods are 405, and the operator has it too',
  async path => {
    const url = `/api/v1/credentials/${path}`
    const answer = await fetch(api.url + url)
    expect([answer.status, answer.headers.get('allow')]).toEqual([405, 'POST'])
    const asOperator = await fetch(api.operatorUrl + url, {
      method: 'POST',
      headers: { Authorization: 'Bearer operator-token-of-tests' },
      body: '{}',
    })
    expect(asOperator.status).toBe(400)
    expect((await fetch(api.operatorUrl + url, { method: 'POST', body: '{}' })).status).toBe(401)
  },
)

test('a check of a server that hangs times out after 8 s', async () => {
  for (const { status, body, ms } of await late) {
    expect([status, body.message]).toEqual([503, expect.stringMatching(/in time/)])
    expect(ms).toBeGreaterThan(7_500)
    expect(ms).toBeLessThan(20_000)
  }
})

test('no response, log line or metric has a secret, even if the provider quotes the request', async () => {
  let quoted = ''
  for (const status of [200, 301, 400, 401, 403, 500]) {
    server.respondWith(
      overTls(identities.good, (socket, head) => {
        quoted += head
        const echo = `${head.replaceAll('\r\n', ' ')} ${keys.secretKey}`
        socket.end(toHttpResponse(status, errorXml(keys.accessKey, echo), [`X-Echo: ${echo}`]))
      }),
    )
    await postKeys()
    await postToken()
  }
  expect(quoted).toContain(keys.accessKey)
  expect(quoted).toContain(token)
  const metrics = await (await fetch(`${api.url}/metrics`)).text()
  for (const [kind, outcome] of [
    ['object-storage', 'rejected'],
    ['object-storage', 'unavailable'],
    ['token', 'accepted'],
    ['token', 'too-many-attempts'],
  ]) {
    expect(metrics).toMatch(
      new RegExp(`pdm_credential_validations_total\\{kind="${kind}",outcome="${outcome}"\\} [1-9]`),
    )
  }
  await api.process.stop()
  expect(api.lines.join('\n')).toContain('credential check unavailable')
  for (const secret of secrets) {
    for (const form of [secret, Buffer.from(secret).toString('base64')]) {
      expect([...responses, ...api.lines, metrics].filter(line => line.includes(form))).toEqual([])
    }
  }
})
