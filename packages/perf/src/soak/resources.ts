import { readdir } from 'node:fs/promises'
import { readMemory } from '@pool/test-kit/processes.ts'
import { toSpread } from '../shared/figures.ts'
import { countConnections } from './environment/database.ts'
import { POOL_SIZE, REPLICAS, type SoakEnvironment } from './environment/environment.ts'

export interface Sample {
  readonly at: number
  readonly value: number
}

export interface Bound {
  readonly max: number
  /** The last quarter's median may exceed the second quarter's by this share of it plus `extra`. */
  readonly growth: { readonly share: number; readonly extra: number }
}

/** One resource over the whole run. Each process that used it has samples of its own. */
export interface ResourceSeries {
  readonly title: string
  readonly unit: 'MB' | ''
  readonly bound: Bound
  readonly processes: Map<string, Sample[]>
}

export interface BoundCheck {
  readonly start: number
  readonly median: number
  readonly end: number
  readonly max: number
  readonly violations: readonly string[]
}

export interface ResourceUsage extends BoundCheck {
  readonly title: string
  readonly unit: string
  readonly bound: number
}

/**
 * Shorter series are not checked for growth: V8 lets its heap grow to a plateau for some minutes before a full collection.
 * The replica that the schedule does not kill, the witness and the sum of the connections have series of this length.
 */
export const MIN_GROWTH_CHECK_MS = 600_000

const toMedian = (samples: readonly Sample[]): number => toSpread(samples.map(({ value }) => value)).median

/** Whether a series stays below its maximum and stops growing after its first half. */
export const checkBound = (name: string, samples: readonly Sample[], { max: limit, growth }: Bound): BoundCheck => {
  const first = samples[0]?.at ?? 0
  const length = (samples.at(-1)?.at ?? 0) - first
  const quarter = (n: number) =>
    samples.filter(({ at }) => at >= first + (n * length) / 4 && at <= first + ((n + 1) * length) / 4)
  const { max } = toSpread(samples.map(({ value }) => value))
  const violations: string[] = []
  if (max > limit) violations.push(`${name} reached ${Math.round(max)}, above ${limit}`)
  const [early, late] = [toMedian(quarter(1)), toMedian(quarter(3))]
  if (length >= MIN_GROWTH_CHECK_MS && late > early * (1 + growth.share) + growth.extra)
    violations.push(`${name} grows: median ${Math.round(early)} in the second quarter, ${Math.round(late)} in the last`)
  return {
    start: samples[0]?.value ?? Number.NaN,
    median: toMedian(samples),
    end: samples.at(-1)?.value ?? Number.NaN,
    max,
    violations,
  }
}

/** Checks each process separately. The figures cover all processes. */
export const toResourceUsage = ({ title, unit, bound, processes }: ResourceSeries): ResourceUsage => {
  const all = [...processes.values()].flat().sort((a, b) => a.at - b.at)
  const { start, median, end, max } = checkBound(title, all, bound)
  const violations = [...processes].flatMap(
    ([id, samples]) => checkBound(`${title} (${id})`, samples, bound).violations,
  )
  return { title, unit, bound: bound.max, start, median, end, max, violations }
}

const SAMPLE_INTERVAL_MS = 1_000
/** Writes, reads, background work, requests that wait for locked rows, probes, counts, and the writer of the zone. */
const CONNECTIONS_PER_REPLICA = POOL_SIZE + Math.ceil(POOL_SIZE / 2) + 8 + 4 + 2 + 1 + 1
const MB = 1e6

/**
 * A Node process swings by about three times the young generation of its heap, which has three semi-spaces.
 * Connections of a killed or frozen process stay until the server notices.
 */
const bounds = {
  replicaMemory: { max: 400, growth: { share: 0.25, extra: 20 } },
  workerdMemory: { max: 500, growth: { share: 0.25, extra: 30 } },
  files: { max: 200, growth: { share: 0.5, extra: 20 } },
  connections: { max: 2 * REPLICAS * CONNECTIONS_PER_REPLICA, growth: { share: 0.5, extra: 6 } },
} satisfies Readonly<Record<string, Bound>>

const countFiles = (pid: number): Promise<number | undefined> =>
  readdir(`/proc/${pid}/fd`).then(
    ({ length }) => length,
    () => undefined,
  )

const readResidentMb = (pid: number): number | undefined => {
  const memory = readMemory(pid)
  return memory ? memory.residentBytes / MB : undefined
}

/** Samples every second from its construction until `stop`. Memory and open files are read from /proc, if it exists. */
export class ResourceSampler {
  readonly #environment: SoakEnvironment
  readonly #series = new Map<string, ResourceSeries>()
  readonly #timer: NodeJS.Timeout
  #sampling = Promise.resolve()
  #isCounting = false

  constructor(environment: SoakEnvironment) {
    this.#environment = environment
    this.#timer = setInterval(() => {
      this.#sampling = this.#sampling.then(() => this.#sampleProcesses()).catch(() => {})
      void this.#sampleConnections()
    }, SAMPLE_INTERVAL_MS)
  }

  get series(): ResourceSeries[] {
    return [...this.#series.values()]
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer)
    await this.#sampling
  }

  #add(title: string, process: string, unit: ResourceSeries['unit'], bound: Bound, value: number | undefined): void {
    if (value === undefined) return
    const series = this.#series.get(title) ?? { title, unit, bound, processes: new Map() }
    this.#series.set(title, series)
    const samples = series.processes.get(process) ?? []
    series.processes.set(process, samples)
    samples.push({ at: Date.now(), value })
  }

  async #sampleProcesses(): Promise<void> {
    const { replicas, witness } = this.#environment
    for (const { number, process } of replicas) {
      const pid = process.running?.pid
      if (pid === undefined) continue
      this.#add(`memory of replica ${number}`, String(pid), 'MB', bounds.replicaMemory, readResidentMb(pid))
      this.#add(`open files of replica ${number}`, String(pid), '', bounds.files, await countFiles(pid))
    }
    const workerd = witness.workerd()
    if (workerd === undefined) return
    this.#add('memory of workerd', String(workerd), 'MB', bounds.workerdMemory, readResidentMb(workerd))
  }

  async #sampleConnections(): Promise<void> {
    // A frozen database answers late: one query at a time.
    if (this.#isCounting) return
    this.#isCounting = true
    const counts = await countConnections(this.#environment.sql).catch(() => undefined)
    this.#isCounting = false
    if (!counts) return
    const total = [...counts]
      .filter(([name]) => name.startsWith('allocation-api'))
      .reduce((sum, [, count]) => sum + count, 0)
    this.#add('connections of all replicas', 'all', '', bounds.connections, total)
  }
}
