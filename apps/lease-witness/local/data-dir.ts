import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { acquireLock } from '@pool/dev-server/lock'

/** The files of the objects and of the namespace, ours alone: two that answer from them would be two authorities. */
export interface DataDir extends Disposable {
  readonly path: string
  /** Which process works on them, so that the next start can tell whether it has ended. */
  readonly usedBy: (pid: number) => void
}

const ENDS_WITHIN_MS = 2_000
const LOOK_EVERY_MS = 20

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

/** What a start that was killed left behind is being killed too; until then its files are not ours. */
const untilEnded = async (pid: string): Promise<void> => {
  for (const end = performance.now() + ENDS_WITHIN_MS; isWorkerd(pid); await sleep(LOOK_EVERY_MS)) {
    if (performance.now() > end) {
      throw new Error(`workerd of an earlier start (process ${pid}) still uses this data folder: stop it first`)
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

export const openDataDir = async (dataDir: string): Promise<DataDir> => {
  const path = join(dataDir, 'lease-witness')
  mkdirSync(path, { recursive: true, mode: 0o700 })
  const pidFile = join(path, 'workerd.pid')
  const lock = acquireLock(join(path, 'start.lock'))
  try {
    const left = readPid(pidFile)
    if (left !== undefined) await untilEnded(left)
  } catch (error) {
    lock.release()
    throw error
  }
  return {
    path,
    usedBy: pid => writeFileSync(pidFile, `${pid}\n`),
    [Symbol.dispose]: () => {
      rmSync(pidFile, { force: true })
      lock.release()
    },
  }
}
