import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'

/** What a server does with a connection. */
export type ConnectionHandler = (socket: Socket) => void

export interface ScriptedServer {
  readonly port: number
  /** From now on, for every connection that comes. */
  respondWith(scene: ConnectionHandler): void
  /** Connections that came so far. */
  count(): number
  close(): Promise<void>
}

/** A port of 127.0.0.1 behind which is, at any time, another kind of server. */
export const startScriptedServer = async (): Promise<ScriptedServer> => {
  const sockets = new Set<Socket>()
  let scene: ConnectionHandler = socket => socket.destroy()
  let count = 0
  const server = createServer(socket => {
    count += 1
    sockets.add(socket)
    // A reset is one of the things that happen here.
    socket.on('error', () => {}).on('close', () => sockets.delete(socket))
    scene(socket)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  const port = typeof address === 'object' && address ? address.port : 0
  return {
    port,
    respondWith: next => {
      scene = next
    },
    count: () => count,
    async close() {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}
