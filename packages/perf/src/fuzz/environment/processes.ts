import { readFile } from 'node:fs/promises'
import { readMemory } from '../../bench/memory.ts'

/** The processes of a service: the one that was started, and those that it started. */
export const familyOf = async (pid: number): Promise<readonly number[]> => {
  const text = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8').catch(() => '')
  const children = text.trim().split(' ').filter(Boolean).map(Number)
  return [pid, ...(await Promise.all(children.map(familyOf))).flat()]
}

/** Bytes that they have in memory together; 0 where the system does not tell. */
export const residentBytes = async (pids: readonly number[]): Promise<number> => {
  const all = await Promise.all(pids.map(readMemory))
  return all.reduce((sum, memory) => sum + (memory?.residentBytes ?? 0), 0)
}
