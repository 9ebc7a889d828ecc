import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { UsageError } from '../../shared/cli.ts'

/** Short, so that a request is rarely stopped for longer than a slow core would take. */
const PERIOD_US = 10_000
const V1 = '/sys/fs/cgroup/cpu'
const V2 = '/sys/fs/cgroup'
const REMOVE_ATTEMPTS = 50

/** The parent of the new group, and the files that limit it: of cgroup version 1 or 2, whichever has the controller. */
const findController = (quotaUs: number) =>
  existsSync(`${V1}/cpu.cfs_quota_us`) || existsSync(`${V1}/tasks`)
    ? {
        parent: V1,
        limits: [
          ['cpu.cfs_period_us', PERIOD_US],
          ['cpu.cfs_quota_us', quotaUs],
        ] as const,
      }
    : { parent: V2, limits: [['cpu.max', `${quotaUs} ${PERIOD_US}`]] as const }

/** The group of this process under the parent, such as `/user.slice`. */
const readOwnGroup = (parent: string): string => {
  const line = readFileSync('/proc/self/cgroup', 'utf8')
    .split('\n')
    .find(text => (parent === V1 ? /^\d+:(?:[^:]*,)?cpu(?:,[^:]*)?:/ : /^0::/).test(text))
  return line?.replace(/^[^:]*:[^:]*:/, '') ?? '/'
}

/**
 * Moves this process, and with it everything that it starts, to a new cgroup that may use a share of each core. The returned
 * function moves it back and removes the group. A quota slows down all alike: with `nice`, the scheduler's groups of
 * sessions would favour Postgres, whose connections are sessions of their own.
 */
export const limitCores = (share: number, cores: number): (() => Promise<void>) => {
  const { parent, limits } = findController(Math.round(share * cores * PERIOD_US))
  const group = `${parent}/pool-bench-${process.pid}`
  try {
    const home = readOwnGroup(parent)
    mkdirSync(group)
    for (const [file, value] of limits) writeFileSync(`${group}/${file}`, String(value))
    writeFileSync(`${group}/cgroup.procs`, String(process.pid))
    return async () => {
      writeFileSync(`${parent}${home}/cgroup.procs`, String(process.pid))
      for (let attempt = 1; ; attempt += 1) {
        try {
          rmdirSync(group)
          return
        } catch (error) {
          // The last of the processes that ended before may still be in it.
          if (attempt === REMOVE_ATTEMPTS) throw error
          await sleep(100)
        }
      }
    }
  } catch (error) {
    if (existsSync(group)) rmdirSync(group)
    const { code } = error as NodeJS.ErrnoException
    throw new UsageError(`--cores needs root and the cpu controller of cgroups on Linux: ${code}; run without it`)
  }
}
