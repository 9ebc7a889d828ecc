import { once } from 'node:events'
import { connect } from 'node:net'
import type { Allocation } from '@pool/contract'
import type { Sql } from '@pool/runtime/database/client'
import { listen } from '@pool/runtime/service/http-server'
import { until } from '@pool/test-kit/poll.ts'
import { afterEach, describe, expect, test } from 'vitest'
import { createAllocationReader } from '../../src/allocation/reader.ts'
import { type AllocationOptions, createAllocationService } from '../../src/allocation/service.ts'
import { createApp } from '../../src/http/app.ts'
import { createStreamLimiter } from '../../src/http/streams.ts'
import { createPools } from '../../src/naming/naming.ts'
import { createReconcilerRepository } from '../../src/reconciler/repository.ts'
import {
  createAppWithFakeDeployments,
  onBothListeners,
  sendRequest,
  unusedDependencies,
} from '../support/fake-services-app.ts'
import { expectContract } from '../support/validate.ts'

const reserved = (n: number): Allocation => ({
  poolDomain: 'pool.test',
  subdomain: `n${String(n).padStart(9, '0')}`,
  reservedAt: '2026-01-01T00:00:00.000Z',
  createdBy: '',
  state: 'reserved',
  expiresAt: '2026-01-01T00:10:00.000Z',
})

const path = '/api/v1/pool/pool.test/list'

/** The list of an infinite pool, or of one with `names`. `pages` are the sizes of the requested pages. */
const endless = ({
  names = Number.POSITIVE_INFINITY,
  ...limits
}: {
  readonly names?: number
  readonly maxStreams?: number
  readonly stallTimeoutMs?: number
} = {}) => {
  const pages: number[] = []
  let next = 0
  const reader = {
    list: async (_: string, { limit }: { limit: number }) => {
      pages.push(limit)
      return Array.from({ length: Math.min(limit, names) }, () => reserved(next++))
    },
  }
  const allocations = createAllocationService({
    repository: {},
    reader,
    pools: () => createPools(['pool.test']),
    now: () => performance.now(),
  } as unknown as AllocationOptions)
  const app = createApp(
    {
      ...unusedDependencies,
      allocations: { ...unusedDependencies.allocations, list: allocations.list },
      streams: onBothListeners({ lists: createStreamLimiter(limits) }),
      observer: { ...unusedDependencies.observer, onRequest: () => {} },
    },
    { listener: 'in-cluster', tokens: null, exposeLists: true },
  )
  return { app, pages, open: (method = 'GET') => sendRequest(app, path, { method }) }
}

/** Far longer than this process, which also runs the client, takes between two reads on a busy machine. */
const STALL_MS = 3_000

/** Runs the event loop until pending work is done. */
const drainEventLoop = async () => {
  for (let iteration = 0; iteration < 50; iteration += 1) await new Promise(resolve => setImmediate(resolve))
}

describe('a list applies backpressure', () => {
  test('only the first page is read until the client reads', async () => {
    const { pages, open } = endless()
    await open()
    await drainEventLoop()
    expect(pages).toHaveLength(1)
  })

  test('HEAD reads only the first page and has no body', async () => {
    const { pages, open } = endless()
    const { status, body } = await open('HEAD')
    await drainEventLoop()
    expect({ status, body, pages: pages.length }).toEqual({ status: 200, body: null, pages: 1 })
  })

  test('each chunk that the client reads causes at most one page read', async () => {
    const { pages, open } = endless()
    const reader = (await open()).body?.getReader()
    for (let part = 1; part <= 20; part += 1) {
      const read = await reader?.read()
      expect(read?.value?.length).toBeLessThan(64 * 1_024)
      await drainEventLoop()
      // The first chunk precedes the first page. No page is read ahead.
      expect(pages.length).toBeLessThanOrEqual(Math.max(1, part - 1))
    }
    expect(pages.length).toBeGreaterThan(15)
  })

  test('no page is read after the client disconnects', async () => {
    const { pages, open } = endless()
    const reader = (await open()).body?.getReader()
    await reader?.read()
    await reader?.read()
    await reader?.cancel()
    const pageCount = pages.length
    await drainEventLoop()
    expect(pages.length).toBe(pageCount)
  })
})

