import { readFile, writeFile } from 'node:fs/promises'

/** Bytes of a process's memory as Linux counts it; null elsewhere. */
export interface Memory {
  readonly residentBytes: number
  /** The most that has been resident since the last reset. */
  readonly peakBytes: number
}

/** Of the text of /proc/<pid>/status (proc(5)): sizes in kB, which are 1024 bytes. */
export const memoryOf = (status: string): Memory | null => {
  const bytes = (field: string) => Number(new RegExp(`^${field}:\\s+(\\d+) kB$`, 'm').exec(status)?.[1]) * 1_024
  const memory = { residentBytes: bytes('VmRSS'), peakBytes: bytes('VmHWM') }
  return Number.isNaN(memory.residentBytes + memory.peakBytes) ? null : memory
}

export const readMemory = async (pid: number): Promise<Memory | null> =>
  memoryOf(await readFile(`/proc/${pid}/status`, 'utf8').catch(() => ''))

/** Makes the peak begin anew; where that cannot be done, the peak is that of the process's whole life. */
export const resetPeak = (pid: number): Promise<void> => writeFile(`/proc/${pid}/clear_refs`, '5').catch(() => {})
