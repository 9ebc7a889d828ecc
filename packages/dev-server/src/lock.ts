import { execFileSync } from 'node:child_process'
import { linkSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { isAlive } from './poll.ts'
import { PlainError } from './user-error.ts'

export interface Lock {
  /** Its last holder ended without giving it back: something of that start may still be ending. */
  readonly wasLeftBehind: boolean
  release(): void
}

/** Numbers of processes are used again, after a restart of a container at once; a number and its birth are not. */
export interface Holder {
  readonly pid: number
  readonly born: string
}

/** One holder at a time among the processes of this machine; one that died, in whatever way, holds nothing. */
export function acquireLock(path: string): Lock {
  const self: Holder = { pid: process.pid, born: birthOf(process.pid) }
  const draft = `${path}.${process.pid}`
  writeFileSync(draft, JSON.stringify(self))
  let wasLeftBehind = false
  try {
    // A link appears with its content, or fails when the name is there: never a lock that is half written.
    while (!tryLink(draft, path)) {
      const holder = readHolder(path)
      if (holder !== undefined && isHeldBy(holder)) {
        throw new PlainError(
          `another start (process ${holder.pid}) is using this data folder: stop it first, or choose
          another folder with DATA_DIR=…`.replace(/\s+/g, ' '),
        )
      }
      wasLeftBehind = true
      clear(path, `${draft}.old`)
    }
  } finally {
    rmSync(draft, { force: true })
  }
  return {
    wasLeftBehind,
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

/** Of several that find one dead lock, only one moves it away; a live lock that was moved by mistake is put back. */
function clear(path: string, aside: string): void {
  try {
    renameSync(path, aside)
  } catch {
    return
  }
  const moved = readHolder(aside)
  if (moved !== undefined && isHeldBy(moved)) tryLink(aside, path)
  rmSync(aside, { force: true })
}

function readHolder(path: string): Holder | undefined {
  try {
    const { pid, born } = JSON.parse(readFileSync(path, 'utf8'))
    return Number.isInteger(pid) && typeof born === 'string' ? { pid, born } : undefined
  } catch {
    return undefined
  }
}

const isHeldBy = ({ pid, born }: Holder) => isAlive(pid) && birthOf(pid) === born

function birthOf(pid: number): string {
  try {
    // proc(5): the 22nd field, in clock ticks since boot; the second one is a name in brackets with anything in it.
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
