import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

// A memory limit as a container has it: cgroup v1 or v2 of this machine.

const ROOT = '/sys/fs/cgroup'
const isV2 = existsSync(join(ROOT, 'cgroup.controllers'))
const parent = isV2 ? ROOT : join(ROOT, 'memory')
const limitFile = isV2 ? 'memory.max' : 'memory.limit_in_bytes'

let count = 0
const create = (name: string): string => {
  count += 1
  const folder = join(parent, `${name}-${process.pid}-${count}`)
  mkdirSync(folder)
  return folder
}

const findObstacle = (): string | undefined => {
  try {
    const folder = create('pool-probe')
    const hasLimit = existsSync(join(folder, limitFile))
    rmdirSync(folder)
    return hasLimit ? undefined : 'needs the memory controller of cgroups: skipped'
  } catch (error) {
    return `needs root and cgroups (${error instanceof Error && 'code' in error ? error.code : error}): skipped`
  }
}

/** Why no test can limit memory here; undefined: it can. */
export const missingMemoryCgroup = findObstacle()

const toOwnFolder = (): string => {
  const line = readFileSync('/proc/self/cgroup', 'utf8')
    .split('\n')
    .find(each => (isV2 ? each.startsWith('0::') : each.includes(':memory:')))
  return join(parent, line?.split(':')[2] ?? '/')
}

const enter = (folder: string): void => writeFileSync(join(folder, 'cgroup.procs'), String(process.pid))

export interface MemoryCgroup extends Disposable {
  /** Runs `spawn`, whose processes get the limit from their first byte on. It must spawn them before it returns. */
  run<Result>(spawn: () => Result): Result
  /** How many processes the kernel has killed for memory. */
  readonly kills: number
  /** The highest size so far. */
  readonly peakMib: number
}

/** Processes in it are killed when they have more memory than `mebibytes`. Dispose it after they have exited. */
export const createMemoryCgroup = (name: string, mebibytes: number): MemoryCgroup => {
  const folder = create(name)
  writeFileSync(join(folder, limitFile), String(mebibytes * 1_048_576))
  return {
    run(spawn) {
      const own = toOwnFolder()
      enter(folder)
      try {
        return spawn()
      } finally {
        enter(existsSync(own) ? own : dirname(folder))
      }
    },
    get kills() {
      const text = readFileSync(join(folder, isV2 ? 'memory.events' : 'memory.oom_control'), 'utf8')
      return Number(/^oom_kill (\d+)$/m.exec(text)?.[1] ?? 0)
    },
    get peakMib() {
      const bytes = readFileSync(join(folder, isV2 ? 'memory.peak' : 'memory.max_usage_in_bytes'), 'utf8')
      return Math.round(Number(bytes) / 1_048_576)
    },
    [Symbol.dispose]: () => rmdirSync(folder),
  }
}
