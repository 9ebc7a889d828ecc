import { HttpResponse } from '@pool/test-kit/http1.ts'
import { describe, expect, it } from 'vitest'
import { EtcdClient } from '../../src/bench/sections/etcd.ts'
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
