import { readdirSync, readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'

/** This module reads /proc, which only Linux has. */
export const hasProc = process.platform === 'linux'
export const WITHOUT_PROC = 'needs /proc: skipped on this system'

const read = (path: string): string => {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}

const readStat = (pid: number): readonly string[] => {
  const stat = read(`/proc/${pid}/stat`)
  // The name in parentheses may contain parentheses too. The state and the parent follow it.
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ')
}

/** False for a zombie. */
export const isRunning = (pid: number): boolean => !['', 'Z', 'X'].includes(readStat(pid)[0] ?? '')

/** The running children whose program path ends with `name`. */
export const listChildren = (pid: number, name: string): number[] =>
  readdirSync('/proc')
    .filter(entry => /^\d+$/.test(entry))
    .map(Number)
    .filter(child => readStat(child)[1] === String(pid) && isRunning(child))
    .filter(child => read(`/proc/${child}/cmdline`).split('\0')[0]?.endsWith(name))

/** The current workerd of a witness. Undefined between a crash and the restart. */
export const findWorkerd = (pid: number): number | undefined => listChildren(pid, '/workerd')[0]

export const waitForExit = async (pid: number, withinMs: number): Promise<number> => {
  const started = performance.now()
  while (isRunning(pid)) {
    if (performance.now() - started > withinMs) throw new Error(`process ${pid} still runs after ${withinMs} ms`)
    await sleep(5)
  }
  return performance.now() - started
}

/** Resident memory in MiB. */
export const readRssMib = (pid: number): number =>
  Number(/^VmRSS:\s+(\d+) kB$/m.exec(read(`/proc/${pid}/status`))?.[1] ?? 0) / 1_024
