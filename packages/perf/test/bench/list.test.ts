import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { describe, expect, it } from 'vitest'
import { toLabel } from '../../src/bench/environment/names.ts'
import { readList } from '../../src/bench/sections/list.ts'

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
