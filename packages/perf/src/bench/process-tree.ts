import { readdir, readFile } from 'node:fs/promises'

export interface Member {
  readonly pid: number
  readonly command: string
  readonly residentBytes: number
  /** Its share of what it has in common with others, and what is its own (proc_pid_smaps(5)): these can be added up. */
  readonly proportionalBytes: number
}

/** Of the text of /proc/<pid>/stat (proc_pid_stat(5)). The name in brackets may hold anything, brackets too. */
export const parentOf = (stat: string): number => Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1])

/** `root` and all that descend from it, of processes by their number and that of their parent. */
export const descendants = (root: number, parents: ReadonlyMap<number, number>): number[] => {
  const found = [root]
  // Grows while it is walked.
  for (const pid of found) for (const [child, parent] of parents) if (parent === pid) found.push(child)
  return found
}

const kilobytes = (text: string, field: string): number =>
  Number(new RegExp(`^${field}:\\s+(\\d+) kB$`, 'm').exec(text)?.[1] ?? 0) * 1_024

/** The memory of a process and of all below it; none where there is no /proc. */
export const readTree = async (root: number): Promise<Member[]> => {
  const read = (pid: number, file: string) => readFile(`/proc/${pid}/${file}`, 'utf8').catch(() => '')
  const pids = (await readdir('/proc').catch(() => [])).map(Number).filter(Number.isInteger)
  const parents = new Map<number, number>()
  for (const pid of pids) parents.set(pid, parentOf(await read(pid, 'stat')))
  const tree = parents.has(root) ? descendants(root, parents) : []
  return Promise.all(
    tree.map(async pid => {
      const [command, memory] = await Promise.all([read(pid, 'cmdline'), read(pid, 'smaps_rollup')])
      return {
        pid,
        command: command.replaceAll('\0', ' ').trim(),
        residentBytes: kilobytes(memory, 'Rss'),
        proportionalBytes: kilobytes(memory, 'Pss'),
      }
    }),
  )
}
