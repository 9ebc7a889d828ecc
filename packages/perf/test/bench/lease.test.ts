import type { Lease } from '@pool/contract/lease'
import { HttpResponse } from '@pool/test-kit/http1.ts'
import { describe, expect, it } from 'vitest'
import { grantLease } from '../../src/bench/environment/lease-baselines/wire.ts'
import { EtcdClient } from '../../src/bench/sections/etcd.ts'
import { GrantCounter, summarizeGrants } from '../../src/bench/sections/grants.ts'
import { createSlotPicker, LeaseClient } from '../../src/bench/sections/lease-client.ts'

describe('a lease client', () => {
  it('sends the generation of the last response', () => {
    const client = new LeaseClient('slot', 2)
    expect(client.put(1).headers).toContain('If-Match: "0"\r\n')
    expect(client.update(1, { text: '{"holder":"a","generation":41}' })).toBe(41)
    expect(client.put(1)).toMatchObject({
      path: '/lease/slot-1',
      headers: expect.stringContaining('If-Match: "41"\r\n'),
    })
    expect(client.put(0).headers).toContain('If-Match: "0"\r\n')
  })

  it.each([1, 3, 16])('has its own slots: %d clients divide the slots', users => {
    const pick = createSlotPicker(50)
    const own = Array.from({ length: users }, (_, user) => Array.from({ length: 100 }, () => pick(user, users))).map(
      slots => new Set(slots),
    )
    expect(own.reduce((sum, slots) => sum + slots.size, 0)).toBe(50)
    expect(new Set(own.flatMap(slots => [...slots])).size).toBe(50)
  })
})

describe('a client of etcd', () => {
  const response = (body: object) =>
    new HttpResponse(200, '', Buffer.from(JSON.stringify({ header: { revision: '9' }, ...body })), false)
  const stored = { kvs: [{ mod_revision: '7' }] }

  it('compares the revision of the last response', () => {
    const client = new EtcdClient('slot', 1)
    const granted = response({ succeeded: true, responses: [{ response_put: {} }] })
    expect([client.isGranted(granted), client.isRejected(granted), client.update(0, granted)]).toEqual([true, false, 9])
    expect(client.put(0).body).toContain('"mod_revision":"9"')
    const rejected = response({ responses: [{ response_range: stored }] })
    expect([client.isGranted(rejected), client.isRejected(rejected), client.update(0, rejected)]).toEqual([
      false,
      true,
      7,
    ])
    expect(client.put(0).body).toContain('"mod_revision":"7"')
  })

  it('expects the last revision from a read', () => {
    const client = new EtcdClient('slot', 1)
    client.update(0, response({ responses: [{ response_range: stored }] }))
    expect(client.checkRead(0, response(stored))).toBeNull()
    expect(client.checkRead(0, response({ kvs: [{ mod_revision: '8' }] }))).toContain('unexpected')
  })
})

describe('the grant counter', () => {
  it('counts grants of an already granted generation in the same run as invalid', () => {
    const grants = new GrantCounter()
    expect([1, 2, 2].map(generation => grants.add(generation))).toEqual([false, false, true])
    grants.reset()
    expect(grants.add(2)).toBe(false)
    expect(grants.counters).toEqual({ granted: 4, duplicates: 1 })
  })

  it('counts all other grants as valid', () => {
    const measured = { p50Ms: 1, p95Ms: 1, p99Ms: 1, operations: 100, problems: new Map(), cost: null }
    const { figures } = summarizeGrants(
      ['witness', 'KV only'],
      [
        {
          users: 16,
          runs: [
            [{ ...measured, perSecond: 1_000, perOperation: { granted: 0.1, duplicates: 0 } }],
            [{ ...measured, perSecond: 500, perOperation: { granted: 0.3, duplicates: 0.2 } }],
          ],
        },
      ],
    )
    expect(figures.map(({ validGrantsPerSecond, ratio }) => [validGrantsPerSecond.median, ratio?.median])).toEqual([
      [100, undefined],
      [expect.closeTo(50), expect.closeTo(2)],
    ])
  })
})

describe('a baseline lease store grants', () => {
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
    ['nothing to a client with another generation', lease, 'a', 6, undefined],
    ['nothing while another holder has the lease', lease, 'b', 7, undefined],
    ['a renewal', lease, 'a', 7, next('a', at(-500), 8)],
    ['an expired lease', { ...lease, expiresAt: at(0) }, 'b', 7, next('b', at(0), 8)],
  ])('%s', (_, current, holder, generation, expected) => {
    expect(grantLease(current, { holder, ttlMs: 1_000, generation }, now)).toEqual(expected)
  })
})
