import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

export type LogLine = Readonly<Record<string, unknown>>

export interface Exit {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
}

export interface NodeOptions {
  /** A JavaScript or TypeScript file. */
  readonly entry: string
  /** The whole environment apart from PATH and Node's cache: what the caller's shell has set does not leak in. */
  readonly env: NodeJS.ProcessEnv
  /** Every line of stdout and stderr. */
  readonly onLine?: (line: string) => void
  /** Of the JSON objects on stdout. Absent: the one whose `msg` is "ready". */
  readonly isReady?: (line: LogLine) => boolean
}

export interface NodeProcess {
  readonly pid: number
  /** The line that said so. Rejects, with the last lines of output, when the process ends before. */
  readonly ready: Promise<LogLine>
  readonly exited: Promise<Exit>
  /** The end of its output, oldest line first. */
  lastLines(): readonly string[]
  /** Asks it to stop; after `withinMs` (20 s if not given) it is killed. */
  stop(signal?: NodeJS.Signals, withinMs?: number): Promise<Exit>
  /** SIGKILL: no line of its code runs any more. */
  kill(): Promise<Exit>
}

/**
 * Where Node keeps what it has made of the sources (module compile cache): a process starts in half the time when another
 * has before it. Without the right to write there, nothing is kept.
 */
export const COMPILE_CACHE = fileURLToPath(new URL('../node_modules/.cache/compile', import.meta.url))

/**
 * What Node is told for a service; the start scripts of the apps say the same. Left alone, V8 lets the young generation of
 * a busy process grow to more than 100 MB, which makes nothing faster here (docs/benchmarks.md); in megabytes, a third of
 * what it may have.
 */
export const SERVICE_FLAGS: readonly string[] = ['--max-semi-space-size=8']

const LINES_KEPT = 20
const STOP_WITHIN_MS = 20_000

/**
 * A Node process of this Node's version. It has its own process group, so a terminal's Ctrl-C reaches it only
 * through stop(); and an IPC channel, whose end tells it that its parent is gone, however that died.
 */
export function startNode({ entry, env, onLine, isReady = line => line.msg === 'ready' }: NodeOptions): NodeProcess {
  const child = spawn(process.execPath, [...SERVICE_FLAGS, entry], {
    env: { PATH: process.env.PATH, NODE_COMPILE_CACHE: COMPILE_CACHE, ...env },
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  })
  const kept: string[] = []
  const keep = (line: string) => {
    kept.push(line)
    if (kept.length > LINES_KEPT) kept.shift()
    onLine?.(line)
  }

  // "close" comes after the last line was read, "exit" might not.
  const exited = new Promise<Exit>(resolve => {
    child.on('close', (code, signal) => resolve({ code, signal }))
    child.on('error', error => keep(String(error)))
  })
  const ready = new Promise<LogLine>((resolve, reject) => {
    if (child.stdout) {
      createInterface(child.stdout).on('line', line => {
        keep(line)
        const parsed = parseLogLine(line)
        if (parsed !== undefined && isReady(parsed)) resolve(parsed)
      })
    }
    if (child.stderr) createInterface(child.stderr).on('line', keep)
    void exited.then(({ code, signal }) => {
      reject(new Error(`${entry} ended (${signal ?? `exit code ${code}`}) before it was ready:\n${kept.join('\n')}`))
    })
  })
  // Whoever never waits for it does not care.
  ready.catch(() => {})

  const kill = () => {
    child.kill('SIGKILL')
    return exited
  }
  const stop = async (signal: NodeJS.Signals = 'SIGTERM', withinMs = STOP_WITHIN_MS) => {
    child.kill(signal)
    const late = setTimeout(kill, withinMs)
    return exited.finally(() => clearTimeout(late))
  }
  return { pid: child.pid ?? 0, ready, exited, lastLines: () => [...kept], stop, kill }
}

function parseLogLine(line: string): LogLine | undefined {
  if (!line.startsWith('{')) return undefined
  try {
    return JSON.parse(line)
  } catch {
    return undefined
  }
}
