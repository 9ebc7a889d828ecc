import type { LeaseList } from '@pool/contract/lease'
import { describe, expect, test } from 'vitest'
import { expectProblem, NEVER_WRITTEN, parseStatuses } from './support/bodies.ts'
import { freshSlot, get, put, release, send } from './support/client.ts'
import { fakeClock } from './support/clock.ts'
import { getHost } from './support/host.ts'
import { acquireWithCopy, freshPrefix, list } from './support/lists.ts'
import { held, released, seed, waitForWaiters } from './support/slots.ts'

describe('GET /leases', () => {
  test('lists leases by prefix, and states its consistency', async () => {
    using _clock = fakeClock()
    const prefix = freshPrefix()
    const held = [await acquireWithCopy(`${prefix}a`), await acquireWithCopy(`${prefix}b`)]
    await acquireWithCopy(`other/${prefix}`)
    const response = await list({ prefix })
    expect(response).toEqual({
      consistency: 'eventual',
      detail: expect.stringMatching(/Do not use it for decisions/),
      leases: held,
    })
  })

  test('lists a released slot as released', async () => {
    using clock = fakeClock()
    const prefix = freshPrefix()
    const slot = `${prefix}a`
    await acquireWithCopy(slot)
    clock.advance(2_000)
    await release(slot, 1)
    await getHost().writeCopy(slot)
    expect((await list({ prefix })).leases).toEqual([{ slot, ...NEVER_WRITTEN, generation: 2 }])
  })

  test('lists all without a prefix, and none with an unused prefix', async () => {
    using _clock = fakeClock()
    await acquireWithCopy(`${freshPrefix()}a`)
    expect((await list({})).leases.length).toBeGreaterThan(0)
    expect((await list({ prefix: freshPrefix() })).leases).toEqual([])
  })

  test('matches a prefix literally: slash, percent sign, non-ASCII letters', async () => {
    using _clock = fakeClock()
    const prefix = `${freshPrefix()}100%/ä`
    const held = await acquireWithCopy(`${prefix}/x`)
    expect((await list({ prefix })).leases).toEqual([held])
  })

  test('has pages: each lease once, in order, and no cursor on the last', async () => {
    using _clock = fakeClock()
    const prefix = freshPrefix()
    const names = Array.from({ length: 11 }, (_, i) => `${prefix}${String(i).padStart(2, '0')}`)
    for (const name of names) await acquireWithCopy(name)
    const pages: LeaseList[] = []
    let cursor: string | undefined
    do {
      const page: LeaseList = await list({ prefix, limit: '3', ...(cursor === undefined ? {} : { cursor }) })
      pages.push(page)
      cursor = page.nextCursor
    } while (cursor !== undefined)
    expect(pages.map(({ leases }) => leases.length)).toEqual([3, 3, 3, 2])
    expect(pages.flatMap(({ leases }) => leases.map(({ slot }) => slot))).toEqual(names)
  })

  test('has no cursor on a full last page', async () => {
    using _clock = fakeClock()
    const prefix = freshPrefix()
    await acquireWithCopy(`${prefix}a`)
    await acquireWithCopy(`${prefix}b`)
    expect((await list({ prefix, limit: '2' })).nextCursor).toBeUndefined()
  })
})

describe('GET /leases?slot=', () => {
  const read = async (slots: readonly string[]) => {
    const response = await send('GET', `/leases?${new URLSearchParams(slots.map(slot => ['slot', slot]))}`)
    expect(response.status, response.text).toBe(200)
    return parseStatuses(response)
  }

  test('is exact: the state of each slot as GET /lease returns it, in the order of the query', async () => {
    using clock = fakeClock()
    const [one, two, three, never] = [freshSlot(), freshSlot(), freshSlot(), freshSlot()]
    await seed(one, held({ generation: 4, expiresAt: clock.now() + 12_345 }))
    await seed(two, released(5))
    await seed(three, held({ generation: 6, expiresAt: clock.now() }))
    const body = (slot: string) => get(slot).then(({ json }) => Object(json))
    expect(await read([three, never, one, two])).toEqual({
      consistency: 'exact',
      leases: [
        { slot: three, ...(await body(three)), remainingMs: 0, waiters: 0 },
        { slot: never, ...NEVER_WRITTEN, waiters: 0 },
        { slot: one, ...(await body(one)), remainingMs: 12_345, waiters: 0 },
        { slot: two, ...(await body(two)), waiters: 0 },
      ],
    })
  })

  test('sees a write immediately', async () => {
    const slot = freshSlot()
    for (let generation = 0; generation < 3; generation += 1) {
      await put(slot, generation)
      expect((await read([slot])).leases).toMatchObject([{ slot, generation: generation + 1 }])
    }
  })

  test('has the number of waiting clients', async () => {
    const slot = freshSlot()
    await put(slot, 0)
    const waits = [1, 2, 3].map(() => get(slot, { 'If-None-Match': '"1"', Prefer: 'wait=20' }))
    await waitForWaiters(slot, 3)
    expect((await read([slot])).leases).toMatchObject([{ slot, waiters: 3 }])
    await release(slot, 1)
    await Promise.all(waits)
    expect((await read([slot])).leases).toMatchObject([{ slot, waiters: 0 }])
  })

  test('accepts 100 slots of any name', async () => {
    const names = Array.from({ length: 100 }, (_, i) => `${freshPrefix()}100% & a//b=ä+${i}`)
    const { leases } = await read(names)
    expect(leases.map(({ slot }) => slot)).toEqual(names)
  })

  test.each([
    ['slot=a&slot=a', 'invalid-slot'],
    ['slot=a&prefix=a', 'invalid-request'],
  ])('%.30s is 400', async (query, code) => {
    expectProblem(await send('GET', `/leases?${query}`), 400, code)
  })
})
