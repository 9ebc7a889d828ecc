import type { LeaseList } from '@pool/contract/lease'
import { describe, expect, test } from 'vitest'
import { expectProblem, NEVER_WRITTEN, parseLease, parseList } from './support/bodies.ts'
import { put, release, send } from './support/client.ts'
import { fakeClock } from './support/clock.ts'
import { getHost } from './support/host.ts'

const freshPrefix = (): string => `list/${crypto.randomUUID()}/`

const list = async (query: Readonly<Record<string, string>>): Promise<LeaseList> => {
  const response = await send('GET', `/leases?${new URLSearchParams(query)}`)
  expect(response.status, response.text).toBe(200)
  return parseList(response)
}

/** Acquires a slot and writes its copy. */
const acquireWithCopy = async (slot: string) => {
  const lease = parseLease(await put(slot, 0))
  await getHost().writeCopy(slot)
  return { slot, ...lease }
}

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

  test.each([
    ['limit=0', 'invalid-limit'],
    ['limit=1001', 'invalid-limit'],
    ['limit=x', 'invalid-limit'],
    [`prefix=${'x'.repeat(507)}`, 'invalid-prefix'],
    ['cursor=', 'invalid-cursor'],
  ])('%s is 400', async (query, code) => {
    expectProblem(await send('GET', `/leases?${query}`), 400, code)
  })
})
