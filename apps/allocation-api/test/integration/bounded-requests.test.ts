import { once } from 'node:events'
import { chmod, chown, mkdir, mkdtemp, rm, symlink } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { SharedLimit } from '@pool/runtime/service/shared-limit'
import { encodeRequest, HttpConnection } from '@pool/test-kit/http1.ts'
import { runUntilExit, startApi, toApiEntry } from '@pool/test-kit/services.ts'
import { describe, expect, test } from 'vitest'
import { findForeignAccess } from '../../src/deployments/terraform/folder-access.ts'
import { createPatience, createStreamLimiter } from '../../src/http/streams.ts'
import { createLog } from '../../src/observability/log.ts'
import { createBase } from '../../src/parts/base.ts'
import { readServiceConfig } from '../../src/service-config.ts'
import { poolPath, startTestService } from '../support/service.ts'

const TOKEN = 'operator-token-of-this-test'
const { api, database } = await startTestService({ PDM_OPERATOR_TOKENS: TOKEN, PDM_TRUSTED_PROXIES: '127.0.9.0/24' })
const operatorPort = Number(new URL(api.operatorUrl ?? '').port)
const reservePath = `${poolPath}/reserve`

const silentLog = createLog('error', { destination: { write: () => {}, afterTurn: () => {} }, now: Date.now })

const toHead = (method: string, path: string, ...headers: readonly string[]): Buffer =>
  encodeRequest({ method, path, headers })

describe('a request whose body has not arrived', () => {
  const rejected: [string, number, number, Buffer][] = [
    ['forbidden', api.port, 403, toHead('POST', reservePath, 'Sec-Fetch-Site: cross-site', 'Content-Length: 20000000')],
    ['an unknown route', api.port, 404, toHead('POST', '/nowhere', 'Content-Length: 20000000')],
    ['a method that the route does not have', api.port, 405, toHead('PUT', reservePath, 'Content-Length: 20000000')],
    ['too large', api.port, 413, toHead('POST', reservePath, 'Content-Length: 20000000')],
    ['encoded', api.port, 415, toHead('POST', reservePath, 'Content-Encoding: gzip', 'Content-Length: 20000000')],
    ['without a token', operatorPort, 401, toHead('POST', reservePath, 'Content-Length: 20000000')],
  ]
  test.each(rejected)('%s: the head decides, and what still arrives is discarded', async (_, port, status, head) => {
    // A client that sends on after the end of the response.
    const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
    let text = ''
    socket.on('data', data => {
      text += data
    })
    socket.write(head)
    await once(socket, 'end')
    expect(text).toMatch(new RegExp(`^HTTP/1.1 ${status} [^]*connection: close`, 'i'))
    // More than the systems buffer. If the server did not read it, this would fail.
    expect(await new Promise(resolve => socket.write(Buffer.alloc(16_000_000), resolve))).toBeFalsy()
    socket.end()
    await once(socket, 'close')
  })

  test('and does not arrive: 408, and the connection ends', async () => {
    using connection = await HttpConnection.open(api.port)
    const response = await connection.send(
      Buffer.concat([toHead('POST', reservePath, 'Content-Length: 9'), Buffer.of(123)]),
    )
    expect([response.status, JSON.parse(response.text).error]).toEqual([408, 'request-timeout'])
    expect(response.isLast).toBe(true)
  })

  test('and is an unfinished head: 408', async () => {
    using connection = await HttpConnection.open(api.port)
    const response = await connection.send('GET /livez HTTP/1.1\r\nHost: a')
    expect([response.status, JSON.parse(response.text).error]).toEqual([408, 'request-timeout'])
  })
})

test('a body that arrives with its head keeps the connection, also when it is not needed', async () => {
  using connection = await HttpConnection.open(api.port)
  for (const path of ['/nowhere', reservePath]) {
    const response = await connection.send(encodeRequest({ method: 'POST', path, body: '{}' }))
    expect([response.status, response.isLast]).toEqual([path === reservePath ? 422 : 404, false])
  }
})

test('a CONNECT whose client resets the connection does not end the process', async () => {
  for (let i = 0; i < 50; i += 1) {
    const socket = connect(api.port, '127.0.0.1')
    socket.on('error', () => {})
    socket.write(encodeRequest({ method: 'CONNECT', path: 'a:1' }), () => socket.resetAndDestroy())
    await once(socket, 'close')
  }
  using connection = await HttpConnection.open(api.port)
  expect((await connection.send(encodeRequest({ path: '/livez' }))).status).toBe(200)
})

test('more requests than four without a response end the connection', async () => {
  const socket = connect(api.port, '127.0.0.1')
  socket.on('error', () => {})
  const first = toHead('POST', reservePath, 'Content-Length: 2')
  const waiting = encodeRequest({ path: `${poolPath}/list` })
  socket.write(Buffer.concat([first, Buffer.from('{}'), ...Array.from({ length: 20 }, () => waiting)]))
  let text = ''
  socket.on('data', data => {
    text += data
  })
  await once(socket, 'close')
  expect(text.match(/^HTTP/gm)?.length ?? 0).toBeLessThanOrEqual(4)
})

