import { connect, type Socket } from 'node:net'
import { type Answer, readAnswer } from './answer.ts'
import { bytesOf, type FuzzRequest } from './request.ts'

/** What became of a request. */
export type Outcome =
  | { readonly kind: 'answered'; readonly answer: Answer; readonly leftOver: number }
  /** Ended without an answer. */
  | { readonly kind: 'closed' }
  | { readonly kind: 'broken'; readonly detail: string }
  /** Neither an answer nor an end within the deadline. */
  | { readonly kind: 'stuck' }

export interface Wire extends Disposable {
  /** One at a time. A connection that ended is followed by a new one. */
  readonly send: (request: FuzzRequest) => Promise<Outcome>
}

export interface WireOptions {
  readonly port: number
  /** Milliseconds. */
  readonly deadlineMs: number
  /** How long a broken request may wait for more before it is ended from here, in milliseconds. */
  readonly endAfterMs?: number
}

interface Open {
  readonly socket: Socket
  received: Buffer
  isEnded: boolean
  notify: () => void
}

const open = (port: number): Open => {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true })
  const one: Open = { socket, received: Buffer.alloc(0), isEnded: false, notify: () => {} }
  const end = () => {
    one.isEnded = true
    one.notify()
  }
  socket.on('data', chunk => {
    one.received = one.received.length === 0 ? chunk : Buffer.concat([one.received, chunk])
    one.notify()
  })
  socket.on('error', end)
  socket.on('end', end)
  socket.on('close', end)
  return one
}

/** Whether there is more than interim answers (1xx): who was told to go on (100) has not been answered. */
const hasBegun = (received: Buffer): boolean =>
  !/^(?:HTTP\/1\.1 1\d\d [^\r]*\r\n\r\n)*$/.test(received.toString('latin1', 0, 200))

const converse = (one: Open, request: FuzzRequest, { deadlineMs, endAfterMs = 40 }: WireOptions): Promise<Outcome> => {
  const { promise, resolve } = Promise.withResolvers<Outcome>()
  const timers: NodeJS.Timeout[] = []
  let hasLeft = false
  const leave = () => {
    // What has begun to answer is not waiting for more.
    if (hasBegun(one.received)) return
    hasLeft = true
    one.socket.end()
  }
  const settle = (outcome: Outcome) => {
    one.notify = () => {}
    for (const timer of timers) clearTimeout(timer)
    resolve(outcome)
  }
  one.notify = () => {
    const read = readAnswer(one.received, request.method, one.isEnded)
    // Who says that nothing more comes is taken for gone, as by most servers, and an answer under way may end there.
    if (read.kind === 'broken') return settle(hasLeft && one.isEnded ? { kind: 'closed' } : read)
    if (read.kind === 'answer') {
      const leftOver = one.received.length - read.length
      one.received = one.received.subarray(read.length)
      return settle({ kind: 'answered', answer: read.answer, leftOver })
    }
    if (one.isEnded)
      settle(hasBegun(one.received) && !hasLeft ? { kind: 'broken', detail: 'half an answer' } : { kind: 'closed' })
  }
  timers.push(setTimeout(() => settle({ kind: 'stuck' }), deadlineMs))
  // Whoever is told that nothing more comes has no reason to wait.
  if (request.raw) timers.push(setTimeout(leave, endAfterMs))
  one.socket.write(bytesOf(request))
  if (one.isEnded) one.notify()
  return promise
}

/** A connection that is kept alive from one sound request to the next; a broken one has a connection of its own. */
export const openWire = (options: WireOptions): Wire => {
  let current: Open | undefined
  const drop = () => {
    current?.socket.destroy()
    current = undefined
  }
  return {
    async send(request) {
      // One that ended between two requests, as any server may end one, says nothing about either.
      if (request.raw || current?.isEnded || current?.socket.destroyed) drop()
      current ??= open(options.port)
      const outcome = await converse(current, request, options)
      const goesOn = outcome.kind === 'answered' && !outcome.answer.isLast && outcome.leftOver === 0
      if (request.raw || !goesOn) drop()
      return outcome
    },
    [Symbol.dispose]: drop,
  }
}
