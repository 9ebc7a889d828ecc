import { readdir } from 'node:fs/promises'
import { readMemory } from '../../shared/processes.ts'
import type { Bound, Sample } from '../checks/resource-leaks.ts'
import { POOL_SIZE, REPLICAS, type SoakEnvironment } from '../environment/stage.ts'
import { countConnections } from './database.ts'

const EVERY_MS = 1_000
const MB = 1e6

/** One thing that is measured over the whole run; of a process that was started again, each life has a series. */
export interface Series {
  readonly title: string
  readonly unit: 'MB' | ''
  readonly bound: Bound
  readonly lives: Map<string, Sample[]>
}

/**
 * A Node process of this size settles below 200 MB; three times its heap's young generation is its ordinary swing. Each replica has its
 * pool, a probe, and one connection for each of the zone's writer and the claims that wait; those which a dead or frozen
 * process has left stay until the server notices.
 */
const bounds = {
  replicaMemory: { most: 400, growth: { share: 0.25, extra: 20 } },
  workerdMemory: { most: 500, growth: { share: 0.25, extra: 30 } },
  files: { most: 200, growth: { share: 0.5, extra: 20 } },
  connections: { most: 3 * REPLICAS * (POOL_SIZE + 1), growth: { share: 0.5, extra: 6 } },
} satisfies Readonly<Record<string, Bound>>

export interface Sampler {
  readonly series: readonly Series[]
  readonly stop: () => Promise<void>
}

const countFiles = (pid: number): Promise<number | undefined> =>
  readdir(`/proc/${pid}/fd`).then(
    ({ length }) => length,
    () => undefined,
  )

/** Looks every second, for as long as it is not stopped. Memory and files are read from /proc, where there is one. */
export const startSampler = ({ replicas, witness, sql }: SoakEnvironment): Sampler => {
  const series = new Map<string, Series>()
  const add = (title: string, life: string, unit: Series['unit'], bound: Bound, value: number | undefined) => {
    if (value === undefined) return
    const one = series.get(title) ?? { title, unit, bound, lives: new Map() }
    series.set(title, one)
    const samples = one.lives.get(life) ?? []
    one.lives.set(life, samples)
    samples.push({ at: Date.now(), value })
  }
  const memoryOf = async (pid: number) => {
    const memory = await readMemory(pid)
    return memory ? memory.residentBytes / MB : undefined
  }
  const look = async () => {
    for (const { number, program } of replicas) {
      const pid = program.running?.pid
      if (pid === undefined) continue
      add(`memory of replica ${number}`, String(pid), 'MB', bounds.replicaMemory, await memoryOf(pid))
      add(`files and sockets of replica ${number}`, String(pid), '', bounds.files, await countFiles(pid))
    }
    const workerd = witness.workerd()
    if (workerd !== undefined)
      add('memory of workerd', String(workerd), 'MB', bounds.workerdMemory, await memoryOf(workerd))
  }
  let asking = false
  const ask = async () => {
    // A database that hangs answers late: one question at a time.
    if (asking) return
    asking = true
    const counts = await countConnections(sql).catch(() => undefined)
    asking = false
    if (!counts) return
    const ours = [...counts].filter(([name]) => name.startsWith('allocation-api'))
    const total = ours.reduce((sum, [, count]) => sum + count, 0)
    add('connections of all replicas', 'all', '', bounds.connections, total)
  }
  let looking = Promise.resolve()
  const timer = setInterval(() => {
    looking = looking.then(look).catch(() => {})
    void ask()
  }, EVERY_MS)
  return {
    get series() {
      return [...series.values()]
    },
    async stop() {
      clearInterval(timer)
      await looking
    },
  }
}