test('one client address can have ten lists and streams open, and others have theirs', () => {
  const ofClients = new SharedLimit({ total: Number.POSITIVE_INFINITY, perClient: 10 })
  const [lists, logs] = [createStreamLimiter({ ofClients, maxStreams: 15 }), createStreamLimiter({ ofClients })]
  const permits = Array.from({ length: 10 }, (_, i) => (i % 2 ? lists : logs).acquire('192.0.2.1'))
  expect(permits).not.toContain(null)
  expect([lists.acquire('192.0.2.1'), logs.acquire('192.0.2.1')]).toEqual([null, null])
  expect(lists.acquire('192.0.2.2')).not.toBeNull()
  // Twice: a response that ends from both sides releases its permit once.
  permits[0]?.release()
  permits[0]?.release()
  expect([logs.acquire('192.0.2.1') === null, logs.acquire('192.0.2.1') === null]).toEqual([false, true])
})

test('the pages of in-cluster lists delay no list of an operator', async () => {
  const read = readServiceConfig({ PDM_DATABASE_URL: 'postgres://127.0.0.1/unused', PDM_MANAGED_DOMAINS: 'pool.test' })
  if ('issues' in read) throw new Error(JSON.stringify(read.issues))
  const { streams } = (await createBase(read.config, silentLog, 'v24')).routes
  const order: string[] = []
  for (const page of ['first', 'second']) {
    void streams['in-cluster'].inTurn(async () => {
      order.push(page)
      await new Promise(() => {})
    })
  }
  await streams.operator.inTurn(async () => order.push('of the operator'))
  expect(order).toEqual(['first', 'of the operator'])
})

test('PDM_CLIENT_WRITES_PER_MINUTE limits the writes of a client address, in-cluster only', async () => {
  await using limited = await startApi(database.url, {
    PDM_CLIENT_WRITES_PER_MINUTE: '3',
    PDM_OPERATOR_TOKENS: TOKEN,
    PDM_TRUSTED_PROXIES: '127.0.0.1',
  })
  const write = (url: string | null, client: string) =>
    fetch(`${url}${poolPath}/release?sub=none`, {
      method: 'DELETE',
      headers: { 'X-Forwarded-For': client, Authorization: `Bearer ${TOKEN}` },
    })
  for (let i = 0; i < 3; i += 1) expect((await write(limited.url, '192.0.2.1')).status).toBe(404)
  const response = await write(limited.url, '192.0.2.1')
  expect([response.status, (await response.json()) as unknown]).toMatchObject([429, { error: 'rate-limited' }])
  expect(Number(response.headers.get('retry-after'))).toBeGreaterThan(0)
  expect((await write(limited.url, '192.0.2.2')).status).toBe(404)
  expect((await write(limited.operatorUrl, '192.0.2.1')).status).toBe(404)
  expect((await fetch(`${limited.url}${poolPath}/check?sub=a`)).status).toBe(200)
})

test('a client that reads nothing is out of patience in time, whatever the kernels buffer', () => {
  const patience = createPatience(60_000)
  // The kernel takes 64 KiB each second, and nobody reads.
  for (let second = 0; second < 60; second += 1) {
    patience.onSent(65_536)
    patience.onWaited(1_000)
  }
  expect(patience.leftMs()).toBe(0)
  // What is beyond the buffers has been read.
  patience.onSent(16 * 1_048_576)
  expect(patience.leftMs()).toBe(60_000)
})

describe('a deployments folder that another user can change', () => {
  const createFolder = async (mode = 0o700): Promise<string> => {
    const folder = await mkdtemp(join(tmpdir(), 'deployments-'))
    await mkdir(join(folder, 'mine', 'work', 'run'), { recursive: true })
    await chmod(folder, mode)
    return folder
  }

  test('is refused at the start and by the doctor', async () => {
    const folder = await createFolder(0o777)
    const env = { PORT: '0', PDM_DATABASE_URL: database.url, DNSPROVIDER_KIND: 'local', PDM_DEPLOYMENTS_DIR: folder }
    const { code, lines } = await runUntilExit({ entry: toApiEntry(), env })
    expect([code, lines.join()]).toEqual([
      2,
      expect.stringMatching(/PDM_DEPLOYMENTS_DIR .*can be written by every user/),
    ])
    const doctor = await runUntilExit({ entry: toApiEntry(), env, args: ['doctor'] })
    expect(doctor.lines.join('\n')).toContain('can be written by every user')
    await rm(folder, { recursive: true })
  })

  const isRoot = process.getuid?.() === 0
  const open = (path: string) => chmod(path, 0o777)
  const changes: [what: string, path: string, change: (path: string) => Promise<void>, found: string | null][] = [
    ['nothing', 'mine', async () => {}, null],
    ['itself', 'mine', open, 'mine can be written by every user'],
    ['a folder of runs', 'mine/work', open, 'work can be written by every user'],
    ['a folder of a run', 'mine/work/run', open, 'run can be written by every user'],
    ['the folder around it', '.', open, 'can be written by every user'],
    ['the folder around it, but only its own entries', '.', path => chmod(path, 0o1777), null],
    ['its owner', 'mine', path => chown(path, 65_534, 65_534), 'belongs to another user (uid 65534)'],
  ]
  test.for(changes.slice(0, isRoot ? undefined : -1))('%s', async ([, path, change, found]) => {
    const folder = await createFolder()
    await change(join(folder, path))
    const link = `${folder}-link`
    await symlink(join(folder, 'mine'), link)
    const expected = found === null ? null : expect.stringContaining(found)
    expect([await findForeignAccess(join(folder, 'mine')), await findForeignAccess(link)]).toEqual([expected, expected])
    await Promise.all([rm(folder, { recursive: true }), rm(link)])
  })
})
