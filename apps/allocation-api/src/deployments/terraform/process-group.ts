import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { constants } from 'node:os'
import { kill } from 'node:process'
import type { Readable } from 'node:stream'
import type { StateLock } from '../domain/types.ts'

export interface ProcessCommand {
  readonly file: string
  readonly args: readonly string[]
  readonly cwd: string
  /** The complete environment. */
  readonly env: Readonly<Record<string, string>>
  readonly onOutput: (stream: 'stdout' | 'stderr', chunk: string) => void
  /** Ends the group: with SIGINT, as Ctrl-C in a terminal does, then with SIGKILL. */
  readonly signal: AbortSignal
  /** From SIGINT to SIGKILL. Milliseconds. */
  readonly graceMs: number
  /** Ends the group at once, with SIGKILL. */
  readonly force?: AbortSignal
  /** What the command reads from its standard input, which is a pipe. Default: nothing. */
  readonly input?: string
  /** An open file, which the command has as /dev/fd/3. */
  readonly file3?: number
  /** Called before the command starts. */
  readonly onStarted?: (leader: number) => void
}

export interface ProcessExit {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
}

/** How long output is read after the exit: a process that left the group may keep the pipe open indefinitely. */
const DRAIN_TIMEOUT_MS = 1_000
/** In characters. */
const MAX_SHORT_OUTPUT = 64 * 1_024
/** The interval of supervisor.sh. */
const SUPERVISOR_STEP_MS = 100

/**
 * Waits for a line on standard input, then runs the command, which reads the rest. If standard input ends first, it exits.
 * Node gives a process a socket, which the command could not open as /dev/stdin: `cat` makes it a pipe. At SIGINT the shell
 * waits for the command. It has no standard error, so that it does not report how the command ended. Files that the
 * command creates are readable by this user only.
 */
const LAUNCHER = `umask 077; read -r _ || exit; trap : INT; exec 9>&2 2>/dev/null; cat | "$@" 2>&9 9>&-`

/** Read at import, so a file that is missing later does not leave a command without its supervisor. */
const SUPERVISOR = readFileSync(new URL('supervisor.sh', import.meta.url), 'utf8')

const signalGroup = (leader: number, signal: NodeJS.Signals): void => {
  try {
    kill(-leader, signal)
  } catch (error) {
    // ESRCH: the group has ended. EPERM: only processes of another user are left.
    if (!(error instanceof Error && 'code' in error && /^(?:ESRCH|EPERM)$/.test(String(error.code)))) throw error
  }
}

/** Signals end a process with 128 and their number for a shell that waits for it. */
const SIGNAL_BASE = 128

/** How the command itself ended. A command that exits with the code of a signal cannot be told from one that got it. */
export const toExitOfCommand = ({ code, signal }: ProcessExit): ProcessExit => {
  const found = Object.entries(constants.signals).find(([, number]) => number + SIGNAL_BASE === code)
  return found ? { code: null, signal: found[0] as NodeJS.Signals } : { code, signal }
}

const waitForClose = (stream: Readable): Promise<void> =>
  new Promise(resolve => {
    if (stream.closed) return resolve()
    stream.once('close', resolve)
    setTimeout(() => stream.destroy(), DRAIN_TIMEOUT_MS).unref()
  })

/**
 * Runs a command in a new process group and ends the whole group with it. Not covered: a process that creates a group
 * itself, and the case that this process and the supervisor are both killed.
 */
