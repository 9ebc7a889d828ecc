import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface Balancer extends AsyncDisposable {
  readonly port: number
  /** The ports that passed their last check. */
  ready(): readonly number[]
}

const CHECK_INTERVAL_MS = 50

const isReady = (port: number): Promise<boolean> =>
  fetch(`http://127.0.0.1:${port}/readyz`).then(
    ({ status }) => status === 200,
    () => false,
  )

/**
 * An HTTP proxy that sends each request to the next backend that is ready. As load balancers do, it tries another one if the
 * connection is refused, and only then.
 */
export const startBalancer = async (backends: readonly number[]): Promise<Balancer> => {
  let ready: readonly number[] = []
  let next = 0
  const check = async (): Promise<void> => {
    const results = await Promise.all(backends.map(isReady))
    ready = backends.filter((_, index) => results[index])
  }
  const server = createServer(async (incoming, outgoing) => {
    const chunks: Buffer[] = []
    for await (const chunk of incoming) chunks.push(chunk)
    const send = (candidates: readonly number[]): void => {
      const [port, ...others] = candidates
      if (port === undefined) return void outgoing.writeHead(503).end()
      const { method, url: path, headers } = incoming
      const forwarded = request({ host: '127.0.0.1', port, method, path, headers, agent: false }, response => {
        outgoing.writeHead(response.statusCode ?? 502, response.headers)
        response.pipe(outgoing)
      })
      forwarded.on('error', (error: NodeJS.ErrnoException) => {
        if (error.code === 'ECONNREFUSED') return send(others)
        return outgoing.headersSent ? outgoing.destroy() : void outgoing.writeHead(502).end()
      })
      forwarded.end(Buffer.concat(chunks))
    }
    next += 1
    const first = next % Math.max(1, ready.length)
    send([...ready.slice(first), ...ready.slice(0, first)])
  })
  await check()
  const timer = setInterval(() => void check(), CHECK_INTERVAL_MS)
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return {
    port: (server.address() as AddressInfo).port,
    ready: () => ready,
    async [Symbol.asyncDispose]() {
      clearInterval(timer)
      server.closeAllConnections()
      await new Promise(resolve => server.close(resolve))
    },
  }
}
