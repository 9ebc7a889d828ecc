import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'

export interface BreakingProxy extends AsyncDisposable {
  readonly server: { readonly host: string; readonly port: number }
  /** Octets forwarded so upstream, to the server and from it. */
  readonly carried: { sent: number; received: number }
}

/** Forwards to 127.0.0.1:`port` octet by octet, and resets both connections when a direction reaches its limit in octets. */
export const startBreakingProxy = async (
  port: number,
  limits: { sent?: number; received?: number },
): Promise<BreakingProxy> => {
  const carried = { sent: 0, received: 0 }
  const sockets = new Set<Socket>()
  const listener = createServer(client => {
    const upstream = connect({ port, host: '127.0.0.1', noDelay: true })
    client.setNoDelay()
    const directions = [
      [client, upstream, 'sent'],
      [upstream, client, 'received'],
    ] as const
    for (const [from, to, direction] of directions) {
      sockets.add(from)
      from.on('error', () => {})
      from.on('close', () => to.destroy())
      from.on('data', (octets: Buffer) => {
        for (const octet of octets) {
          if (carried[direction] === limits[direction]) {
            client.resetAndDestroy()
            upstream.resetAndDestroy()
            return
          }
          carried[direction] += 1
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
