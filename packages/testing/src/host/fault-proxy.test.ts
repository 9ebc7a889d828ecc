import { once } from 'node:events'
import { createServer } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { FaultKind, RequestFilter } from '../protocol.ts'
import { type FaultProxy, matches, startFaultProxies } from './fault-proxy.ts'

/** The requests that the service has received, such as "PUT /a". */
const received: string[] = []
let kills = 0
const service = createServer(async (request, response) => {
  received.push(`${request.method} ${request.url}`)
  const chunks = await request.toArray()
  const body = Buffer.concat(chunks).toString()
  if (request.url === '/rejected') response.writeHead(412)
  else if (request.url === '/stream') {
    response.writeHead(200, { 'Content-Type': 'text/event-stream' })
    response.write('event: one\n\n')
    return
  } else response.writeHead(200, { 'X-Two': ['a', 'b'], 'Content-Type': 'text/plain' })
  response.end(`${request.headers['x-sent'] ?? ''}${body}`)
})
let proxy: FaultProxy
let url: string

beforeAll(async () => {
  service.listen(0, '127.0.0.1')
  await once(service, 'listening')
  const address = service.address()
  const targets = typeof address === 'object' && address ? [address.port] : []
  const killService = async () => {
    proxy.setTargets([])
    kills += 1
    proxy.setTargets(targets)
  }
  proxy = await startFaultProxies(1, { killService })
  proxy.setTargets(targets)
  url = `http://127.0.0.1:${proxy.ports[0]}`
})
afterAll(() => {
  proxy.close()
  service.close()
  service.closeAllConnections()
})
beforeEach(() => {
  received.length = 0
  kills = 0
})

const addFault = (kind: FaultKind, filter: RequestFilter = {}, ms = 0) => proxy.addFault({ kind, filter, ms })
/** The status, or "lost" if the connection was reset. */
const send = (method: string, path: string, body?: string): Promise<number | 'lost'> =>
  fetch(`${url}${path}`, { method, ...(body === undefined ? {} : { body }) }).then(
    async response => {
      await response.arrayBuffer()
      return response.status
    },
    () => 'lost',
  )

