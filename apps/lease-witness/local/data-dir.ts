import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { acquireLock } from '@pool/dev-server/lock'

/** The locked directory of the Durable Objects and the KV namespace: two processes on it would be two authorities. */
export interface LockedDataDir extends Disposable {
  readonly path: string
  /** Records which process uses the files, so that the next start can wait until it has exited. */
  readonly recordPid: (pid: number) => void
}

const EXIT_TIMEOUT_MS = 2_000
const POLL_MS = 20

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

/** The watchdog of a killed start kills its workerd too. Until that has exited, the files may still change. */
const waitForExit = async (pid: string, timeoutMs: number): Promise<void> => {
  for (const deadline = performance.now() + timeoutMs; isWorkerd(pid); await sleep(POLL_MS)) {
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
