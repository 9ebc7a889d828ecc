import { spawn } from 'node:child_process'
import { closeSync, fstatSync, openSync, readSync } from 'node:fs'
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
  readonly args?: readonly string[]
  /** The complete environment except PATH and the compile cache: nothing leaks in from the caller's shell. */
  readonly env: NodeJS.ProcessEnv
  /** Called for every line of stdout and stderr. */
  readonly onLine?: (line: string) => void
  /**
   * Where the object comes from that says that the process is ready: a line on stdout (default), or a message over IPC, which a
   * service sends at every log level. A message can arrive before lines that were written earlier.
   */
  readonly readyFrom?: 'stdout' | 'ipc'
  /**
   * The file to which stdout and stderr are appended, for a measurement in which the reader of a pipe would take part. Needs
   * `readyFrom: 'ipc'`, and excludes `onLine`.
   */
  readonly logFile?: string
  /** Applied to each JSON object from there. Default: `msg` is "ready". */
  readonly isReady?: (line: LogLine) => boolean
}

export interface NodeProcess {
  readonly pid: number
  /** The line or message for which `isReady` returned true. Rejects with the last lines of output if the process exits first. */
  readonly ready: Promise<LogLine>
  readonly exited: Promise<Exit>
  /** The last lines of the output, oldest first. */
  lastLines(): readonly string[]
  /** Sends the signal, and SIGKILL after `timeoutMs` (default 20 s). */
  stop(signal?: NodeJS.Signals, timeoutMs?: number): Promise<Exit>
  /** Sends SIGKILL. */
  kill(): Promise<Exit>
}

/** Directory of Node's module compile cache, for a faster start. If it is not writable, Node does not cache. */
export const COMPILE_CACHE = fileURLToPath(new URL('../node_modules/.cache/compile', import.meta.url))

/**
 * NODE_OPTIONS of a service, the same in each form of installation. By default, V8 lets both generations of a busy process grow
 * on a large machine without a gain in speed. The values are in MiB: one of three semi-spaces, and the old generation, for
 * which V8 itself chooses this size in a small container. A process that needs a larger old generation ends.
 */
export const SERVICE_NODE_OPTIONS = '--max-semi-space-size=16 --max-old-space-size=256'

const MAX_KEPT_LINES = 20
const MAX_KEPT_TEXT = 8_192
const STOP_TIMEOUT_MS = 20_000

/**
 * Starts a process with this version of Node. It has its own process group, so a Ctrl-C in the terminal reaches it only
 * through stop(). It has an IPC channel; when the parent exits, for whatever reason, the child gets `disconnect`.
 */
export function startNode({
  entry,
  args = [],
  env,
  onLine,
  readyFrom = 'stdout',
  logFile,
  isReady = line => line.msg === 'ready',
}: NodeOptions): NodeProcess {
  if (logFile !== undefined && (readyFrom === 'stdout' || onLine))
    throw new Error("nothing reads the lines of a log file; use readyFrom: 'ipc' without onLine")
  const log = logFile === undefined ? 'pipe' : openSync(logFile, 'a')
  const child = spawn(process.execPath, [entry, ...args], {
    env: {
      PATH: process.env.PATH,
      NODE_COMPILE_CACHE: COMPILE_CACHE,
      ...env,
      // The last of equal options applies.
      NODE_OPTIONS: `${SERVICE_NODE_OPTIONS} ${env.NODE_OPTIONS ?? ''}`.trim(),
    },
    detached: true,
    stdio: ['ignore', log, log, 'ipc'],
  })
  if (log !== 'pipe') closeSync(log)
  const lastLines: string[] = []
  /** What came after the service was ready, if nothing reads its lines. */
  let lastText = ''
  const readLastLines = (): readonly string[] => {
    const text = logFile === undefined ? lastText : readEnd(logFile)
    return [...lastLines, ...text.split('\n').filter(Boolean)].slice(-MAX_KEPT_LINES)
  }
  const keep = (line: string) => {
    lastLines.push(line)
    if (lastLines.length > MAX_KEPT_LINES) lastLines.shift()
    onLine?.(line)
  }

  // `close` follows the last line of output; `exit` may precede it.
  const exited = new Promise<Exit>(resolve => {
    child.on('close', (code, signal) => resolve({ code, signal }))
    child.on('error', error => keep(String(error)))
  })
  const { stdout } = child
  const lines = stdout && createInterface(stdout)
  const ready = new Promise<LogLine>((resolve, reject) => {
    if (lines) {
      lines.on('line', line => {
        keep(line)
        const parsed = readyFrom === 'stdout' ? parseLogLine(line) : undefined
        if (parsed !== undefined && isReady(parsed)) resolve(parsed)
      })
    }
    if (readyFrom === 'ipc') {
      child.on('message', message => {
        if (isLogLine(message) && isReady(message)) resolve(message)
      })
    }
    if (child.stderr) createInterface(child.stderr).on('line', keep)
    void exited.then(({ code, signal }) => {
      reject(
        new Error(
          `${entry} exited (${signal ?? `exit code ${code}`}) before it was ready:\n${readLastLines().join('\n')}`,
        ),
      )
    })
  })
  // A caller that does not await `ready` must not cause an unhandled rejection.
  ready.catch(() => {})
  // A busy service writes a line per request. Splitting them would take so much of this process, which may be measuring the
  // service, that the pipe fills up and the service waits.
  const keepText = () => {
    lines?.close()
    stdout?.setEncoding('utf8').on('data', text => {
      lastText = (lastText + text).slice(-MAX_KEPT_TEXT)
    })
    stdout?.resume()
  }
  if (!onLine) ready.then(keepText, () => {})

  const kill = () => {
    child.kill('SIGKILL')
    return exited
  }
  const stop = async (signal: NodeJS.Signals = 'SIGTERM', timeoutMs = STOP_TIMEOUT_MS) => {
    child.kill(signal)
    const timer = setTimeout(kill, timeoutMs)
    return exited.finally(() => clearTimeout(timer))
  }
  return {
    pid: child.pid ?? 0,
    ready,
    exited,
    lastLines: readLastLines,
    stop,
    kill,
  }
}

const readEnd = (file: string): string => {
  const descriptor = openSync(file, 'r')
  try {
    const buffer = Buffer.alloc(MAX_KEPT_TEXT)
    const position = Math.max(0, fstatSync(descriptor).size - MAX_KEPT_TEXT)
    return buffer.toString('utf8', 0, readSync(descriptor, buffer, 0, MAX_KEPT_TEXT, position))
  } finally {
    closeSync(descriptor)
  }
}

const isLogLine = (value: unknown): value is LogLine => typeof value === 'object' && value !== null

export function parseLogLine(line: string): LogLine | undefined {
  if (!line.startsWith('{')) return undefined
  try {
    return JSON.parse(line)
  } catch {
    return undefined
  }
}
