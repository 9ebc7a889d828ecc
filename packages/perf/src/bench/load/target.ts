import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { HttpConnection, HttpResponse, parseResponse } from '@pool/test-kit/http1.ts'

/** Longer than a service takes for any response of a load. */
const TIMEOUT_MS = 30_000

const STATUS = 'HTTP/1.1 200'.length
const LENGTH = /\r\ncontent-length: (\d+)\r/i
const CLOSE = /\r\nconnection: close\r/i

/** Of this machine, or of another one. */
export interface Server {
  readonly host: string
  readonly port: number
}

/** The whole of `bytes` as one response with a length; null: they are something else. */
const parseWhole = (bytes: Buffer): HttpResponse | null => {
  const text = bytes.toString('latin1')
  const headEnd = text.indexOf('\r\n\r\n')
  if (headEnd < 0 || !text.startsWith('HTTP/1.1 ')) return null
  const head = text.slice(0, headEnd + 2)
  const length = LENGTH.exec(head)
  const bodyStart = headEnd + 4
  if (!length || CLOSE.test(head) || bytes.length !== bodyStart + Number(length[1])) return null
  return new HttpResponse(Number(head.slice(STATUS - 3, STATUS)), '', bytes.subarray(bodyStart), false)
}

/**
 * A keep-alive connection of the load generator, with one request at a time. It costs a fraction of `HttpConnection`, which
 * has a timer for each response and checks each header: on two cores, the generator must not be what limits a fast server.
 * A response does not have its headers.
 */
class LoadConnection implements Disposable {
  readonly #socket: Socket
  #received: Buffer | null = null
  #pending: { readonly resolve: (response: HttpResponse) => void; readonly reject: (error: Error) => void } | null =
    null
  #failure: Error | null = null

