import { createServer, type Socket } from 'node:net'

export interface DnsDouble extends AsyncDisposable {
  readonly server: { readonly host: string; readonly port: number }
}

export const framed = (message: Buffer): Buffer => {
  const length = Buffer.alloc(2)
  length.writeUInt16BE(message.length)
  return Buffer.concat([length, message])
}

/** Calls `take` with each whole message that arrives. */
export const onMessages = (socket: Socket, take: (message: Buffer) => void): void => {
  let held = Buffer.alloc(0)
  socket.on('data', chunk => {
    held = Buffer.concat([held, Buffer.from(chunk)])
    while (held.length >= 2 && held.length >= 2 + held.readUInt16BE(0)) {
      const end = 2 + held.readUInt16BE(0)
      take(held.subarray(2, end))
      held = held.subarray(end)
    }
  })
}

/** Listens for DNS over TCP; `answer` gets each request and does with the socket what a broken server might. */
export const startDnsDouble = async (answer: (request: Buffer, socket: Socket) => void): Promise<DnsDouble> => {
  const sockets = new Set<Socket>()
  const server = createServer(socket => {
    sockets.add(socket)
    socket.on('error', () => {})
    onMessages(socket, request => answer(request, socket))
  })
  await new Promise<void>(resolve => {
    server.listen(0, '127.0.0.1', resolve)
  })
  const address = server.address()
  return {
    server: { host: '127.0.0.1', port: typeof address === 'object' && address ? address.port : 0 },
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      await new Promise<void>(resolve => {
        server.close(() => resolve())
      })
    },
  }
}
