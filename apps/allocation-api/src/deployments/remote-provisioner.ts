import { once } from 'node:events'
import { rm } from 'node:fs/promises'
import { connect, createServer, type Socket } from 'node:net'
import { createLineSplitter, parseJson } from '../lib/text.ts'
import { ProvisionerFailedError } from './domain/provisioner-failure.ts'
import type { Provisioner } from './provisioner.ts'

/*
 * A provisioner in another process. Each call is a connection to a Unix socket, on which both sides send lines of JSON: first
 * the call; then the server calls the functions among its arguments, and the client responds; last the result. A client
 * that is gone stops its call, as the signal does; the signal `force` of a request ends it at once.
 */

const METHODS = [
  ...([
    'preflight',
    'describeExposure',
    'moduleVersion',
    'apply',
    'destroy',
    'plan',
    'inspect',
    'archive',
    'discard',
  ] as const),
  ...(['findLockHolder', 'unlock', 'cleanUp', 'makesBucket', 'describeLimits'] as const),
] satisfies readonly (keyof Provisioner)[]
type Method = (typeof METHODS)[number]
type Callback = (argument: unknown) => unknown

/** A plan is the largest result: twice what its commands may print. In characters. */
const MAX_LINE = 2 * 64 * 1_024 * 1_024
/** From the end of the time that Terraform has, to the end of the connection. */
const STOP_MARGIN_MS = 60_000
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

type Call = (method: Method, args: readonly unknown[]) => Promise<unknown>

const createCall =
  (path: string, stopTimeoutMs: number): Call =>
  (method, args) =>
    new Promise((resolve, reject) => {
      const callbacks: Callback[] = []
      const signals: { readonly name: 'stop' | 'force'; readonly signal: AbortSignal }[] = []
      let failure: unknown
      const socket = connect(path)
      const send = open(socket, message => {
        if ('callback' in message) void respond(message)
        else {
          if ('result' in message) resolve(message.result)
          else if ('reason' in message) reject(failure ?? new ProvisionerFailedError(String(message.reason)))
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
      const text = JSON.stringify({ method, args }, (key, value) => {
        if (value instanceof AbortSignal) {
          const name = key === 'force' ? 'force' : 'stop'
          signals.push({ name, signal: value })
          return { $signal: name }
        }
        return typeof value === 'function' ? { $callback: callbacks.push(value) - 1 } : value
      })
      socket.write(`${text}\n`)
      const closed = new AbortController()
      for (const { name, signal } of signals) {
        const abort = () => {
          send({ abort: name })
          const timeoutMs = STOP_MARGIN_MS + (name === 'force' ? 0 : stopTimeoutMs)
          setTimeout(() => socket.destroy(), timeoutMs).unref()
        }
        if (signal.aborted) abort()
        else signal.addEventListener('abort', abort, { once: true, signal: closed.signal })
      }
      socket.once('close', () => {
        closed.abort()
        reject(failure ?? new ProvisionerFailedError(GONE))
      })
    })

/** The provisioner that `serveProvisioner` serves at this path. `stopTimeoutMs`: that of its settings. */
export const createRemoteProvisioner = (path: string, stopTimeoutMs: number): Provisioner => {
  const call = createCall(path, stopTimeoutMs)
  const methods = METHODS.map(method => [method, (...args: readonly unknown[]) => call(method, args)])
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

/** `stopping`: interrupts the calls in progress. */
const serve = (provisioner: Provisioner, socket: Socket, stopping: AbortSignal): void => {
  const ended = { stop: new AbortController(), force: new AbortController() }
  stopping.addEventListener('abort', () => ended.stop.abort(), { signal: ended.stop.signal })
  const pending = new Map<unknown, PromiseWithResolvers<void>>()
  const send = open(socket, message => {
    if ('method' in message) void run(message)
    else if ('abort' in message) ended[message.abort === 'force' ? 'force' : 'stop'].abort()
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
        if (value?.$signal) return ended[value.$signal === 'force' ? 'force' : 'stop'].signal
        return value?.$callback === undefined ? value : toCallback(value.$callback)
      })
      const result = await (provisioner[name] as (...args: unknown[]) => Promise<unknown>)(...revived)
      send({ result: result ?? null })
    } catch (error) {
      const text = error instanceof Error ? error.message : String(error)
      send(error instanceof ProvisionerFailedError ? { reason: text } : { error: text })
    }
  }
  socket.once('close', () => {
    ended.stop.abort()
    for (const { reject } of pending.values()) reject(new Error('The service is gone.'))
  })
}

/**
 * Serves a provisioner at a path, which it replaces. Resolves with a function that interrupts all calls, and resolves when
 * they have ended.
 */
export const serveProvisioner = async (provisioner: Provisioner, path: string): Promise<() => Promise<void>> => {
  await rm(path, { force: true })
  const stopping = new AbortController()
  const server = createServer(socket => serve(provisioner, socket, stopping.signal)).listen(path)
  await once(server, 'listening')
  return () =>
    new Promise(resolve => {
      server.close(() => resolve())
      stopping.abort()
    })
}
