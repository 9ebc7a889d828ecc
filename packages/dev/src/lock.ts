import { execFileSync } from 'node:child_process'
import { linkSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { isAlive } from './poll.ts'
import { UserError } from './user-error.ts'

export interface Lock {
  /** The previous holder exited without releasing the lock, so its child processes may still be shutting down. */
  readonly wasStale: boolean
  release(): void
}

/** Process ids are reused, in a restarted container immediately; a pair of process id and start time is not. */
export interface LockHolder {
  readonly pid: number
  readonly startedAt: string
}

/** Acquires a lock between processes of this machine. The lock of a dead process is stale and is replaced. */
export function acquireLock(path: string): Lock {
  const self: LockHolder = { pid: process.pid, startedAt: readStartTime(process.pid) }
  const draft = `${path}.${process.pid}`
  writeFileSync(draft, JSON.stringify(self))
  let wasLeftBehind = false
  try {
    // link(2) is atomic: it creates the file with its content, or fails if the name exists.
    while (!tryLink(draft, path)) {
      const holder = readHolder(path)
      if (holder !== undefined && isRunning(holder)) {
        throw new UserError(
          `the data directory is in use by another start (process ${holder.pid}): stop it, or set DATA_DIR`,
        )
      }
      wasLeftBehind = true
      removeStaleLock(path, `${draft}.old`)
    }
  } finally {
    rmSync(draft, { force: true })
  }
  return {
    wasStale: wasLeftBehind,
    release() {
      if (readHolder(path)?.pid === process.pid) rmSync(path, { force: true })
    },
  }
}

function tryLink(from: string, to: string): boolean {
  try {
    linkSync(from, to)
    return true
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EEXIST') return false
    throw error
  }
}

/** Of several processes that find the same stale lock, only one renames it. A live lock renamed by mistake is restored. */
function removeStaleLock(path: string, aside: string): void {
  try {
    renameSync(path, aside)
  } catch {
    return
  }
  const moved = readHolder(aside)
  if (moved !== undefined && isRunning(moved)) tryLink(aside, path)
  rmSync(aside, { force: true })
}

function readHolder(path: string): LockHolder | undefined {
  try {
    const { pid, startedAt } = JSON.parse(readFileSync(path, 'utf8'))
    return Number.isInteger(pid) && typeof startedAt === 'string' ? { pid, startedAt } : undefined
  } catch {
    return undefined
  }
}

const isRunning = ({ pid, startedAt }: LockHolder) => isAlive(pid) && readStartTime(pid) === startedAt

function readStartTime(pid: number): string {
  try {
    // proc(5): field 22, in clock ticks since boot. Field 2 is a name in parentheses that can contain any character.
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
    return `${boot} ${stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19]}`
  } catch {
    if (process.platform === 'linux') return ''
  }
  try {
    return execFileSync('ps', ['-o', 'lstart=', '-p', String(pid)], { encoding: 'utf8' }).trim()
  } catch {
    return ''
  }
}
