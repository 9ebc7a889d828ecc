import { createSocket } from 'node:dgram'
import { connect, createServer } from 'node:net'

/** A TCP port that was free a moment ago. Another process may take it before its user does: be ready to try again. */
export function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer().on('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const address = server.address()
      server.close(() => {
        if (address !== null && typeof address === 'object') resolve(address.port)
        else reject(new Error('no free port'))
      })
    })
  })
}

/** Whether something takes a connection there, on 127.0.0.1. */
export function isListening(port: number): Promise<boolean> {
  return new Promise(resolve => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.destroy()
      resolve(true)
    }).on('error', () => resolve(false))
  })
}

/** Whether something listens there: on loopback, or on every address, of either IP version. */
export async function isPortTaken(port: number, udp = false): Promise<boolean> {
  const attempt = udp ? bindUdp : listenTcp
  for (const host of ['127.0.0.1', '::1', '0.0.0.0', '::']) {
    if (await attempt(port, host)) return true
  }
  return false
}

// Any other fault (no IPv6 on the machine, a privileged port) is not another process's doing.
const isTaken = (error: NodeJS.ErrnoException) => error.code === 'EADDRINUSE'

function listenTcp(port: number, host: string): Promise<boolean> {
  return new Promise(resolve => {
    const server = createServer().on('error', error => resolve(isTaken(error)))
    server.listen({ port, host, exclusive: true }, () => server.close(() => resolve(false)))
  })
}

function bindUdp(port: number, host: string): Promise<boolean> {
  return new Promise(resolve => {
    const socket = createSocket(host.includes(':') ? 'udp6' : 'udp4').on('error', error => {
      socket.close()
      resolve(isTaken(error))
    })
    socket.bind({ port, address: host, exclusive: true }, () => socket.close(() => resolve(false)))
  })
}
