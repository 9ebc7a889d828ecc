import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { describe, expect, it } from 'vitest'
import { LoadConnection } from '../../src/bench/load/connection.ts'

/** A connection to a server that writes the parts after each request, each of them on its own. */
const connectTo = async (respond: (socket: Socket) => Promise<void> | void) => {
  const stack = new AsyncDisposableStack()
  const server = createServer(socket => {
    socket.setNoDelay(true)
    // The client destroys its connection at the end.
    socket.on('error', () => {})
    socket.on('data', () => void respond(socket))
  })
  stack.defer(async () => {
    server.close()
    await once(server, 'close')
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  return Object.assign(stack, { connection: stack.use(await LoadConnection.open({ host: '127.0.0.1', port })) })
}

const write = (socket: Socket, text: string) => new Promise<void>(resolve => void socket.write(text, () => resolve()))

describe('a connection of the load generator', () => {
  it.each<[string, readonly string[], boolean]>([
    ['a length', ['HTTP/1.1 201 Created\r\nContent-Length: 5\r\n\r\nhello'], false],
    ['a length, in parts', ['HTTP/1.1 201 Created\r\nContent-', 'Length: 5\r\n\r\nhel', 'lo'], false],
    ['chunks', ['HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n'], false],
    ['a close', ['HTTP/1.1 201 Created\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello'], true],
  ])('reads responses with %s', async (_, parts, isLast) => {
    await using server = await connectTo(async socket => {
      for (const part of parts) await write(socket, part)
    })
    for (let request = 0; request < 2; request += 1) {
      const response = await server.connection.send('GET / HTTP/1.1\r\n\r\n')
      expect({ ...response, text: response.text, isLast: response.isLast }).toMatchObject({
        status: 201,
        text: 'hello',
        isLast,
      })
    }
  })

  it.each<[string, (socket: Socket) => void, RegExp]>([
    ['is not HTTP', socket => void socket.write('hello\r\n\r\n'), /a malformed response/],
    ['ends early', socket => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel'), /was closed/],
    ['does not come', socket => socket.destroy(), /was closed/],
  ])('rejects a response that %s, and every later one', async (_, respond, message) => {
    await using server = await connectTo(respond)
    await expect(server.connection.send('GET / HTTP/1.1\r\n\r\n')).rejects.toThrow(message)
    await expect(server.connection.send('GET / HTTP/1.1\r\n\r\n')).rejects.toThrow(message)
  })
})
