import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import type { ConfigIssue } from './env.ts'

/** Waits for work that must not be cut short and ends by itself: its time does not count. */
export type WithoutLimit = (work: Promise<unknown>) => Promise<void>

/**
 * Stops this process: calls `stop`, and lets the process end when nothing keeps its event loop alive. The exit code is 0 if
 * `stop` succeeds, otherwise 1. After `timeoutMs` (milliseconds, from the call) the process sends SIGKILL to itself.
 *
 * `process.exit` is no alternative, because it can hang: Node then waits for V8's compiler threads, and one of them may wait
 * for a garbage collection by the thread that called it (https://github.com/nodejs/node/issues/54918). At the end of the
 * event loop, Node disposes of the heap first.
 */
export const endProcess = async (
  process: NodeJS.Process,
  timeoutMs: number,
  stop: (withoutLimit: WithoutLimit) => Promise<void>,
): Promise<void> => {
  const kill = () => {
    process.stderr.write(`stop: not finished within ${timeoutMs / 1_000} s\n`)
    process.kill(process.pid, 'SIGKILL')
  }
  const endsAt = performance.now() + timeoutMs
  let timer = setTimeout(kill, timeoutMs).unref()
  const withoutLimit: WithoutLimit = async work => {
    clearTimeout(timer)
    const remainingMs = endsAt - performance.now()
    await work.finally(() => {
      timer = setTimeout(kill, remainingMs).unref()
    })
  }
  // An open IPC channel to the parent would keep the event loop alive.
  process.channel?.unref()
  process.exitCode = 1
  await stop(withoutLimit)
  process.exitCode = 0
}

/** A stop is promised within 20 s, and what `withoutLimit` waits for. */
const STOP_TIMEOUT_MS = 19_000
const SIGNALS = ['SIGTERM', 'SIGINT'] as const

/** The exit codes of the services and their commands; 0: ended as requested. */
export const EXIT_FAILURE = 1
export const EXIT_INVALID_CONFIG = 2

/** Ends the process with one line for the operator. */
export const exitWith = (code: number, line: string): never => {
  process.stderr.write(`${line}\n`)
  process.exit(code)
}

/** Ends the process with everything that is wrong with its configuration. */
export const exitWithConfigIssues = (issues: readonly ConfigIssue[]): never => {
  const list = issues.map(({ variable, detail }) => `${variable} ${detail}`).join('; ')
  return exitWith(EXIT_INVALID_CONFIG, `configuration: ${list}`)
}

export interface RunningService {
  /** For the line and the message that say that the service is ready. */
  readonly address: object
  stop(withoutLimit: WithoutLimit): Promise<void>
}

/**
 * V8 can come to allocate objects of a kind in the old generation, because many of them survived a collection. Those of a
 * request are garbage within milliseconds, so a busy process would collect its old generation all the time.
 */
export const disablePretenuring = (): void => setFlagsFromString('--no-allocation-site-pretenuring')

/** Frees what the start has left behind: V8 would keep it while the process is idle. Takes tens of milliseconds. */
const collectGarbage = (): void => {
  setFlagsFromString('--expose-gc')
  runInNewContext('gc')({ type: 'major', flavor: 'last-resort' })
}

/**
 * Starts a service, and stops it at a signal or when the parent that spawned it is gone. Writes one line per step. A parent
 * with an IPC channel also gets the message `{ msg: 'ready', ...address }`, because a log level can hide the line.
 */
export const runService = async (
  start: () => Promise<RunningService>,
  report: (step: string, fields: object) => void,
): Promise<void> => {
  disablePretenuring()
  /** Until the start is complete, no request has an effect, so none is waited for. */
  const abandonStart = (): void => {
    report('stopped while starting', {})
    process.exit(0)
  }
  for (const signal of SIGNALS) process.once(signal, abandonStart)
  // A parent that spawned this process with an IPC channel and died can no longer send a signal.
  if (process.channel) process.once('disconnect', abandonStart)

  const service = await start()

  let isStopping = false
  const stop = (reason: string): void => {
    if (isStopping) return
    isStopping = true
    report('stopping', { reason })
    void endProcess(process, STOP_TIMEOUT_MS, async withoutLimit => {
      await service.stop(withoutLimit)
      report('stopped', {})
    })
  }
  for (const signal of SIGNALS) {
    process.removeListener(signal, abandonStart)
    process.on(signal, () => stop(signal))
  }
  process.removeListener('disconnect', abandonStart)
  if (process.channel) process.on('disconnect', () => stop('parent gone'))

  collectGarbage()
  // Last, because a parent may send a signal as soon as it reads one of these.
  report('ready', service.address)
  // The parent can have exited.
  process.send?.({ msg: 'ready', ...service.address }, undefined, undefined, () => {})
}
