import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { HttpResponse } from '@pool/test-kit/http1.ts'
import { describe, expect, it } from 'vitest'
import { toLabel } from '../../src/bench/environment/names.ts'
import { EtcdClient } from '../../src/bench/sections/etcd.ts'
import { createSlotPicker, LeaseClient } from '../../src/bench/sections/lease-client.ts'
import { type Counts, toMonth, toSlotCost, withCopies } from '../../src/bench/sections/lease-cost.ts'
import { readList } from '../../src/bench/sections/list.ts'

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

const none: Counts = {
  workerRequests: 0,
  objectRequests: 0,
  webSocketMessages: 0,
  objectMs: 0,
  objectStarts: 0,
  rowsRead: 0,
  rowsWritten: 0,
  kvReads: 0,
  kvWrites: 0,
  kvLists: 0,
  logLines: 0,
  alarms: 0,
  copyRows: 0,
  cpuMs: 0,
}

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

describe('a list', () => {
  const body = '{"poolDomain":"a","rows":[{"poolDomain":"a"},{"poolDomain":"a"}]}'

  it.each([1, 2, 7, 15, 100])('has all rows in chunks of %d bytes', async size => {
    const chunks = Array.from({ length: Math.ceil(body.length / size) }, (_, n) => body.slice(n * size, (n + 1) * size))
    await expect(serve(chunks)).resolves.toMatchObject({ rows: 2, bytes: body.length })
  })

  it('that is truncated is an error', async () => {
    await expect(serve([body.slice(0, -1)])).rejects.toThrow()
  })

  /** Reads the chunks from a server that sends the length of the whole body. */
  const serve = async (chunks: readonly string[]) => {
    const server = createServer(async socket => {
      socket.setNoDelay(true)
      socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n\r\n`)
      for (const chunk of chunks) await new Promise(resolve => void socket.write(chunk, resolve))
      socket.end()
    })
    await once(server.listen(0, '127.0.0.1'), 'listening')
    const { port } = server.address() as AddressInfo
    try {
      return await readList(`http://127.0.0.1:${port}/`)
    } finally {
      server.close()
    }
  }
})

describe('labels', () => {
  it('are valid, unique, and not adjacent in the sort order', () => {
    const labels = Array.from({ length: 10_000 }, (_, n) => toLabel(n))
    expect(new Set(labels).size).toBe(labels.length)
    for (const label of labels) expect(label).toMatch(/^t[0-9a-f]{8}$/)
    expect(labels.toSorted()).not.toEqual(labels)
  })
})
