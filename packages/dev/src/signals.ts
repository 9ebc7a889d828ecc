import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { isAlive } from './poll.ts'

const hasProc = existsSync('/proc/self/stat')

/**
 * The processes through which a package manager runs a script (npx, a shell, pnpm, a shell), nearest first. If one of
 * them is killed, or forwards a signal only to its shell, the script gets no signal: its own parent may still be alive.
 * A shell above all of them, such as a script that runs this one in the background, may exit without effect.
 */
function packageManagerPids(): readonly number[] {
  const chain: { pid: number; isManager: boolean }[] = []
  for (let pid = process.ppid; pid > 1; pid = readParentPid(pid)) {
    const command = readCommandLine(pid)
    const isManager = isPackageManager(command)
    if (!isManager && !/^\S*sh -c /.test(command)) break
    chain.push({ pid, isManager })
  }
  const managed = chain.slice(0, chain.findLastIndex(({ isManager }) => isManager) + 1).map(({ pid }) => pid)
  return managed.length > 0 ? managed : [process.ppid]
}

/** Matches process titles such as `pnpm start`, and command lines of node or a shell with the file of a package manager. */
export const isPackageManager = (command: string): boolean =>
  /^(?:\S*\b(?:node|sh) (?:-\S+ )*)?(?:\S*\/)?(?:p?np[mx]|corepack)(?:-cli)?(?:\.[cm]?js)?(?: |$)/.test(command)

function isOrphaned(chain: readonly number[]): boolean {
  if (process.ppid !== chain[0]) return true
  // A zombie has no children.
  return hasProc
    ? chain.some((pid, index) => chain[index + 1] !== undefined && readParentPid(pid) !== chain[index + 1])
    : !chain.every(isAlive)
}

function readParentPid(pid: number): number {
  if (!hasProc) return Number(ps('ppid=', pid))
  try {
    // proc(5): the name in parentheses can contain any character; the state and the parent follow it.
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1])
  } catch {
    return 0
  }
}

function readCommandLine(pid: number): string {
  if (!hasProc) return ps('command=', pid)
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim()
  } catch {
    return ''
  }
}

function ps(field: string, pid: number): string {
  try {
    return execFileSync('ps', ['-o', field, '-p', String(pid)], { encoding: 'utf8' }).trim()
  } catch {
    return ''
  }
}

/** The first signal requests a graceful shutdown, the second an immediate one. */
export interface ShutdownSignals {
  readonly stop: AbortSignal
  readonly forceStop: AbortSignal
}

/** One Ctrl-C can arrive twice: from the terminal and, forwarded, from the package manager. */
export const DUPLICATE_SIGNAL_MS = 500
const PARENT_CHECK_INTERVAL_MS = 500

export function watchShutdownSignals(): ShutdownSignals {
  const stop = new AbortController()
  const forceStop = new AbortController()
  let firstAt = 0
  const interrupt = () => {
    if (!stop.signal.aborted) {
      firstAt = performance.now()
      stop.abort()
    } else if (performance.now() - firstAt > DUPLICATE_SIGNAL_MS) forceStop.abort()
  }
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, interrupt)

  // When the package manager is killed, a Ctrl-C no longer reaches this process.
  const parents = packageManagerPids()
  const watch = setInterval(() => {
    if (!isOrphaned(parents)) return
    clearInterval(watch)
    stop.abort()
  }, PARENT_CHECK_INTERVAL_MS)
  watch.unref()
  return { stop: stop.signal, forceStop: forceStop.signal }
}
