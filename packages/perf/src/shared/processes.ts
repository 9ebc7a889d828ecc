import { readdir, readFile, writeFile } from 'node:fs/promises'

/** The memory of a process as Linux counts it. */
export interface Memory {
  readonly residentBytes: number
  /** The highest resident size since the last reset. */
  readonly peakBytes: number
}

const readProc = (pid: number, file: string): Promise<string> =>
  readFile(`/proc/${pid}/${file}`, 'utf8').catch(() => '')

/** A size in bytes from a file of /proc, where it is given in kB of 1024 bytes; NaN if the field is missing. */
const sizeIn = (text: string, field: string): number =>
  Number(new RegExp(`^${field}:\\s+(\\d+) kB$`, 'm').exec(text)?.[1]) * 1_024

/** Parses /proc/<pid>/status; null if it has no sizes. */
export const parseMemory = (status: string): Memory | null => {
  const memory = { residentBytes: sizeIn(status, 'VmRSS'), peakBytes: sizeIn(status, 'VmHWM') }
  return Number.isNaN(memory.residentBytes + memory.peakBytes) ? null : memory
}

/** Null where there is no /proc. */
export const readMemory = async (pid: number): Promise<Memory | null> => parseMemory(await readProc(pid, 'status'))

/** Resets the peak. Where that is not permitted, the peak is that of the whole life of the process. */
export const resetPeak = (pid: number): Promise<void> => writeFile(`/proc/${pid}/clear_refs`, '5').catch(() => {})

export interface ProcessInfo {
  readonly pid: number
  readonly command: string
  readonly residentBytes: number
  /** Shared pages count in proportion (proc_pid_smaps(5)), so these can be added up. */
  readonly proportionalBytes: number
}

/** The parent's id in /proc/<pid>/stat (proc_pid_stat(5)). The command in parentheses may contain parentheses too. */
export const parseParent = (stat: string): number => Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1])

/** `root` and all its descendants, from a map of process ids to the ids of their parents. */
export const findDescendants = (root: number, parents: ReadonlyMap<number, number>): number[] => {
  const found = [root]
  // The list grows during the loop.
  for (const pid of found) for (const [child, parent] of parents) if (parent === pid) found.push(child)
  return found
}

/** The ids of a process and its descendants; empty if it does not run, or where there is no /proc. */
export const listProcessTree = async (root: number): Promise<number[]> => {
  const pids = (await readdir('/proc').catch(() => [])).map(Number).filter(Number.isInteger)
  const parents = new Map<number, number>()
  for (const pid of pids) parents.set(pid, parseParent(await readProc(pid, 'stat')))
  return parents.has(root) ? findDescendants(root, parents) : []
}

export const readProcessTree = async (root: number): Promise<ProcessInfo[]> =>
  Promise.all(
    (await listProcessTree(root)).map(async pid => {
      const [command, memory] = await Promise.all([readProc(pid, 'cmdline'), readProc(pid, 'smaps_rollup')])
      return {
        pid,
        command: command.replaceAll('\0', ' ').trim(),
        residentBytes: sizeIn(memory, 'Rss') || 0,
        proportionalBytes: sizeIn(memory, 'Pss') || 0,
      }
    }),
  )
