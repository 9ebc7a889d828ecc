import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import type { StateLock } from '../domain/types.ts'

/** A process group, for a later check from another process. */
export type ProcessGroupIdentity = Pick<StateLock, 'host' | 'processGroup' | 'startedAt'>

interface ProcessStat {
  readonly state: string
  readonly processGroup: number
  /** Clock ticks since the boot. */
  readonly startedAt: string
}

/** Null if there is no such process: https://man7.org/linux/man-pages/man5/proc_pid_stat.5.html */
const readStat = (pid: number | string): ProcessStat | null => {
  try {
    // The name of the program is in parentheses and may contain any character.
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
      .replace(/^.*\) /s, '')
      .split(' ')
    const [state = '', , processGroup] = fields
    return { state, processGroup: Number(processGroup), startedAt: fields[19] ?? '' }
  } catch {
    return null
  }
}

/** The boot and the process namespace: process numbers mean the same where both are equal. Null except on Linux. */
const readHost = (): string | null => {
  try {
    return `${readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()} ${readlinkSync('/proc/self/ns/pid')}`
  } catch {
    return null
  }
}

/** Call while the leader runs. Where processes cannot be identified, `host` is empty. */
export const identifyProcessGroup = (leader: number): ProcessGroupIdentity => {
  const startedAt = readStat(leader)?.startedAt
  const host = startedAt === undefined ? null : readHost()
  return { host: host ?? '', processGroup: leader, startedAt: startedAt ?? '' }
}

const hasEnded = ({ state }: ProcessStat): boolean => state === 'Z' || state === 'X'

/** A number in use as that of a group is not given to a new process, so another start time means that the group ended. */
export const checkProcessGroup = ({ host, processGroup, startedAt }: ProcessGroupIdentity) => {
  if (host === '' || host !== readHost()) return 'unknown'
  const leader = readStat(processGroup)
  if (leader && leader.startedAt !== startedAt) return 'ended'
  const isMember = (pid: string): boolean => {
    const stat = /^\d+$/.test(pid) ? readStat(pid) : null
    return stat !== null && stat.processGroup === processGroup && !hasEnded(stat)
  }
  return readdirSync('/proc').some(isMember) ? 'running' : 'ended'
}
