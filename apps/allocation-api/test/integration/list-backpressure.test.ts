import type { Allocation } from '@pool/contract'
import type { Sql } from '@pool/database/client'
import { describe, expect, test } from 'vitest'
import { createAllocationReader } from '../../src/allocation/reader.ts'
import { type AllocationOptions, createAllocationService } from '../../src/allocation/service.ts'
import { createApp } from '../../src/http/app.ts'
import { createPools } from '../../src/naming/naming.ts'
import { createReconcilerRepository } from '../../src/reconciler/repository.ts'
import { unusedDependencies } from '../support/fake-services-app.ts'

const reserved = (n: number): Allocation => ({
  poolDomain: 'pool.test',
  subdomain: `n${String(n).padStart(9, '0')}`,
  reservedAt: '2026-01-01T00:00:00.000Z',
  createdBy: '',
  state: 'reserved',
  expiresAt: '2026-01-01T00:10:00.000Z',
})

/** The list of an infinite pool. `pages` are the sizes of the requested pages. */
const endless = () => {
  const pages: number[] = []
  let next = 0
  const reader = {
    list: async (_: string, { limit }: { limit: number }) => {
      pages.push(limit)
      return Array.from({ length: limit }, () => reserved(next++))
    },
  }
  const allocations = createAllocationService({
    repository: {},
    reader,
    pools: () => createPools(['pool.test']),
  } as unknown as AllocationOptions)
  const app = createApp(
    {
      ...unusedDependencies,
      allocations: { ...unusedDependencies.allocations, list: allocations.list },
      observer: { ...unusedDependencies.observer, onRequest: () => {} },
    },
    { listener: 'in-cluster', tokens: null, exposeLists: true },
  )
  return { pages, open: (method = 'GET') => app.request('/api/v1/pool/pool.test/list', { method }) }
}

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

describe('a page empties the result array of the driver', () => {
  const now = new Date(0)
  const row = { id: 1, state: 'reserved', subdomain: 'acme', reservedAt: now, expiresAt: now, at: now }

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
    expect(await page(sql as unknown as Sql)).toHaveLength(1)
    // The outermost statement is created last. Its fragments are never executed.
    expect(results.at(-1)).toEqual([])
  })
})
