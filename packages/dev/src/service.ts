import { createWriteStream } from 'node:fs'
import { pollUntil } from './poll.ts'
import { type Exit, parseLogLine, startNode } from './process.ts'

/** A service that `start` runs. */
export interface Service {
  readonly name: string
  readonly entry: string
  readonly env: NodeJS.ProcessEnv
  /** Path of the log file. */
  readonly log: string
  /** For an exit that the user can correct: what to do, from the last lines of the output. */
  readonly adviseOnExit?: (tail: readonly string[]) => string | undefined
  /** A URL that returns a status below 500 once the service is up. */
  readonly probe: string
}

export interface RunningService {
  /** Returns false after one minute, or once `isStopping` returns true. */
  waitUntilReady(isStopping: () => boolean): Promise<boolean>
  /** Resolves when the service exits; a message for the user. */
  readonly exitError: Promise<string>
  stop(): Promise<void>
  kill(): Promise<void>
}

export const READY_TIMEOUT_MS = 60_000
const TAIL_LINES = 10

/** The sentence of a line with which a service warns of a variable. */
function readWarning(line: string): string | undefined {
  const { msg, variable, detail } = parseLogLine(line) ?? {}
  return String(msg).startsWith('questionable') ? `${variable} ${detail}` : undefined
}

/** `onWarning` gets a sentence about a variable. */
export function startService(
  { name, entry, env, log, probe, adviseOnExit }: Service,
  onWarning: (sentence: string) => void,
): RunningService {
  const file = createWriteStream(log, { flags: 'a', mode: 0o600 })
  const onLine = (line: string) => {
    file.write(`${line}\n`)
    const warning = readWarning(line)
    if (warning !== undefined) onWarning(warning)
  }
  const child = startNode({ entry, env, onLine })
  let isLogged = false
  void child.ready.then(
    () => {
      isLogged = true
    },
    () => {},
  )
  const waitForExit = async (exit: Promise<Exit>) => {
    await exit
    await new Promise(resolve => file.end(resolve))
  }
  return {
    // The log has a ready line, but a log level can suppress it, so the probe is a second source.
    waitUntilReady: isStopping =>
      pollUntil(async () => isStopping() || isLogged || (await respondsBelow500(probe)), {
        intervalMs: 50,
        timeoutMs: READY_TIMEOUT_MS,
      }),
    exitError: child.exited.then(exit => {
      const tail = child.lastLines().slice(-TAIL_LINES)
      return adviseOnExit?.(tail) ?? formatExit(name, exit, log, tail)
    }),
    stop: () => waitForExit(child.stop('SIGTERM')),
    kill: () => waitForExit(child.kill()),
  }
}

async function respondsBelow500(url: string): Promise<boolean> {
  const response = await fetch(url, { signal: AbortSignal.timeout(1_000) }).catch(() => undefined)
  await response?.body?.cancel()
  return response !== undefined && response.status < 500
}

export function formatExit(name: string, { code, signal }: Exit, log: string, tail: readonly string[]): string {
  const reason = signal === null ? `exit code ${code}` : signal
  return `${name} exited unexpectedly (${reason}); last lines of ${log}:\n${tail.map(line => `  ${line}`).join('\n')}`
}
