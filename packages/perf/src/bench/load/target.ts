import { HttpConnection, type HttpResponse } from '@pool/test-kit/http1.ts'
import { LoadConnection, type Server } from './connection.ts'

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

export const catchProblem = (operation: Promise<ResponseError>): Promise<ResponseError> => operation.catch(toMessage)

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