test.each<readonly [filter: RequestFilter, isMatch: boolean]>([
  [{}, true],
  [{ method: 'PUT' }, true],
  [{ method: 'GET' }, false],
  [{ method: ['GET', 'PUT'] }, true],
  [{ method: [] }, false],
  [{ path: '/lease/a%2Fb' }, true],
  [{ path: '/lease/a%2Fb?x=1' }, false],
  [{ path: '/lease' }, false],
  [{ path: /^\/lease\// }, true],
  [{ path: /lease/g }, true],
  [{ path: /x=1/ }, false],
  [{ method: 'PUT', path: '/other' }, false],
])('%o matches PUT /lease/a%%2Fb?x=1: %s', (filter, isMatch) => {
  expect(matches(filter, { method: 'PUT', url: '/lease/a%2Fb?x=1' })).toBe(isMatch)
})

describe('without a fault', () => {
  test('requests and responses pass unchanged', async () => {
    const response = await fetch(`${url}/a?b=%20c`, { method: 'POST', headers: { 'X-Sent': 'sent,' }, body: 'bödy' })
    expect(await response.text()).toBe('sent,bödy')
    expect(response.headers.get('X-Two')).toBe('a, b')
    expect(received).toEqual(['POST /a?b=%20c'])
  })

  test('a body of unknown length passes', async () => {
    const body = new Blob(['one', 'two']).stream()
    const response = await fetch(`${url}/a`, { method: 'PUT', body, duplex: 'half' })
    expect(await response.text()).toBe('onetwo')
  })

  test('a stream passes while it lasts, and ends when its client leaves', async () => {
    const controller = new AbortController()
    const response = await fetch(`${url}/stream`, { signal: controller.signal })
    const reader = response.body?.getReader()
    expect(new TextDecoder().decode((await reader?.read())?.value)).toBe('event: one\n\n')
    controller.abort()
    await expect.poll(() => proxyConnections()).toBe(0)
  })
})

const proxyConnections = (): Promise<number> =>
  new Promise((resolve, reject) => service.getConnections((error, count) => (error ? reject(error) : resolve(count))))

test('a dropped request does not reach the service, and the next one does', async () => {
  const fault = addFault('drop-request', { method: 'PUT' })
  expect(await send('GET', '/a')).toBe(200)
  expect(await send('PUT', '/a', 'x')).toBe('lost')
  await proxy.awaitFault(fault)
  expect(await send('PUT', '/b', 'x')).toBe(200)
  expect(received).toEqual(['GET /a', 'PUT /b'])
})

test('a dropped response: the service has processed the request', async () => {
  const fault = addFault('drop-response', { path: '/a' })
  expect(await send('PUT', '/b', 'x')).toBe(200)
  expect(await send('PUT', '/a', 'x')).toBe('lost')
  await proxy.awaitFault(fault)
  expect(await send('PUT', '/a', 'x')).toBe(200)
  expect(received).toEqual(['PUT /b', 'PUT /a', 'PUT /a'])
})

test('each fault affects one request, in the order of the faults', async () => {
  addFault('drop-response')
  addFault('drop-request')
  expect(await send('PUT', '/a', 'x')).toBe('lost')
  expect(received).toEqual([])
  expect(await send('PUT', '/a', 'x')).toBe('lost')
  expect(received).toEqual(['PUT /a'])
  expect(await send('PUT', '/a', 'x')).toBe(200)
})

test.each(['drop-request', 'drop-response', 'delay', 'partition', 'kill-after-write'] as const)(
  'a %s that is cancelled does not occur, and who waits for it or asks later is told',
  async kind => {
    const fault = addFault(kind)
    const waiting = proxy.awaitFault(fault)
    proxy.cancelFault(fault)
    for (const asked of [waiting, proxy.awaitFault(fault)]) {
      await expect(asked).rejects.toThrow('the fault was cancelled before it affected a request')
    }
    expect(await send('PUT', '/a', 'x')).toBe(200)
  },
)

test('a delay lasts until it is cancelled, and then ends for responses that wait', async () => {
  const started = performance.now()
  const short = addFault('delay', {}, 50)
  expect(await send('GET', '/a')).toBe(200)
  expect(performance.now() - started).toBeGreaterThanOrEqual(49)
  await proxy.awaitFault(short)
  proxy.cancelFault(short)
  await proxy.awaitFault(short)
  const long = addFault('delay', {}, 3_600_000)
  const waiting = send('GET', '/b')
  await proxy.awaitFault(long)
  proxy.cancelFault(long)
  expect(await waiting).toBe(200)
})

test('a partition is silent in both directions, and resets its connections at the end', async () => {
  const delay = addFault('delay', { path: '/before' }, 3_600_000)
  const before = send('GET', '/before')
  await proxy.awaitFault(delay)
  const partition = addFault('partition')
  proxy.cancelFault(delay)
  const during = send('PUT', '/during', 'x')
  await proxy.awaitFault(partition)
  expect(await Promise.race([before, during, sleep(50, 'silent')])).toBe('silent')
  proxy.cancelFault(partition)
  expect(await Promise.all([before, during])).toEqual(['lost', 'lost'])
  expect(received).toEqual(['GET /before'])
  expect(await send('GET', '/after')).toBe(200)
})

test('the service is killed after a write that it accepts, and after no other request', async () => {
  const fault = addFault('kill-after-write')
  expect(await send('GET', '/a')).toBe(200)
  expect(await send('PUT', '/rejected', 'x')).toBe(412)
  expect(kills).toBe(0)
  expect(await send('PUT', '/a', 'x')).toBe('lost')
  await proxy.awaitFault(fault)
  expect(kills).toBe(1)
  expect(await send('PUT', '/a', 'x')).toBe(200)
})

test('while the service does not run, connections are reset', async () => {
  const address = service.address()
  proxy.setTargets([])
  expect(await send('GET', '/a')).toBe('lost')
  proxy.setTargets(typeof address === 'object' && address ? [address.port] : [])
  expect(await send('GET', '/a')).toBe(200)
})

test('a service that closes the connection without a response: so does the proxy', async () => {
  const closing = createServer(request => void request.socket.destroy()).listen(0, '127.0.0.1')
  await once(closing, 'listening')
  const address = closing.address()
  const other = await startFaultProxies(1, { killService: async () => {} })
  other.setTargets(typeof address === 'object' && address ? [address.port] : [])
  await expect(fetch(`http://127.0.0.1:${other.ports[0]}/`)).rejects.toThrow('fetch failed')
  other.close()
  closing.close()
})
