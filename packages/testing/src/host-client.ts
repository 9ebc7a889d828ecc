import { spawn } from 'node:child_process'
import type { Socket } from 'node:net'
import { fileURLToPath } from 'node:url'
import type { HostAnswer, HostCall, HostMethods, ServiceSpec } from './protocol.ts'

/** A service did not start, has ended, or did not accept a call. The message has the last lines of its output. */
export class TestServiceError extends Error {
  override readonly name = 'TestServiceError'
}

const HOST = fileURLToPath(new URL('./host/main.ts', import.meta.url))
/** As for the services: it shortens later starts. */
const COMPILE_CACHE = fileURLToPath(new URL('../node_modules/.cache/compile', import.meta.url))
const MAX_ERROR_OUTPUT = 8_192

/** Variables of the caller that the host and its servers need; a proxy or a debugger of the test run is not for them. */
const PASSED_VARIABLES = ['PATH', 'HOME', 'USER', 'TMPDIR', 'POOL_TESTING_CACHE', 'NODE_EXTRA_CA_CERTS']

const pickEnv = (): NodeJS.ProcessEnv =>
  Object.fromEntries(PASSED_VARIABLES.flatMap(name => (process.env[name] ? [[name, process.env[name]]] : [])))

/** Whether it is `{ … }`, also of another realm as in Jest: a RegExp or a Map would have no key that is unknown. */
const isRecord = (value: unknown): value is object => {
  if (typeof value !== 'object' || value === null) return false
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === null || Object.getPrototypeOf(prototype) === null
}

/** Throws for the lists of text and the variables of a service that are something else. No value is quoted: it may be a token. */
export const rejectOtherTypes = (lists: Readonly<Record<string, unknown>>, env: unknown): void => {
  for (const [name, list] of Object.entries(lists)) {
    const isValid =
      Array.isArray(list) && list.length > 0 && list.every(item => typeof item === 'string' && item !== '')
    if (!isValid) throw new TypeError(`${name} must be an array with at least one text, and no empty one.`)
    // The services separate lists by them.
    if (list.some(item => /[\s,]/.test(item)))
      throw new TypeError(`${name} must be texts without commas and white space: pass each of them as an item.`)
  }
  if (!isRecord(env) || Object.values(env).some(value => typeof value !== 'string'))
    throw new TypeError('env must be an object whose values are text, such as { LOG_LEVEL: "warn" }.')
}

/** Throws for what JavaScript would ignore, so that a test does not run with something else. */
export const rejectUnknown = (what: string, given: unknown, known: readonly string[]): void => {
  if (!isRecord(given)) throw new TypeError(`${what} must be given an object; it has ${known.join(', ')}.`)
  const unknown = Object.keys(given).filter(name => !known.includes(name))
  if (unknown.length > 0) throw new TypeError(`${what} has no ${unknown.join(', ')}; it has ${known.join(', ')}.`)
}

/** What the services run on; an older one fails at their imports. */
const MIN_NODE = 24

export interface HostClient {
  readonly call: <Method extends keyof HostMethods>(
    method: Method,
    ...args: Parameters<HostMethods[Method]>
  ) => ReturnType<HostMethods[Method]>
  /** Resolves when the host has exited. It has then stopped every process of the service. */
  readonly waitForExit: () => Promise<void>
}

interface PendingCall {
  readonly resolve: (result: never) => void
  readonly reject: (error: Error) => void
}

/**
 * Starts the process that runs a service, its database and the proxy in front of it. It is a process of its own because a test
 * can replace the timers of its process, block its event loop or run in a sandbox of its test runner.
 *
 * The host ends when the channel to it closes, so it does not outlive this process. A service that a test forgets to stop does
 * not keep this process alive, but a call that is not answered yet does.
 */
export const startHost = (): HostClient => {
  const [major = ''] = process.versions.node.split('.')
  if (Number(major) < MIN_NODE) {
    throw new TestServiceError(
      `@pool/testing needs Node ${MIN_NODE} or later, and this is ${process.versions.node}: run the tests on it.`,
    )
  }
  const child = spawn(process.execPath, [HOST], {
    env: { NODE_COMPILE_CACHE: COMPILE_CACHE, ...pickEnv() },
    // Ctrl-C in the terminal must reach the test runner first, which may still need the service.
    detached: true,
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    serialization: 'advanced',
  })
  const pending = new Map<number, PendingCall>()
  let nextId = 1
  let errorOutput = ''
  let ended: TestServiceError | undefined

  const fail = (reason: string): void => {
    ended ??= new TestServiceError(`${reason}${errorOutput === '' ? '' : `:\n${errorOutput.trimEnd()}`}`)
    for (const { reject } of pending.values()) reject(ended)
    pending.clear()
  }

  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    errorOutput = (errorOutput + text).slice(-MAX_ERROR_OUTPUT)
  })
  child.on('message', (answer: HostAnswer) => {
    const call = pending.get(answer.id)
    pending.delete(answer.id)
    if (pending.size === 0) child.channel?.unref()
    if ('message' in answer) call?.reject(new (answer.isRange ? RangeError : TestServiceError)(answer.message))
    else call?.resolve(answer.result as never)
  })
  const exited = new Promise<void>(resolve => {
    child.on('error', error => {
      fail(`the host process of the service did not start (${error.message})`)
      resolve()
    })
    child.on('close', (code, signal) => {
      fail(`the service has ended (${signal ?? `exit code ${code}`})`)
      resolve()
    })
  })
  // A pipe of a child is a socket.
  const stderr = child.stderr as Socket | null
  child.unref()
  child.channel?.unref()
  stderr?.unref()

  return {
    waitForExit: () => {
      // The ends of the output and of the channel can follow the exit, and nothing else may keep this process alive until then.
      child.ref()
      child.channel?.ref()
      stderr?.ref()
      return exited
    },
    call: (method, ...args) => {
      const answer = new Promise((resolve, reject) => {
        if (ended) {
          reject(ended)
          return
        }
        const id = nextId
        nextId += 1
        pending.set(id, { resolve, reject })
        child.channel?.ref()
        child.send({ id, method, args } satisfies HostCall, error => {
          if (error) fail('the service has ended')
        })
      })
      return answer as ReturnType<HostMethods[typeof method]>
    },
  }
}

/** Starts a host with one service. If that fails, the host has ended when the promise rejects. */
export const startHostWith = async (spec: ServiceSpec) => {
  const host = startHost()
  try {
    return { host, address: await host.call('start', spec) }
  } catch (error) {
    await host.waitForExit()
    throw error
  }
}