export const runInProcessGroup = async (command: ProcessCommand): Promise<ProcessExit> => {
  const { file, args, cwd, env, onOutput, signal, graceMs, force, input = '', file3, onStarted } = command
  const child = spawn('/bin/sh', ['-c', LAUNCHER, 'sh', file, ...args], {
    cwd,
    env,
    detached: true,
    stdio: ['pipe', 'pipe', 'pipe', file3 ?? 'ignore'],
    // The types of Node do not cover a fourth entry.
  }) as ChildProcessWithoutNullStreams
  const exited = new Promise<ProcessExit>((resolve, reject) => {
    child.once('error', reject)
    child.once('exit', (code, exitSignal) => resolve(toExitOfCommand({ code, signal: exitSignal })))
  })
  exited.catch(() => {})
  child.stdin.on('error', () => {})
  if (child.pid === undefined) return exited
  const leader = child.pid
  onStarted?.(leader)

  const steps = Math.ceil(graceMs / SUPERVISOR_STEP_MS)
  const supervisor = spawn('/bin/sh', ['-c', SUPERVISOR, 'sh', String(leader), String(steps)], {
    env: { PATH: env.PATH ?? '' },
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore', child.stdout, child.stderr],
  })
  const supervisorExited = new Promise<void>((resolve, reject) => {
    supervisor.once('error', reject)
    supervisor.once('exit', () => resolve())
  })
  supervisorExited.catch(() => {})
  supervisor.stdin?.on('error', () => {})

  for (const stream of ['stdout', 'stderr'] as const) {
    child[stream].setEncoding('utf8').on('data', (chunk: string) => onOutput(stream, chunk))
    // Passing a stream to another process pauses it.
    child[stream].resume()
  }
  // The command starts only under supervision.
  if (supervisor.pid !== undefined) child.stdin.write(`start\n${input}`)
  child.stdin.end()

  let killTimer: NodeJS.Timeout | undefined
  const kill = () => signalGroup(leader, 'SIGKILL')
  const interrupt = () => {
    // First: at a second SIGINT, Terraform ends without saving.
    supervisor.stdin?.write('interrupted\n')
    signalGroup(leader, 'SIGINT')
    killTimer = setTimeout(kill, graceMs)
  }
  if (signal.aborted) interrupt()
  else signal.addEventListener('abort', interrupt, { once: true })
  if (force?.aborted) kill()
  else force?.addEventListener('abort', kill, { once: true })
  try {
    const exit = await exited
    kill()
    supervisor.stdin?.end('ended\n')
    await Promise.all([supervisorExited, waitForClose(child.stdout), waitForClose(child.stderr)])
    return exit
  } finally {
    clearTimeout(killTimer)
    signal.removeEventListener('abort', interrupt)
    force?.removeEventListener('abort', kill)
  }
}

export interface Captured {
  readonly exit: ProcessExit
  readonly stdout: string
  readonly stderr: string
}

/** What a command prints, at most so many characters of each stream and the rest of the last chunk. */
export const captureOutput = async (
  maxLength: number,
  run: (onOutput: ProcessCommand['onOutput']) => Promise<ProcessExit>,
): Promise<Captured> => {
  const text = { stdout: '', stderr: '' }
  const exit = await run((stream, chunk) => {
    if (text[stream].length < maxLength) text[stream] += chunk
  })
  return { exit, ...text }
}

/** Runs a command whose output is short. It ends at `signal`, with every process that it started and whatever they ignore. */
export const captureShortly = (
  [file, ...args]: readonly [string, ...string[]],
  options: Pick<ProcessCommand, 'cwd' | 'env' | 'signal'>,
): Promise<Captured> =>
  captureOutput(MAX_SHORT_OUTPUT, onOutput => runInProcessGroup({ file, args, ...options, graceMs: 0, onOutput }))

/** A process group, for a later check from another process. */
export type ProcessGroupIdentity = Pick<StateLock, 'host' | 'processGroup' | 'startedAt'>

interface ProcessStat {
  readonly state: string
  readonly processGroup: number
  /** Clock ticks since the boot. */
  readonly startedAt: string
}

/** Null if there is no such process: https://man7.org/linux/man-pages/man5/proc_pid_stat.5.html */
const readStat = (pid: number | string): ProcessStat | null => {
  try {
    // The name of the program is in parentheses and may contain any character.
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
      .replace(/^.*\) /s, '')
      .split(' ')
    const [state = '', , processGroup] = fields
    return { state, processGroup: Number(processGroup), startedAt: fields[19] ?? '' }
  } catch {
    return null
  }
}

/** The boot and the process namespace: process numbers mean the same where both are equal. Null except on Linux. */
const readHost = (): string | null => {
  try {
    return `${readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()} ${readlinkSync('/proc/self/ns/pid')}`
  } catch {
    return null
  }
}

/** Call while the leader runs. Where processes cannot be identified, `host` is empty. */
export const identifyProcessGroup = (leader: number): ProcessGroupIdentity => {
  const startedAt = readStat(leader)?.startedAt
  const host = startedAt === undefined ? null : readHost()
  return { host: host ?? '', processGroup: leader, startedAt: startedAt ?? '' }
}

const hasEnded = ({ state }: ProcessStat): boolean => state === 'Z' || state === 'X'

/** A number in use as that of a group is not given to a new process, so another start time means that the group ended. */
export const checkProcessGroup = ({ host, processGroup, startedAt }: ProcessGroupIdentity) => {
  if (host === '' || host !== readHost()) return 'unknown'
  const leader = readStat(processGroup)
  if (leader && leader.startedAt !== startedAt) return 'ended'
  const isMember = (pid: string): boolean => {
    const stat = /^\d+$/.test(pid) ? readStat(pid) : null
    return stat !== null && stat.processGroup === processGroup && !hasEnded(stat)
  }
  return readdirSync('/proc').some(isMember) ? 'running' : 'ended'
}
