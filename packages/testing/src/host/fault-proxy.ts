import { once } from 'node:events'
import { type ClientRequest, createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import { pipeline } from 'node:stream/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { type FaultSpec, type RequestFilter, WRITE_METHODS } from '../protocol.ts'

/** These describe one connection (RFC 9110 section 7.6.1). The other connection has its own. */
const CONNECTION_HEADERS = ['connection', 'keep-alive', 'transfer-encoding']

export interface FaultProxyOptions {
  /** Kills the service and starts it again. Resolves when it serves requests. */
  readonly killService: () => Promise<void>
}

interface ActiveFault {
  readonly spec: FaultSpec
  readonly occurred: PromiseWithResolvers<void>
  /** Aborted when the fault ends. */
  readonly ended: AbortController
}

/** Whether a request matches the filter of a fault. */
export const matches = ({ method, path }: RequestFilter, request: Pick<IncomingMessage, 'method' | 'url'>): boolean => {
  const methods = typeof method === 'string' ? [method] : method
  if (methods && !methods.includes(request.method ?? '')) return false
  const actual = (request.url ?? '').split('?', 1)[0] ?? ''
  if (path === undefined) return true
  return typeof path === 'string' ? path === actual : actual.search(path) >= 0
}

/** The names and values of the headers that go on to the other connection. */
const toForwardedHeaders = (rawHeaders: readonly string[]): string[] =>
  rawHeaders.filter((_, index) => {
    const name = rawHeaders[index - (index % 2)] ?? ''
    return !CONNECTION_HEADERS.includes(name.toLowerCase())
  })

const reset = (incoming: IncomingMessage): void => void incoming.socket.resetAndDestroy()

export type FaultProxy = Awaited<ReturnType<typeof startFaultProxies>>

/**
 * Starts a proxy in front of each listener of a service. It forwards HTTP requests and applies faults to them. Faults are
 * evaluated in the order in which they were added.
 */
export const startFaultProxies = async (listeners: number, { killService }: FaultProxyOptions) => {
  const faults = new Map<number, ActiveFault>()
  /** Also of faults that have ended. */
  const occurrences = new Map<number, Promise<void>>()
  /** The ports of the service; empty while it does not run. */
  let targets: readonly number[] = []
  let nextFault = 1

  const findFault = (incoming: IncomingMessage, ...kinds: readonly FaultSpec['kind'][]) =>
    [...faults].find(([, { spec }]) => kinds.includes(spec.kind) && matches(spec.filter, incoming))

  const end = (id: number): void => {
    const fault = faults.get(id)
    faults.delete(id)
    fault?.ended.abort()
  }

  /** Keeps the connection silent until the partition ends, and resets it then. */
  const holdBack = async (incoming: IncomingMessage, { ended, occurred }: ActiveFault): Promise<void> => {
    occurred.resolve()
    if (!ended.signal.aborted) await once(ended.signal, 'abort')
    reset(incoming)
  }

  /** Whether the response may go to the client. If not, this function has ended the connection. */
  const applyToResponse = async (incoming: IncomingMessage, status: number): Promise<boolean> => {
    const isAcceptedWrite = WRITE_METHODS.includes(incoming.method ?? '') && status < 400
    const [killId, kill] = (isAcceptedWrite && findFault(incoming, 'kill-after-write')) || []
    if (killId !== undefined && kill) {
      end(killId)
      const restarted = killService()
      reset(incoming)
      await restarted.then(kill.occurred.resolve, kill.occurred.reject)
      return false
    }
    const [dropId, drop] = findFault(incoming, 'drop-response') ?? []
    if (dropId !== undefined && drop) {
      end(dropId)
      drop.occurred.resolve()
      reset(incoming)
      return false
    }
    const [, delay] = findFault(incoming, 'delay') ?? []
    if (delay) {
      delay.occurred.resolve()
      await sleep(delay.spec.ms, undefined, { signal: delay.ended.signal }).catch(() => {})
    }
    const [, partition] = findFault(incoming, 'partition') ?? []
    if (!partition) return true
    await holdBack(incoming, partition)
    return false
  }

  const respond = async (incoming: IncomingMessage, outgoing: ServerResponse, forwarded: ClientRequest) => {
    const [response] = (await once(forwarded, 'response')) as [IncomingMessage]
    response.on('error', () => {})
    const status = response.statusCode ?? 502
    if (!(await applyToResponse(incoming, status))) {
      forwarded.destroy()
      return
    }
    outgoing.sendDate = false
    outgoing.writeHead(status, response.statusMessage, toForwardedHeaders(response.rawHeaders))
    outgoing.flushHeaders()
    await pipeline(response, outgoing)
  }

  const forward = async (incoming: IncomingMessage, outgoing: ServerResponse, index: number): Promise<void> => {
    const [dropId, drop] = findFault(incoming, 'drop-request') ?? []
    if (dropId !== undefined && drop) {
      end(dropId)
      drop.occurred.resolve()
      reset(incoming)
      return
    }
    const [, partition] = findFault(incoming, 'partition') ?? []
    if (partition) return holdBack(incoming, partition)
    const port = targets[index]
    if (port === undefined) {
      reset(incoming)
      return
    }
    const headers = toForwardedHeaders(incoming.rawHeaders)
    const hasUnknownLength = incoming.headers['transfer-encoding'] !== undefined
    const forwarded = request({
      host: '127.0.0.1',
      port,
      method: incoming.method,
      path: incoming.url,
      setHost: false,
      // A connection for each request: a reused one can be closed by the service at the same moment, and then it is unknown
      // whether the service has received the request.
      agent: false,
      headers: [...headers, 'Connection', 'close', ...(hasUnknownLength ? ['Transfer-Encoding', 'chunked'] : [])],
    })
    // The failures that matter end `respond`.
    forwarded.on('error', () => {})
    incoming.on('error', () => {})
    outgoing.on('close', () => {
      if (!outgoing.writableFinished) forwarded.destroy()
    })
    incoming.pipe(forwarded)
    await respond(incoming, outgoing, forwarded).catch(() => reset(incoming))
  }

  const servers = await Promise.all(
    Array.from({ length: listeners }, async (_, index) => {
      const server = createServer(
        { requestTimeout: 0, keepAliveTimeout: 0 },
        (incoming, outgoing) => void forward(incoming, outgoing, index),
      )
      server.listen(0, '127.0.0.1')
      await once(server, 'listening')
      const address = server.address()
      return { server, port: typeof address === 'object' && address ? address.port : 0 }
    }),
  )

  return {
    ports: servers.map(({ port }) => port),

    /** The ports to which requests go from now on. Empty: connections are reset. */
    setTargets(ports: readonly number[]): void {
      targets = ports
    },

    addFault(spec: FaultSpec): number {
      const id = nextFault
      nextFault += 1
      const occurred = Promise.withResolvers<void>()
      // A rejection that no test awaits must not end the process.
      occurred.promise.catch(() => {})
      faults.set(id, { spec, occurred, ended: new AbortController() })
      occurrences.set(id, occurred.promise)
      return id
    },

    /** Resolves when the fault has occurred; rejects when it is cancelled before. */
    awaitFault: async (id: number): Promise<void> => occurrences.get(id),

    cancelFault(id: number): void {
      // Without an effect if it has occurred.
      faults.get(id)?.occurred.reject(new Error('the fault was cancelled before it affected a request'))
      end(id)
    },

    close(): void {
      for (const { server } of servers) {
        server.close()
        server.closeAllConnections()
      }
    },
  }
}
