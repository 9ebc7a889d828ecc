import { once } from 'node:events'
import { rm } from 'node:fs/promises'
import { connect, createServer, type Socket } from 'node:net'
import { createLineSplitter, parseJson } from '../lib/text.ts'
import type { Provisioner } from './provisioner.ts'
import { DeploymentFailedError } from './run.ts'

/*
 * A provisioner in another process. Each call is a connection to a Unix socket, on which both sides send lines of JSON: first
 * the call; then the server calls the functions among its arguments, and the client responds; last the result. A client
 * that is gone stops its call, as the signal does.
 */

const METHODS = [
  ...(['preflight', 'describeExposure', 'moduleVersion', 'apply', 'destroy', 'plan', 'inspect', 'archive'] as const),
  ...(['findLockHolder', 'unlock', 'cleanUp', 'makesBucket', 'describeLimits'] as const),
] satisfies readonly (keyof Provisioner)[]
type Method = (typeof METHODS)[number]
type Callback = (argument: unknown) => unknown

/** A plan is the largest result: twice what its commands may print. In characters. */
const MAX_LINE = 2 * 64 * 1_024 * 1_024
/** From the signal to the end of the connection: longer than Terraform and its supervisor need. */
const STOP_TIMEOUT_MS = 60_000
const CHECK_TIMEOUT_MS = 10_000

const GONE = 'The container of Terraform ended, or did not stop, during this operation. Repeat it.'

type Message = Readonly<Record<string, unknown>>

/** Returns the function that sends a message. */
const open = (socket: Socket, onMessage: (message: Message) => void): ((message: object) => void) => {
  const lines = createLineSplitter(MAX_LINE, line => {
    const message = parseJson(line)
    if (message instanceof Object) onMessage(message as Message)
    else socket.destroy()
  })
  socket.setEncoding('utf8').on('data', chunk => lines.push(String(chunk)))
  // `close` follows.
  socket.on('error', () => {})
  return message => void (socket.writable && socket.write(`${JSON.stringify(message)}\n`))
}

const call = (path: string, method: Method, args: readonly unknown[]): Promise<unknown> =>
  new Promise((resolve, reject) => {
    const callbacks: Callback[] = []
    const signals: AbortSignal[] = []
    let failure: unknown
    const socket = connect(path)
    const send = open(socket, message => {
      if ('callback' in message) void respond(message)
      else {
        if ('result' in message) resolve(message.result)
        else reject(failure ?? new Error(`${method} failed in the container of Terraform: ${message.error}`))
        socket.destroy()
      }
    })
    const respond = async ({ callback, argument, id }: Message): Promise<void> => {
      try {
        await callbacks[Number(callback)]?.(argument)
        send({ id, isDone: true })
      } catch (error) {
        failure ??= error
        send({ id, isDone: false })
      }
    }
    const text = JSON.stringify({ method, args }, (_, value) => {
      if (value instanceof AbortSignal) return { $signal: signals.push(value) }
      return typeof value === 'function' ? { $callback: callbacks.push(value) - 1 } : value
    })
    socket.write(`${text}\n`)
    const stop = () => {
      send({ stop: true })
      setTimeout(() => socket.destroy(), STOP_TIMEOUT_MS).unref()
    }
    for (const signal of signals) {
      if (signal.aborted) stop()
      else signal.addEventListener('abort', stop, { once: true })
    }
    socket.once('close', () => {
      for (const signal of signals) signal.removeEventListener('abort', stop)
      reject(failure ?? new DeploymentFailedError(GONE))
    })
  })

/** The provisioner that `serveProvisioner` serves at this path. */
export const createRemoteProvisioner = (path: string): Provisioner => {
  const methods = METHODS.map(method => [method, (...args: readonly unknown[]) => call(path, method, args)])
  const remote: Provisioner = Object.fromEntries(methods)
  return {
    ...remote,
    preflight: async signal => {
      const ended = AbortSignal.any([AbortSignal.timeout(CHECK_TIMEOUT_MS), ...(signal ? [signal] : [])])
      const missing = `The container of Terraform does not respond at ${path} (PDM_TERRAFORM_RUNNER); see its log.`
      const found = await remote.preflight(ended).catch(() => missing)
      signal?.throwIfAborted()
      return found
    },
  }
}

const serve = (provisioner: Provisioner, socket: Socket): void => {
  const ended = new AbortController()
  const pending = new Map<unknown, PromiseWithResolvers<void>>()
  const send = open(socket, message => {
    if ('method' in message) void run(message)
    else if ('stop' in message) ended.abort()
    else if (message.isDone) pending.get(message.id)?.resolve()
    else pending.get(message.id)?.reject(new Error('The service rejected it.'))
    pending.delete(message.id)
  })
  const toCallback = (callback: unknown): Callback => {
    return argument => {
      const response = Promise.withResolvers<void>()
      const id = ids++
      if (!socket.writable) response.reject(new Error('The service is gone.'))
      pending.set(id, response)
      send({ callback, argument, id })
      // A log line waits for no response.
      response.promise.catch(() => {})
      return response.promise
    }
  }
  let ids = 0
  const run = async ({ method, args }: Message): Promise<void> => {
    try {
      const name = METHODS.find(known => known === method)
      if (!name) throw new RangeError('There is no such method.')
      const revived: never[] = JSON.parse(JSON.stringify(args), (_, value) => {
        if (value?.$signal) return ended.signal
        return value?.$callback === undefined ? value : toCallback(value.$callback)
      })
      const result = await (provisioner[name] as (...args: unknown[]) => Promise<unknown>)(...revived)
      send({ result: result ?? null })
    } catch (error) {
      send({ error: error instanceof Error ? error.message : String(error) })
    }
  }
  socket.once('close', () => {
    ended.abort()
    for (const { reject } of pending.values()) reject(new Error('The service is gone.'))
  })
}

/** Serves a provisioner at a path, which it replaces. Resolves with a function that resolves when all calls have ended. */
export const serveProvisioner = async (provisioner: Provisioner, path: string): Promise<() => Promise<void>> => {
  await rm(path, { force: true })
  const server = createServer(socket => serve(provisioner, socket)).listen(path)
  await once(server, 'listening')
  return () => new Promise(resolve => server.close(() => resolve()))
}
