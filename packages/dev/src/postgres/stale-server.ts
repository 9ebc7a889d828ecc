import { execFile } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { isAlive, pollUntil } from '../poll.ts'

export interface PidFile {
  readonly pid: number
  /** "starting", "ready" or "stopping": line 8 of the file, since Postgres 10. */
  readonly status: string
}

export async function readPidFile(cluster: string): Promise<PidFile | undefined> {
  const text = await readFile(join(cluster, 'postmaster.pid'), 'utf8').catch(() => '')
  const lines = text.split('\n')
  const pid = Number(lines[0])
  return Number.isInteger(pid) && pid > 1 ? { pid, status: (lines[7] ?? '').trim() } : undefined
}

/**
 * Stops the server of a start command that was killed. Postgres handles the PID file of a dead server, except in two cases
 * in which it would not start: another process has the process id (a restarted container), or a backend of the dead
 * server is still busy with a long query.
 */
export async function stopStaleServer(cluster: string): Promise<void> {
  const found = await readPidFile(cluster)
  if (found !== undefined && isAlive(found.pid)) {
    if (await isServerOfCluster(found.pid, cluster)) {
      await terminate([found.pid], cluster, ['SIGINT', 'SIGQUIT', 'SIGKILL'])
    } else {
      await rm(join(cluster, 'postmaster.pid'), { force: true })
    }
  }
  await terminate(findServerProcesses(cluster), cluster, ['SIGQUIT', 'SIGKILL'])
}

const SIGNAL_TIMEOUT_MS = 10_000

async function terminate(pids: readonly number[], cluster: string, signals: readonly NodeJS.Signals[]): Promise<void> {
  // A zombie is alive for kill(2) but has no working directory.
  const isGone = async (pid: number) => !isAlive(pid) || !(await isServerOfCluster(pid, cluster))
  const areAllGone = async () => (await Promise.all(pids.map(isGone))).every(Boolean)
  for (const signal of signals) {
    for (const pid of pids) send(pid, signal)
    if (await pollUntil(areAllGone, { intervalMs: 10, timeoutMs: SIGNAL_TIMEOUT_MS })) return
  }
}

function send(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal)
    process.kill(pid, 'SIGCONT')
  } catch {
    // The process has exited in the meantime.
  }
}

const hasProc = existsSync('/proc/self/cwd')

/** The server and its backends, found by their working directory. Empty on systems without /proc. */
function findServerProcesses(cluster: string): number[] {
  if (!hasProc || !existsSync(cluster)) return []
  const numbers = readdirSync('/proc').map(Number).filter(Number.isInteger)
  return numbers.filter(pid => hasWorkingDirectory(pid, cluster))
}

/** Compares device and inode, so that a moved or linked path makes no difference. */
function hasWorkingDirectory(pid: number, cluster: string): boolean {
  try {
    if (readFileSync(`/proc/${pid}/comm`, 'utf8') !== 'postgres\n') return false
    const [actual, expected] = [statSync(`/proc/${pid}/cwd`), statSync(cluster)]
    return actual.dev === expected.dev && actual.ino === expected.ino
  } catch {
    return false
  }
}

async function isServerOfCluster(pid: number, cluster: string): Promise<boolean> {
  if (hasProc) return hasWorkingDirectory(pid, cluster)
  const command = await new Promise<string>(resolve =>
    execFile('ps', ['-o', 'command=', '-p', String(pid)], (_error, stdout) => resolve(stdout)),
  )
  return command.includes('postgres') && command.includes(cluster)
}
