import { spawn } from 'node:child_process'
import { kill } from 'node:process'
import type { Readable } from 'node:stream'

export interface Command {
  readonly file: string
  readonly args: readonly string[]
  readonly folder: string
  /** The whole of it. */
  readonly env: Readonly<Record<string, string>>
  readonly onOutput: (stream: 'stdout' | 'stderr', chunk: string) => void
  /** Ends it: SIGINT to the whole group, as a terminal's Ctrl-C does, then SIGKILL. */
  readonly signal: AbortSignal
  /** Between the two. */
  readonly graceMs: number
}

export interface Exit {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
}

/** How long output may come after the end: a process that left the group can hold the pipe open for ever. */
const LAST_WORDS_MS = 1_000
const GUARD_STEP_MS = 100

/**
 * Becomes the command, in the same process, as soon as a line comes; when standard input ends before, nothing has been
 * started. What the command writes is for this user alone.
 */
const launcher = 'umask 077; read -r _ && exec "$@" </dev/null'

/**
 * Sees by the end of its standard input that the service is gone, however it died, and ends the group. Until then it
 * empties the command's output (3 and 4, which never block): writing into a closed pipe would kill Terraform by SIGPIPE,
 * before it has saved its state.
 */
const guard = `
read -r _ && exit
kill -s INT -- "-$1"
while [ "$2" -gt 0 ] && kill -s 0 "$1"; do
  cat <&3; cat <&4
  sleep 0.1 || sleep 1
  set -- "$1" $(($2 - 1))
done
kill -s KILL -- "-$1"
`

const signalGroup = (leader: number, signal: NodeJS.Signals): void => {
  try {
    kill(-leader, signal)
  } catch (error) {
    // ESRCH: all are gone; EPERM: what is left has become another user's.
    if (!(error instanceof Error && 'code' in error && /^(?:ESRCH|EPERM)$/.test(String(error.code)))) throw error
  }
}

const ended = (stream: Readable): Promise<void> =>
  new Promise(resolve => {
    if (stream.closed) return resolve()
    stream.once('close', resolve)
    setTimeout(() => stream.destroy(), LAST_WORDS_MS).unref()
  })

/**
 * Runs a command to its end in a process group of its own, of which nothing is left afterwards. Not promised: that for a
 * process which makes itself a group of its own, and that for anything when both this process and the guard are killed.
 */
export const runInGroup = async (command: Command): Promise<Exit> => {
  const { file, args, folder, env, onOutput, signal, graceMs } = command
  const child = spawn('/bin/sh', ['-c', launcher, 'sh', file, ...args], { cwd: folder, env, detached: true })
  const exited = new Promise<Exit>((resolve, reject) => {
    child.once('error', reject)
    child.once('exit', (code, by) => resolve({ code, signal: by }))
  })
  exited.catch(() => {})
  child.stdin.on('error', () => {})
  if (child.pid === undefined) return exited
  const leader = child.pid

  const watch = spawn('/bin/sh', ['-c', guard, 'sh', String(leader), String(Math.ceil(graceMs / GUARD_STEP_MS))], {
    env: { PATH: env.PATH ?? '' },
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore', child.stdout, child.stderr],
  })
  const watched = new Promise<void>((resolve, reject) => {
    watch.once('error', reject)
    watch.once('exit', () => resolve())
  })
  watched.catch(() => {})
  watch.stdin?.on('error', () => {})

  for (const stream of ['stdout', 'stderr'] as const) {
    child[stream].setEncoding('utf8').on('data', (chunk: string) => onOutput(stream, chunk))
    // A stream that was handed on stands still until it is asked to flow.
    child[stream].resume()
  }
  // Without its guard nothing is started.
  if (watch.pid !== undefined) child.stdin.write('go\n')
  child.stdin.end()

  let late: NodeJS.Timeout | undefined
  const end = () => {
    signalGroup(leader, 'SIGINT')
    late = setTimeout(() => signalGroup(leader, 'SIGKILL'), graceMs)
  }
  if (signal.aborted) end()
  else signal.addEventListener('abort', end, { once: true })
  try {
    const exit = await exited
    signalGroup(leader, 'SIGKILL')
    watch.stdin?.end('over\n')
    await Promise.all([watched, ended(child.stdout), ended(child.stderr)])
    return exit
  } finally {
    clearTimeout(late)
    signal.removeEventListener('abort', end)
  }
}
