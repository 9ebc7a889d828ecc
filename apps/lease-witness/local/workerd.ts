import { convertV4MiniflareOptions, Miniflare, MiniflareCoreError, NoOpLog } from 'miniflare'
import { log } from '../src/log.ts'
import { bundle } from './bundle.ts'
import type { LocalConfig } from './config.ts'
import { lockDataDir } from './data-dir.ts'
import { forwardLogLine } from './forward-logs.ts'
import { watchChildren } from './watchdog.ts'
import { readWranglerConfig } from './wrangler-config.ts'

export interface RunningWitness extends AsyncDisposable {
  readonly port: number
  /** Rejects when workerd has exited and cannot be restarted. */
  readonly failed: Promise<never>
  /**
   * Ends all waits, and resolves when the requests in flight have their responses, after seconds at the latest. For the moment
   * before the process stops; it never rejects.
   */
  readonly endWaits: () => Promise<void>
}

/** For a worker that does not respond. Many waits take seconds to end on a busy machine. */
const STOP_TIMEOUT_MS = 10_000

const LOOPBACK = '127.0.0.1'
const SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const

/** Removes Miniflare's signal handlers, which exit the process immediately: the caller shuts down in order. */
const withoutSignalHandlers = <Value>(create: () => Value): Value => {
  const before = SIGNALS.map(signal => process.listeners(signal))
  const value = create()
  SIGNALS.forEach((signal, index) => {
    for (const added of process.listeners(signal).filter(listener => !before[index]?.includes(listener))) {
      process.off(signal, added)
    }
  })
  return value
}

/** Miniflare restarts workerd after a crash. If the restart fails, it only logs an error and continues without workerd. */
class FailureLog extends NoOpLog {
  readonly #onFailure: (error: Error) => void

  constructor(onFailure: (error: Error) => void) {
    super()
    this.#onFailure = onFailure
  }

  override error(error: Error): void {
    if (error instanceof MiniflareCoreError && error.code === 'ERR_RUNTIME_FAILURE') this.#onFailure(error)
  }
}

/**
 * Runs the worker of a wrangler.toml in workerd, on the loopback interface. `onLine` receives its log lines. `waitsModule`
 * exports `endWaits`, if the worker has waits.
 */
export const startWorkerd = async (
  wranglerToml: string,
  { port, dataDir, loopbackHostsOnly, bindings }: LocalConfig,
  onLine: (line: string) => void,
  waitsModule?: string,
): Promise<RunningWitness> => {
  const { main, options } = readWranglerConfig(wranglerToml)
  // Not a part of the bundle, which would then be a new one for each start.
  const stopPath = `/${crypto.randomUUID()}`
  const contents = await bundle(main, { loopbackHostsOnly, waitsModule })

  await using stack = new AsyncDisposableStack()
  const directory = stack.use(await lockDataDir(dataDir))
  stack.use(watchChildren(directory.recordPid))
  const failure = Promise.withResolvers<never>()
  // It may reject before the caller awaits it.
  failure.promise.catch(() => {})
  const miniflare = withoutSignalHandlers(
    () =>
      new Miniflare(
        convertV4MiniflareOptions({
          ...options,
          bindings: Object.assign({}, waitsModule && { STOP_PATH: stopPath }, options.bindings, bindings),
          modules: [{ type: 'ESModule', path: 'index.mjs', contents }],
          resourcePersistencePath: directory.path,
          host: LOOPBACK,
          port: 0,
          // Requests bypass Miniflare's entry worker, which is slow.
          unsafeDirectSockets: [{ host: LOOPBACK, port }],
          // Works offline: does not fetch a sample of `request.cf`.
          cf: false,
          log: new FailureLog(failure.reject),
          handleStructuredLogs: ({ message, level }) => forwardLogLine(bindings, message, level, onLine),
          unsafeHandleRuntimeRestart: () => log(bindings, 'error', { msg: 'workerd-restarted' }),
        }),
      ),
  )
  // After a failed start, an error of dispose() would hide the cause.
  let isReady = false
  stack.defer(() => miniflare.dispose().catch(error => (isReady ? Promise.reject(error) : undefined)))
  const url = await miniflare.unsafeGetDirectURL(options.name).catch(error => {
    const isPortInUse = error instanceof MiniflareCoreError && error.code === 'ERR_ADDRESS_IN_USE'
    throw isPortInUse ? new Error(`port ${port} is in use: stop the process on it, or set PORT to another port`) : error
  })
  isReady = true
  const resources = stack.move()
  return {
    port: Number(url.port),
    failed: failure.promise,
    async endWaits() {
      if (!waitsModule) return
      const signal = AbortSignal.timeout(STOP_TIMEOUT_MS)
      await fetch(`http://${LOOPBACK}:${url.port}${stopPath}`, { signal }).catch(() => undefined)
    },
    [Symbol.asyncDispose]: () => resources.disposeAsync(),
  }
}
