import { execFile } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { isAlive, until } from '../poll.ts'

export interface PidFile {
  readonly pid: number
  /** "starting", "ready", "stopping": the file's eighth line, written by the server from version 10 on. */
  readonly status: string
}

export async function readPidFile(cluster: string): Promise<PidFile | undefined> {
  const text = await readFile(join(cluster, 'postmaster.pid'), 'utf8').catch(() => '')
  const lines = text.split('\n')
  const pid = Number(lines[0])
  return Number.isInteger(pid) && pid > 1 ? { pid, status: (lines[7] ?? '').trim() } : undefined
}

/**
 * A start command that was killed leaves its server behind: it is stopped, so that the data has one server with
 * our settings. The file of a dead server is left to Postgres, with two exceptions in which it would refuse to start:
 * the dead one's number has gone to some other process (a restarted container), or one of its sessions is busy with
 * a long query and has not seen that its server is dead.
 */
export async function stopLeftover(cluster: string): Promise<void> {
  const found = await readPidFile(cluster)
  if (found !== undefined && isAlive(found.pid)) {
    if (await isServerOf(found.pid, cluster)) {
      await end([found.pid], cluster, ['SIGINT', 'SIGQUIT', 'SIGKILL'])
    } else {
      await rm(join(cluster, 'postmaster.pid'), { force: true })
    }
  }
  await end(processesOf(cluster), cluster, ['SIGQUIT', 'SIGKILL'])
}

const PATIENCE_MS = 10_000

async function end(pids: readonly number[], cluster: string, signals: readonly NodeJS.Signals[]): Promise<void> {
  // An orphan that nobody reaps stays "alive" as a zombie, but works in no folder any more.
  const isGone = async (pid: number) => !isAlive(pid) || !(await isServerOf(pid, cluster))
  const areGone = async () => (await Promise.all(pids.map(isGone))).every(Boolean)
  for (const signal of signals) {
    for (const pid of pids) send(pid, signal)
    if (await until(areGone, { everyMs: 10, withinMs: PATIENCE_MS })) return
  }
}

function send(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal)
    process.kill(pid, 'SIGCONT')
  } catch {
    // It went by itself in between.
  }
}

const hasProc = existsSync('/proc/self/cwd')

/** Every server process that works in the cluster's folder, sessions included. Where there is no /proc: none. */
function processesOf(cluster: string): number[] {
  if (!hasProc || !existsSync(cluster)) return []
  const numbers = readdirSync('/proc').map(Number).filter(Number.isInteger)
  return numbers.filter(pid => worksIn(pid, cluster))
}

/** Compared as a file, so that a moved or linked path makes no difference. */
function worksIn(pid: number, cluster: string): boolean {
  try {
    if (readFileSync(`/proc/${pid}/comm`, 'utf8') !== 'postgres\n') return false
    const [there, here] = [statSync(`/proc/${pid}/cwd`), statSync(cluster)]
    return there.dev === here.dev && there.ino === here.ino
  } catch {
    return false
  }
}

async function isServerOf(pid: number, cluster: string): Promise<boolean> {
  if (hasProc) return worksIn(pid, cluster)
  const command = await new Promise<string>(resolve =>
    execFile('ps', ['-o', 'command=', '-p', String(pid)], (_error, stdout) => resolve(stdout)),
  )
  return command.includes('postgres') && command.includes(cluster)
}
