import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { acquireLock } from '@pool/dev/lock'

/** The locked directory of the Durable Objects and the KV namespace: two processes on it would be two authorities. */
export interface LockedDataDir extends Disposable {
  readonly path: string
  /** Records which process uses the files, so that the next start can wait until it has exited. */
  readonly recordPid: (pid: number) => void
}

const EXIT_TIMEOUT_MS = 2_000
const POLL_MS = 20
/** The position of num_threads in /proc/<pid>/stat after the state: see proc(5). */
const THREADS_FIELD = 16

const isWorkerd = (pid: string): boolean => {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('workerd')
  } catch {
    if (process.platform === 'linux') return false
  }
  try {
    return execFileSync('ps', ['-o', 'command=', '-p', pid], { encoding: 'utf8' }).includes('workerd')
  } catch {
    return false
  }
}

/** While a process exits it has no command line any more, but its files are open until its last thread has ended. */
const hasExited = (pid: string): boolean => {
  if (process.platform !== 'linux') return !isWorkerd(pid)
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    const [state = '', ...numbers] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return 'ZX'.includes(state) && Number(numbers[THREADS_FIELD]) <= 1
  } catch {
    return true
  }
}

/** The watchdog of a killed start kills its workerd too. Until that has exited, the files may still change. */
const waitForExit = async (pid: string, timeoutMs: number): Promise<void> => {
  if (!isWorkerd(pid)) return
  for (const deadline = performance.now() + timeoutMs; !hasExited(pid); await sleep(POLL_MS)) {
    if (performance.now() > deadline) {
      throw new Error(`workerd of an earlier start (process ${pid}) still uses this data directory: stop it first`)
    }
  }
}

const readPid = (path: string): string | undefined => {
  try {
    return /^[1-9]\d*$/.exec(readFileSync(path, 'utf8').trim())?.[0]
  } catch {
    return undefined
  }
}

/** Rejects if another process uses the directory. */
export const lockDataDir = async (root: string, exitTimeoutMs = EXIT_TIMEOUT_MS): Promise<LockedDataDir> => {
  const path = join(root, 'lease-witness')
  mkdirSync(path, { recursive: true, mode: 0o700 })
  const pidFile = join(path, 'workerd.pid')
  const lock = acquireLock(join(path, 'start.lock'))
  try {
    const pid = readPid(pidFile)
    if (pid !== undefined) await waitForExit(pid, exitTimeoutMs)
  } catch (error) {
    lock.release()
    throw error
  }
  return {
    path,
    recordPid: pid => writeFileSync(pidFile, `${pid}\n`),
    [Symbol.dispose]: () => {
      rmSync(pidFile, { force: true })
      lock.release()
    },
  }
}
