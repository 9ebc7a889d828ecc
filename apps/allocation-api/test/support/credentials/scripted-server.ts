import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'

/** What a server does with a connection. */
export type ConnectionHandler = (socket: Socket) => void

export interface ScriptedServer {
  readonly port: number
  /** Handles every new connection from now on. */
  respondWith(handler: ConnectionHandler): void
  /** Connections so far. */
  count(): number
  close(): Promise<void>
}

/** A server on 127.0.0.1 whose behaviour the test replaces. */
export const startScriptedServer = async (): Promise<ScriptedServer> => {
  const sockets = new Set<Socket>()
  let handler: ConnectionHandler = socket => socket.destroy()
  let count = 0
  const server = createServer(socket => {
    count += 1
    sockets.add(socket)
    // Resets are expected.
    socket.on('error', () => {}).on('close', () => sockets.delete(socket))
    handler(socket)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  const port = typeof address === 'object' && address ? address.port : 0
  return {
    port,
    respondWith: next => {
      handler = next
    },
    count: () => count,
    async close() {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}
