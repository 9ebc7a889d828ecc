import { convertV4MiniflareOptions, Miniflare, MiniflareCoreError, NoOpLog } from 'miniflare'
import { log } from '../src/log.ts'
import { bundle } from './bundle.ts'
import type { LocalConfig } from './config.ts'
import { openDataDir } from './data-dir.ts'
import { forwardLogLine } from './forward-logs.ts'
import { watchChildren } from './watchdog.ts'
import { readWranglerConfig } from './wrangler-config.ts'

export interface RunningWitness extends AsyncDisposable {
  readonly port: number
  /** Rejects when workerd has ended and could not be started again. */
  readonly failed: Promise<never>
}

const LOOPBACK = '127.0.0.1'
const signals = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const

/** Miniflare would end the process at a signal, where it stands: that is for whoever runs us to do, in order. */
const withoutSignalHandlers = <Value>(create: () => Value): Value => {
  const before = signals.map(signal => process.listeners(signal))
  const value = create()
  signals.forEach((signal, index) => {
    for (const added of process.listeners(signal).filter(listener => !before[index]?.includes(listener))) {
      process.off(signal, added)
    }
  })
  return value
}

/** Miniflare starts workerd again after a crash. When it cannot, it tells so here only, and goes on without one. */
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

/** Runs the worker that a wrangler.toml describes in workerd, on loopback. Each line that it logs goes to `onLine`. */
export const startWorkerd = async (
  wranglerToml: string,
  { port, dataDir, bindings }: LocalConfig,
  onLine: (line: string) => void,
): Promise<RunningWitness> => {
  const { main, options } = readWranglerConfig(wranglerToml)
  const contents = await bundle(main)

  await using ours = new AsyncDisposableStack()
  const storage = ours.use(await openDataDir(dataDir))
  ours.use(watchChildren(storage.usedBy))
  const failure = Promise.withResolvers<never>()
  // It may come before anybody waits for it.
  failure.promise.catch(() => {})
  const miniflare = withoutSignalHandlers(
    () =>
      new Miniflare(
        convertV4MiniflareOptions({
          ...options,
          bindings: Object.assign({}, options.bindings, bindings),
          modules: [{ type: 'ESModule', path: 'index.mjs', contents }],
          resourcePersistencePath: storage.path,
          host: LOOPBACK,
          port: 0,
          // Straight to the worker: Miniflare's own, which stands before it, costs almost half of the throughput.
          unsafeDirectSockets: [{ host: LOOPBACK, port }],
          // Offline: nothing is asked about where requests come from.
          cf: false,
          log: new FailureLog(failure.reject),
          handleStructuredLogs: ({ message, level }) => forwardLogLine(bindings, message, level, onLine),
          unsafeHandleRuntimeRestart: () => log(bindings, 'error', { msg: 'workerd-restarted' }),
        }),
      ),
  )
  // A start that failed is told by `ready`; a second failure while it is put away tells nothing more.
  let isReady = false
  ours.defer(() => miniflare.dispose().catch(error => (isReady ? Promise.reject(error) : undefined)))
  const url = await miniflare.unsafeGetDirectURL(options.name).catch(error => {
    const isTaken = error instanceof MiniflareCoreError && error.code === 'ERR_ADDRESS_IN_USE'
    throw isTaken ? new Error(`port ${port} is taken: stop what listens there, or choose another with PORT=…`) : error
  })
  isReady = true
  const all = ours.move()
  return { port: Number(url.port), failed: failure.promise, [Symbol.asyncDispose]: () => all.disposeAsync() }
}
