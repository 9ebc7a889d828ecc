import { readdirSync, readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { timed, until } from './poll.ts'

/** This module reads /proc, which only Linux has. Elsewhere no process runs and no size is known. */
export const hasProc = process.platform === 'linux'
export const WITHOUT_PROC = 'needs /proc: skipped on this system'

/** Empty if the process does not run. */
const readProc = (pid: number, file: string): string => {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8')
  } catch {
    return ''
  }
}

const listPids = (): number[] => (hasProc ? readdirSync('/proc').map(Number).filter(Number.isInteger) : [])

/** The fields of /proc/<pid>/stat (proc_pid_stat(5)) after the command, whose parentheses may contain parentheses too. */
const parseStat = (stat: string): readonly string[] => stat.slice(stat.lastIndexOf(')') + 2).split(' ')

/** The parent's id in /proc/<pid>/stat. */
const parseParent = (stat: string): number => Number(parseStat(stat)[1])

/** Whether the process of /proc/<pid>/stat runs. A zombie with other threads does: they still have its sockets and files. */
export const parseIsRunning = (stat: string): boolean => {
  const fields = parseStat(stat)
  const [state = ''] = fields
  return state === 'Z' ? Number(fields[17]) > 1 : !['', 'X'].includes(state)
}

/** False for a zombie of which all threads have exited. */
export const isRunning = (pid: number): boolean => parseIsRunning(readProc(pid, 'stat'))

/** The running children whose program path ends with `name`. */
export const listChildren = (pid: number, name: string): number[] =>
  listPids()
    .filter(child => parseParent(readProc(child, 'stat')) === pid && isRunning(child))
    .filter(child => readProc(child, 'cmdline').split('\0')[0]?.endsWith(name))

/** The current workerd of a witness. Undefined between a crash and the restart. */
export const findWorkerd = (pid: number): number | undefined => listChildren(pid, '/workerd')[0]

const signalAll = (pids: readonly number[], name: NodeJS.Signals): void => {
  for (const pid of pids) {
    try {
      process.kill(pid, name)
    } catch {
      // The process has exited in the meantime.
    }
  }
}

/** Sends SIGSTOP to a process and its children. Returns a function that sends SIGCONT to them. */
export const freezeFamily = (pid: number): (() => void) => {
  // The parent first, so that no child starts after the list is read.
  signalAll([pid], 'SIGSTOP')
  const children = listPids().filter(child => parseParent(readProc(child, 'stat')) === pid)
  signalAll(children, 'SIGSTOP')
  return () => signalAll([pid, ...children], 'SIGCONT')
}

/** Waits until a process has exited. Resolves with the milliseconds that it took. */
export const waitForExit = async (pid: number, withinMs: number): Promise<number> => {
  const { ms } = await timed(() => until(`process ${pid} has exited`, () => !isRunning(pid), withinMs))
  return ms
}

/** The memory of a process as Linux counts it. */
export interface Memory {
  readonly residentBytes: number
  /** The highest resident size since the last reset. */
  readonly peakBytes: number
}

/** A size in bytes from a file of /proc, where it is given in kB of 1024 bytes; NaN if the field is missing. */
const sizeIn = (text: string, field: string): number =>
  Number(new RegExp(`^${field}:\\s+(\\d+) kB$`, 'm').exec(text)?.[1]) * 1_024

/** Parses /proc/<pid>/status; null if it has no sizes. */
export const parseMemory = (status: string): Memory | null => {
  const memory = { residentBytes: sizeIn(status, 'VmRSS'), peakBytes: sizeIn(status, 'VmHWM') }
  return Number.isNaN(memory.residentBytes + memory.peakBytes) ? null : memory
}

export const readMemory = (pid: number): Memory | null => parseMemory(readProc(pid, 'status'))

/** The unit of CPU times in /proc: 1/100 s on every Linux that runs Node. */
const CPU_TICK_MS = 10

/** In nanoseconds, the first field of /proc/<pid>/task/<tid>/schedstat. */
const parseRunTime = (schedstat: string): number => Number(schedstat.split(' ', 1)[0])

/**
 * The CPU time of all threads that a process has, in microseconds; null if it is unknown. A thread that exits takes its time
 * along. More precise than the ticks, of which a short run has few.
 */
export const readCpuUs = (pid: number): number | null => {
  if (!hasProc || !isRunning(pid)) return null
  const threads = readdirSync(`/proc/${pid}/task`)
  const runTime = threads.reduce((sum, id) => sum + parseRunTime(readProc(pid, `task/${id}/schedstat`)), 0)
  const [userTicks = 0, systemTicks = 0] = parseStat(readProc(pid, 'stat')).slice(11, 13).map(Number)
  // A kernel can lack schedstat.
  return runTime / 1_000 || (userTicks + systemTicks) * CPU_TICK_MS * 1_000
}

/** Resident memory in MiB; 0 if it is unknown. */
export const readRssMib = (pid: number): number => (readMemory(pid)?.residentBytes ?? 0) / 1_048_576

/** Resets the peak. Where that is not permitted, the peak is that of the whole life of the process. */
export const resetPeak = (pid: number): Promise<void> => writeFile(`/proc/${pid}/clear_refs`, '5').catch(() => {})

export interface ProcessInfo {
  readonly pid: number
  readonly command: string
  readonly residentBytes: number
  /** Shared pages count in proportion (proc_pid_smaps(5)), so these can be added up. */
  readonly proportionalBytes: number
}

/** `root` and all its descendants, from a map of process ids to the ids of their parents. */
export const findDescendants = (root: number, parents: ReadonlyMap<number, number>): number[] => {
  const found = [root]
  // The list grows during the loop.
  for (const pid of found) for (const [child, parent] of parents) if (parent === pid) found.push(child)
  return found
}

/** The ids of a process and its descendants; empty if it does not run. */
export const listProcessTree = (root: number): number[] => {
  const parents = new Map(listPids().map(pid => [pid, parseParent(readProc(pid, 'stat'))]))
  return parents.has(root) ? findDescendants(root, parents) : []
}

export const readProcessTree = (root: number): ProcessInfo[] =>
  listProcessTree(root).map(pid => {
    const memory = readProc(pid, 'smaps_rollup')
    return {
      pid,
      command: readProc(pid, 'cmdline').replaceAll('\0', ' ').trim(),
      residentBytes: sizeIn(memory, 'Rss') || 0,
      proportionalBytes: sizeIn(memory, 'Pss') || 0,
    }
  })
