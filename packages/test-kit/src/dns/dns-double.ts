import { createServer, type Socket } from 'node:net'
import { listenOnLoopback } from '@pool/dev/ports'

export interface DnsDouble extends AsyncDisposable {
  readonly server: { readonly host: string; readonly port: number }
}

export const toTcpMessage = (message: Buffer): Buffer => {
  const length = Buffer.alloc(2)
  length.writeUInt16BE(message.length)
  return Buffer.concat([length, message])
}

/** Calls `onMessage` with each complete message. */
export const onMessages = (socket: Socket, onMessage: (message: Buffer) => void): void => {
  let buffered = Buffer.alloc(0)
  socket.on('data', chunk => {
    buffered = Buffer.concat([buffered, Buffer.from(chunk)])
    while (buffered.length >= 2 && buffered.length >= 2 + buffered.readUInt16BE(0)) {
      const end = 2 + buffered.readUInt16BE(0)
      onMessage(buffered.subarray(2, end))
      buffered = buffered.subarray(end)
    }
  })
}

/** A DNS server over TCP. `answer` gets each request and writes any bytes to the socket, or closes it. */
export const startDnsDouble = async (answer: (request: Buffer, socket: Socket) => void): Promise<DnsDouble> => {
  const sockets = new Set<Socket>()
  const server = createServer(socket => {
    sockets.add(socket)
    socket.on('error', () => {})
    onMessages(socket, request => answer(request, socket))
  })
  return {
    server: { host: '127.0.0.1', port: await listenOnLoopback(server) },
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      await new Promise<void>(resolve => {
        server.close(() => resolve())
      })
    },
  }
}