describe('the limit of readers', () => {
  test('is 503 with Retry-After until a list ends', async () => {
    const { open } = endless({ maxStreams: 2 })
    const [first] = await Promise.all([open(), open()])
    const third = await open()
    const text = await third.text()
    expectContract('GET', path, { status: third.status, headers: third.headers, text })
    expect([third.status, JSON.parse(text).error, third.headers.get('retry-after')]).toEqual([
      503,
      'too-many-readers',
      '5',
    ])
    await first.body?.cancel()
    expect((await open()).status).toBe(200)
    expect((await open()).status).toBe(503)
  })

  test('is 100 by default', async () => {
    const { open } = endless()
    const statuses = await Promise.all(Array.from({ length: 101 }, async () => (await open()).status))
    expect(statuses.filter(status => status === 200)).toHaveLength(100)
  })

  test('counts neither a list that was read to its end, nor HEAD, nor one that could not be read', async () => {
    const { app, open } = endless({ maxStreams: 1, names: 3 })
    for (let times = 0; times < 3; times += 1) {
      expect(await (await open()).json()).toMatchObject({ allocations: { length: 3 } })
      expect((await open('HEAD')).status).toBe(200)
      expect((await sendRequest(app, `${path}?limit=0`)).status).toBe(422)
    }
    const broken = createAppWithFakeDeployments({ list: () => Promise.reject(new Error('away')) }, { maxStreams: 1 })
    for (let times = 0; times < 3; times += 1) {
      const { status, body } = await sendRequest(broken.app, '/api/v1/deployments')
      expect([status, await new Response(body).json()]).toMatchObject([503, { error: 'database-unavailable' }])
    }
  })
})

describe('over a socket', () => {
  const closers: (() => Promise<void> | void)[] = []
  afterEach(async () => {
    for (const close of closers.splice(0)) await close()
  })
  const serve = async (limits: Parameters<typeof endless>[0]) => {
    const list = endless(limits)
    const server = await listen(list.app, 0, { malformedRequestCode: 'invalid-format' })
    closers.push(() => server.close(0))
    const open = () => fetch(`http://127.0.0.1:${server.port}${path}`)
    return { ...list, server, open }
  }
  const stuckReader = async (port: number) => {
    const socket = connect(port, '127.0.0.1')
    socket.on('error', () => {})
    socket.pause()
    socket.write(`GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`)
    closers.push(() => void socket.destroy())
    await once(socket, 'connect')
    return socket
  }

  test('a client that reads nothing for too long is disconnected, and another gets its place', async () => {
    const { server, open, pages } = await serve({ maxStreams: 1, stallTimeoutMs: STALL_MS })
    await stuckReader(server.port)
    await until('its list has started', () => pages.length > 0)
    expect((await open()).status).toBe(503)
    let reader: Response | undefined
    await until('it is disconnected', async () => {
      reader = await open()
      return reader.status === 200
    })
    await reader?.body?.cancel()
  })

  test('a client that reads slowly is not disconnected', async () => {
    const { server, pages } = await serve({ stallTimeoutMs: STALL_MS })
    const socket = await stuckReader(server.port)
    const started = performance.now()
    let closed = false
    socket.once('close', () => {
      closed = true
    })
    socket.on('data', () => {
      socket.pause()
      setTimeout(() => socket.resume(), 20)
    })
    socket.resume()
    await until('it has read for longer', () => performance.now() - started > 1.5 * STALL_MS)
    expect([closed, pages.length > 10]).toEqual([false, true])
  })

  test('a short list occupies its place until the client has it, and no longer', async () => {
    const { open } = await serve({ maxStreams: 1, names: 3, stallTimeoutMs: STALL_MS })
    for (let times = 0; times < 3; times += 1) {
      const response = await open()
      expect([response.status, await response.json()]).toMatchObject([200, { allocations: { length: 3 } }])
    }
  })
})

describe('a page empties the result array of the driver', () => {
  const now = new Date(0)
  const row = {
    id: 1,
    state: 'reserved',
    subdomain: 'acme',
    reservedAt: now,
    expiresAt: now,
    at: now,
    renewalCount: null,
  }

  test.each<[string, (sql: Sql) => Promise<readonly unknown[]>]>([
    ['list', sql => createAllocationReader(sql, { timeoutMs: 1_000 }).list('pool.test', { after: '', limit: 1 })],
    ['history', sql => createAllocationReader(sql, { timeoutMs: 1_000 }).listHistory('pool.test', { limit: 1 })],
    ['drift check', sql => createReconcilerRepository(sql, { timeoutMs: 1_000 }).listNames('pool.test', '', 1)],
  ])('%s', async (_, page) => {
    const results: object[][] = []
    const sql = () => {
      results.push([row])
      return Promise.resolve(results.at(-1))
    }
    expect(await page(Object.assign(sql, { unsafe: sql }) as unknown as Sql)).toHaveLength(1)
    // The outermost statement is created last. Its fragments are never executed.
    expect(results.at(-1)).toEqual([])
  })
})
