import { describe, expect, it } from 'vitest'
import { granted, type Lease } from '../../src/bench/environment/lease-baselines/wire.ts'
import { createBook, createTurns } from '../../src/bench/sections/lease-book.ts'
import { contentionTable, createTally } from '../../src/bench/sections/lease-contention.ts'
import { type LeaseLoad, leaseTarget } from '../../src/bench/sections/lease-standard.ts'

describe('what a client knows', () => {
  it('is what the last answer told, and goes into the next write', () => {
    const book = createBook('slot', 2)
    expect(book.write(1).headers).toContain('If-Match: "0"\r\n')
    expect(book.learn(1, { status: 412, body: '{"holder":"a","generation":41}' })).toBe(41)
    expect(book.write(1)).toMatchObject({
      path: '/lease/slot-1',
      headers: expect.stringContaining('If-Match: "41"\r\n'),
    })
    expect(book.write(0).headers).toContain('If-Match: "0"\r\n')
  })

  it.each([1, 3, 16])('is shared by nobody: %d clients divide the slots', clients => {
    const turn = createTurns(50)
    const own = Array.from({ length: clients }, (_, client) =>
      Array.from({ length: 100 }, () => turn(client, clients)),
    ).map(slots => new Set(slots))
    expect(own.reduce((sum, slots) => sum + slots.size, 0)).toBe(50)
    expect(new Set(own.flatMap(slots => [...slots])).size).toBe(50)
  })
})

describe('grants', () => {
  it('of one generation to two are counted, within a run', async () => {
    const tally = createTally()
    expect([1, 2, 2].map(tally.grant)).toEqual([false, false, true])
    await tally.forget()
    expect(tally.grant(2)).toBe(false)
    expect(await tally.counters()).toEqual({ granted: 4, twice: 1 })
  })

  it('that are right are the rest', () => {
    const measured = { p50Ms: 1, p99Ms: 1, operations: 100, faults: new Map() }
    const { figures } = contentionTable(
      ['witness', 'KV only'],
      [
        {
          clients: 16,
          runs: [
            [{ ...measured, perSecond: 1_000, perOperation: { granted: 0.1, twice: 0 } }],
            [{ ...measured, perSecond: 500, perOperation: { granted: 0.3, twice: 0.2 } }],
          ],
        },
      ],
    )
    expect(figures.map(({ rightGrantsPerSecond, ratio }) => [rightGrantsPerSecond.median, ratio?.median])).toEqual([
      [100, undefined],
      [expect.closeTo(50), expect.closeTo(2)],
    ])
  })
})

describe('a target', () => {
  const spread = (median: number) => ({ median, min: median, max: median })
  const figures = { perSecond: spread(1), p50Ms: spread(1), p99Ms: spread(1), operations: 1, perOperation: {} }
  const load: LeaseLoad = {
    where: { slots: 1, clients: 16 },
    subjects: [
      { ...figures, name: 'witness', ratio: null },
      { ...figures, name: 'KV only', ratio: { perSecond: spread(1.6), p50: spread(1), p99: spread(0.9) } },
    ],
  }
  it.each([
    ['ops/s', 1.5, true],
    ['ops/s', 1.7, false],
    ['p99', 1, true],
    ['p99', 0.8, false],
  ] as const)('of %s %d', (of, target, met) => {
    expect(leaseTarget(load, of, target)).toMatchObject({ where: 'slots 1, clients 16', of, target, met })
  })
})

describe('the baselines grant', () => {
  const now = Date.parse('2026-01-01T00:00:00.000Z')
  const at = (ms: number) => new Date(now + ms).toISOString()
  const lease: Lease = { holder: 'a', acquiredAt: at(-500), expiresAt: at(500), generation: 7 }
  const next = (holder: string, acquiredAt: string, generation: number) => ({
    holder,
    acquiredAt,
    expiresAt: at(1_000),
    generation,
  })
  it.each<[string, Lease | undefined, string, number, Lease | undefined]>([
    ['a slot that was never written', undefined, 'a', 0, next('a', at(0), 1)],
    ['nothing to who knows another generation', lease, 'a', 6, undefined],
    ['nothing of what somebody else holds', lease, 'b', 7, undefined],
    ['a renewal', lease, 'a', 7, next('a', at(-500), 8)],
    ['what has expired', { ...lease, expiresAt: at(0) }, 'b', 7, next('b', at(0), 8)],
  ])('%s', (_, current, holder, generation, expected) => {
    expect(granted(current, { holder, ttlMs: 1_000, generation }, now)).toEqual(expected)
  })
})
