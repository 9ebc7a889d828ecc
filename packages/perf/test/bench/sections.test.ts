import { describe, expect, it } from 'vitest'
import { createSlotPicker, LeaseClient } from '../../src/bench/sections/lease-client.ts'
import { COUNTERS, type Counts, toMonth, toSlotCost, withCopies } from '../../src/bench/sections/lease-cost.ts'

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

const none = Object.fromEntries(COUNTERS.map(name => [name, 0])) as Record<keyof Counts, number>

describe('the cost of a slot', () => {
  it.each<[string, Partial<Counts>, number]>([
    ['nothing', {}, 0],
    ['a million worker requests', { workerRequests: 1e6 }, 0.3],
    ['a million object requests, alarms among them', { objectRequests: 900_000, alarms: 100_000 }, 0.15],
    ['20 million incoming messages, billed as a million requests', { webSocketMessages: 20e6 }, 0.15],
    ['a month in which the object never sleeps', { objectMs: 30 * 86_400_000 }, 4.1472],
    ['a million rows, those of copies among them', { rowsWritten: 400_000, copyRows: 600_000 }, 1],
    ['a million KV writes', { kvWrites: 1e6 }, 5],
    ['a million log lines', { logLines: 1e6 }, 0.6],
  ])('%s', (_, counts, dollars) => {
    const resources = toSlotCost({ ...none, ...counts })
    expect(resources.reduce((sum, resource) => sum + resource.dollars, 0)).toBeCloseTo(dollars, 9)
  })

  it('is for one slot and thirty days', () => {
    const { workerRequests, objectMs } = toMonth({ ...none, workerRequests: 1_000, objectMs: 50 }, 100, 86_400)
    expect([workerRequests, objectMs]).toEqual([300, 15])
  })

  it('has the copies of the run with a fast clock, and everything else of the other run', () => {
    const fast = { ...none, kvWrites: 2, copyRows: 4, alarms: 2, rowsWritten: 70, objectMs: 9 }
    expect(withCopies({ ...none, kvWrites: 1, rowsWritten: 60, objectMs: 3 }, fast)).toEqual({
      ...none,
      kvWrites: 2,
      copyRows: 4,
      alarms: 2,
      rowsWritten: 60,
      objectMs: 3,
    })
  })
})
