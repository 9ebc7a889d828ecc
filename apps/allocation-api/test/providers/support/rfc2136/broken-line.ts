import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'

export interface Line extends AsyncDisposable {
  readonly server: { readonly host: string; readonly port: number }
  /** Octets carried so far. */
  readonly carried: { asked: number; answered: number }
}

/**
 * Between a client and 127.0.0.1:`port`: carries everything octet by octet, and resets both ends once it has carried
 * so many octets to the server, or so many from it.
 */
export const startBrokenLine = async (port: number, most: { asked?: number; answered?: number }): Promise<Line> => {
  const carried = { asked: 0, answered: 0 }
  const sockets = new Set<Socket>()
  const listener = createServer(near => {
    const far = connect({ port, host: '127.0.0.1', noDelay: true })
    near.setNoDelay()
    const ways = [
      [near, far, 'asked'],
      [far, near, 'answered'],
    ] as const
    for (const [from, to, way] of ways) {
      sockets.add(from)
      from.on('error', () => {})
      from.on('close', () => to.destroy())
      from.on('data', (octets: Buffer) => {
        for (const octet of octets) {
          if (carried[way] === most[way]) {
            near.resetAndDestroy()
            far.resetAndDestroy()
            return
          }
          carried[way] += 1
          to.write(Buffer.of(octet))
        }
      })
    }
  })
  listener.listen(0, '127.0.0.1')
  await once(listener, 'listening')
  const address = listener.address()
  return {
    server: { host: '127.0.0.1', port: typeof address === 'object' && address ? address.port : 0 },
    carried,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      await new Promise(resolve => listener.close(resolve))
    },
  }
}
