import { createWriteStream } from 'node:fs'
import { until } from './poll.ts'
import { type Exit, startNode } from './process.ts'

/** A process of ours that a start runs. */
export interface Service {
  readonly name: string
  readonly entry: string
  readonly env: NodeJS.ProcessEnv
  /** Where its output goes. */
  readonly log: string
  /** What answers below 500 once it works. */
  readonly probe: string
}

export interface RunningService {
  /** Whether it answers: false after a minute, or once `isOver`. */
  answersWithin(isOver: () => boolean): Promise<boolean>
  /** How it ended by itself, in words. */
  readonly fault: Promise<string>
  stop(): Promise<void>
  kill(): Promise<void>
}

export const READY_WITHIN_MS = 60_000
const TAIL_LINES = 10

export function startService({ name, entry, env, log, probe }: Service): RunningService {
  const file = createWriteStream(log, { flags: 'a', mode: 0o600 })
  const child = startNode({ entry, env, onLine: line => file.write(`${line}\n`) })
  let isLogged = false
  void child.ready.then(
    () => {
      isLogged = true
    },
    () => {},
  )
  const ended = async (exit: Promise<Exit>) => {
    await exit
    await new Promise(resolve => file.end(resolve))
  }
  return {
    // The log says it; a log level that hides the line must not hide that the service works, so it is asked as well.
    answersWithin: isOver =>
      until(async () => isOver() || isLogged || (await answers(probe)), { everyMs: 50, withinMs: READY_WITHIN_MS }),
    fault: child.exited.then(exit => died(name, exit, log, child.lastLines().slice(-TAIL_LINES))),
    stop: () => ended(child.stop('SIGTERM')),
    kill: () => ended(child.kill()),
  }
}

async function answers(url: string): Promise<boolean> {
  const response = await fetch(url, { signal: AbortSignal.timeout(1_000) }).catch(() => undefined)
  await response?.body?.cancel()
  return response !== undefined && response.status < 500
}

export function died(which: string, { code, signal }: Exit, log: string, tail: readonly string[]): string {
  const how = signal === null ? `exit code ${code}` : signal
  return `${which} ended by itself (${how}); the last lines of ${log}:\n${tail.map(line => `  ${line}`).join('\n')}`
}