  private constructor(socket: Socket) {
    this.#socket = socket
    socket.on('data', chunk => this.#receive(chunk))
    socket.setTimeout(TIMEOUT_MS, () => socket.destroy(new Error('no complete response in time')))
    socket.on('error', error => this.#fail(error))
    socket.on('close', () => this.#fail(new Error('no response: the connection was closed')))
  }

  static async open({ host, port }: Server): Promise<LoadConnection> {
    const socket = connect({ port, host, noDelay: true })
    await once(socket, 'connect')
    return new LoadConnection(socket)
  }

  send(bytes: string): Promise<HttpResponse> {
    if (this.#failure) return Promise.reject(this.#failure)
    this.#socket.write(bytes, 'latin1')
    return new Promise((resolve, reject) => {
      this.#pending = { resolve, reject }
    })
  }

  [Symbol.dispose](): void {
    this.#socket.destroy()
  }

  #receive(chunk: Buffer): void {
    const whole = this.#received === null ? parseWhole(chunk) : null
    if (whole) {
      this.#resolve(whole)
      return
    }
    this.#received = this.#received ? Buffer.concat([this.#received, chunk]) : chunk
    const parsed = parseResponse(this.#received)
    if (parsed.kind === 'incomplete') return
    this.#received = null
    if (parsed.kind === 'response') this.#resolve(parsed.response)
    else this.#fail(new Error(`a ${parsed.kind} response`))
  }

  #resolve(response: HttpResponse): void {
    const pending = this.#pending
    this.#pending = null
    pending?.resolve(response)
  }

  #fail(error: Error): void {
    this.#failure ??= error
    const pending = this.#pending
    this.#pending = null
    pending?.reject(error)
  }
}

/** What is wrong with one response; null: nothing. */
export type ResponseError = string | null

/** Performs one operation; undefined: no work is left. */
export type VirtualUser = () => Promise<ResponseError> | undefined

export interface VirtualUsers extends Disposable {
  readonly users: readonly VirtualUser[]
}

/** A system under test, or a baseline that it is compared with. */
export interface Target {
  readonly name: string
  /** Called before each run, and not timed. */
  readonly prepare?: () => Promise<void>
  readonly open: (users: number) => Promise<VirtualUsers>
  /** The process whose CPU time an operation costs; absent: its costs are unknown. */
  readonly pid?: number
}

export interface BenchRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  readonly path: string
  /** Whole lines, each with CRLF. */
  readonly headers?: string
  readonly body?: string
}

export interface Task {
  readonly request: BenchRequest
  readonly check: (response: HttpResponse) => ResponseError
}

const encode = ({ method, path, headers = '', body }: BenchRequest): string =>
  body === undefined
    ? `${method} ${path} HTTP/1.1\r\nHost: bench\r\n${headers}\r\n`
    : `${method} ${path} HTTP/1.1\r\nHost: bench\r\n${headers}Content-Type: application/json\r\n` +
      `Content-Length: ${body.length}\r\n\r\n${body}`

/**
 * Sends one request. Its body is ASCII. The load generator shares two cores with what it measures, and every request
 * differs from the last: autocannon keeps latencies in whole milliseconds, which is more than a check takes, and
 * `node:http` costs about as much for a request as the service itself.
 */
const sendTask = async (connection: LoadConnection, { request, check }: Task): Promise<ResponseError> => {
  const response = await connection.send(encode(request))
  if (response.isLast) return `a ${response.status} that closes the connection`
  return check(response)
}

const toMessage = (error: unknown): string => (error instanceof Error ? error.message : String(error))

/** The port of a service that this process started. */
const toServer = (to: number | Server): Server => (typeof to === 'number' ? { host: '127.0.0.1', port: to } : to)

const openConnections = (to: number | Server, count: number): Promise<LoadConnection[]> =>
  Promise.all(Array.from({ length: count }, () => LoadConnection.open(toServer(to))))

const catchProblem = (operation: Promise<ResponseError>): Promise<ResponseError> => operation.catch(toMessage)

/** Virtual users with a connection each. `next` makes the next request of a user; undefined: no work is left. */
export const openHttpUsers = async (
  to: number | Server,
  count: number,
  next: (user: number) => Task | undefined,
): Promise<VirtualUsers> => {
  const connections = await openConnections(to, count)
  return {
    users: connections.map((connection, user) => () => {
      const task = next(user)
      return task && catchProblem(sendTask(connection, task))
    }),
    [Symbol.dispose]: () => {
      for (const connection of connections) connection[Symbol.dispose]()
    },
  }
}

/** Virtual users inside this process. */
export const createLocalUsers = (count: number, call: () => Promise<ResponseError> | undefined): VirtualUsers => ({
  users: Array.from({ length: count }, () => () => {
    const operation = call()
    return operation && catchProblem(operation)
  }),
  [Symbol.dispose]: () => {},
})

/** The items of the operations of a load, each as a request. */
export interface Workload<Item> {
  /** Called before each run, and not timed. */
  readonly prepare?: () => Promise<void>
  /** The next item; undefined: none is left. */
  readonly next: () => Item | undefined
  readonly toTask: (item: Item) => Task
}

/** A load on a server. `pid`: of its process; absent: its costs are unknown. */
export const createHttpTarget = <Item>(
  name: string,
  server: number | Server,
  { next, toTask, ...preparation }: Workload<Item>,
  pid?: number,
): Target => ({
  name,
  ...preparation,
  ...(pid === undefined ? {} : { pid }),
  open: users =>
    openHttpUsers(server, users, () => {
      const item = next()
      return item === undefined ? undefined : toTask(item)
    }),
})

/** The same load inside this process. `operate` throws for an unexpected result. */
export const createLocalTarget = <Item>(
  name: string,
  { next, ...preparation }: Omit<Workload<Item>, 'toTask'>,
  operate: (item: Item) => Promise<unknown>,
): Target => ({
  name,
  ...preparation,
  open: async users =>
    createLocalUsers(users, () => {
      const item = next()
      return item === undefined ? undefined : operate(item).then(() => null)
    }),
})

/** Sends tasks until `next` returns undefined, over a few connections. Throws on the first problem. */
export const sendAll = async (to: number | Server, next: () => Task | undefined, connections = 16): Promise<void> => {
  const open = await openConnections(to, connections)
  try {
    await Promise.all(
      open.map(async connection => {
        for (let task = next(); task; task = next()) {
          const problem = await sendTask(connection, task)
          if (problem !== null) throw new Error(`${task.request.method} ${task.request.path}: ${problem}`)
        }
      }),
    )
  } finally {
    for (const connection of open) connection[Symbol.dispose]()
  }
}

export const sendOne = async (port: number, request: BenchRequest): Promise<HttpResponse> => {
  using connection = await HttpConnection.open(port)
  return await connection.send(encode(request))
}

/** Accepts the statuses of a successful operation. */
export const expectStatus =
  (...statuses: readonly number[]) =>
  (response: HttpResponse): ResponseError =>
    statuses.includes(response.status) ? null : `status ${response.status}: ${response.text.slice(0, 120)}`
