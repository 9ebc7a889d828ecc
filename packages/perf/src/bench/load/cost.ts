import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { type CpuTime, readCpuTime } from '@pool/test-kit/processes.ts'
import { type Spread, toRatios, toSpread } from '../../shared/stats.ts'
import { left, right, spreadText, type Table, toFigure } from '../../shared/table.ts'
import { type Goal, toGoal } from '../report.ts'

/** What an operation costs the process that serves it, on average over a run. */
export interface Cost {
  readonly userUs: number
  readonly systemUs: number
  readonly totalUs: number
  /** CPU time / time of the run: at 1 the process uses a whole core, and its rate cannot rise. */
  readonly busy: number
  /** Null: the kernel does not count them. */
  readonly instructions: number | null
}

/** Null if /proc did not show the process both times, or if nothing was completed. */
export const toCost = (
  before: CpuTime | null,
  after: CpuTime | null,
  { operations, elapsedMs }: { readonly operations: number; readonly elapsedMs: number },
): Omit<Cost, 'instructions'> | null => {
  if (!before || !after || operations === 0) return null
  const usedUs = after.totalUs - before.totalUs
  const userTicks = after.userTicks - before.userTicks
  const systemTicks = after.systemTicks - before.systemTicks
  const totalUs = usedUs / operations
  // A run without a tick used almost nothing.
  const userUs = totalUs * (userTicks + systemTicks > 0 ? userTicks / (userTicks + systemTicks) : 1)
  return { userUs, systemUs: totalUs - userUs, totalUs, busy: usedUs / 1_000 / elapsedMs }
}

/** The values of `perf stat -x ';'` by event, without the modifier that perf may add. An event that is not counted is absent. */
export const parsePerfStat = (text: string): ReadonlyMap<string, number> =>
  new Map(
    text.split('\n').flatMap((line): [string, number][] => {
      const [value = '', , event = ''] = line.split(';')
      return /^\d+(?:\.\d+)?$/.test(value) ? [[event.replace(/:.*/, ''), Number(value)]] : []
    }),
  )

const spawnPerf = (args: readonly string[]) => {
  const child = spawn('perf', ['stat', '-x', ';', ...args], { stdio: ['ignore', 'ignore', 'pipe'] })
  let text = ''
  child.stderr.on('data', chunk => {
    text += chunk
  })
  const ended = once(child, 'close').then(
    () => parsePerfStat(text),
    // It is not installed.
    () => new Map<string, number>(),
  )
  return { ended, interrupt: () => child.kill('SIGINT') }
}

let countsInstructions: Promise<boolean> | undefined

/** Whether `perf` exists and the kernel counts instructions: a virtual machine often has no such counter. */
export const canCountInstructions = (): Promise<boolean> => {
  countsInstructions ??= spawnPerf(['-e', 'instructions', process.execPath, '--version']).ended.then(events =>
    events.has('instructions'),
  )
  return countsInstructions
}

/** Counts events of a process until the returned function is called, beside the milliseconds of CPU time meanwhile. */
export const countEvents = (pid: number, event: string) => {
  const perf = spawnPerf(['-e', `${event},task-clock`, '-p', String(pid)])
  return async (): Promise<{ readonly events: number; readonly cpuMs: number } | null> => {
    perf.interrupt()
    const counted = await perf.ended
    const [events, cpuMs] = [counted.get(event), counted.get('task-clock')]
    return events === undefined || !cpuMs ? null : { events, cpuMs }
  }
}

/** Starts to measure a process. The returned function ends it. Without a process, it returns null. */
export const startCost = async (pid: number | undefined) => {
  const stopCounting = pid !== undefined && (await canCountInstructions()) ? countEvents(pid, 'instructions') : null
  const before = pid === undefined ? null : readCpuTime(pid)
  const started = performance.now()
  return async (operations: number): Promise<Cost | null> => {
    const elapsedMs = performance.now() - started
    const cost = toCost(before, pid === undefined ? null : readCpuTime(pid), { operations, elapsedMs })
    const counted = await stopCounting?.()
    // perf attaches a moment after the start, so only the rate is known.
    return cost && { ...cost, instructions: counted ? (counted.events / (counted.cpuMs * 1_000)) * cost.totalUs : null }
  }
}

export const FLOOR = 'Hono floor'

export const COST_NOTE = [
  'CPU: the time of the process alone (of workerd, for a lease), all of its threads, per response. Busy: the share of one core that',
  `it used. ${FLOOR}: a three-line Hono app on the same @hono/node-server, which answers a GET in another process. Ratios to it`,
  'are calculated per round.',
].join('\n')

/** The costs of each round of each target. */
interface Costed {
  readonly users: number
  readonly runs: readonly (readonly { readonly cost: Cost | null }[])[]
}

const costsOf = (runs: Costed['runs'][number]): readonly Cost[] => runs.flatMap(({ cost }) => cost ?? [])
const spreadOf = (costs: readonly Cost[], toValue: (cost: Cost) => number): Spread => toSpread(costs.map(toValue))

/** CPU per operation of a target / that of the floor, round by round; null if one of them is unknown. */
export const toFloorRatio = (names: readonly string[], { runs }: Costed, target: number): Spread | null => {
  const floor = costsOf(runs[names.indexOf(FLOOR)] ?? [])
  const own = costsOf(runs[target] ?? [])
  if (own.length === 0 || own.length !== floor.length) return null
  const toTotals = (costs: readonly Cost[]) => costs.map(({ totalUs }) => totalUs)
  return toSpread(toRatios(toTotals(own), toTotals(floor)))
}

/** The costs of all targets that are processes, for each load. */
export const summarizeCosts = (names: readonly string[], comparisons: readonly Costed[]) =>
  comparisons.flatMap(comparison =>
    comparison.runs.flatMap((runs, index) => {
      const costs = costsOf(runs)
      if (costs.length === 0) return []
      const counted = costs.flatMap(({ instructions }) => instructions ?? [])
      return [
        {
          users: comparison.users,
          name: names[index] ?? '',
          totalUs: spreadOf(costs, ({ totalUs }) => totalUs),
          userUs: spreadOf(costs, ({ userUs }) => userUs),
          systemUs: spreadOf(costs, ({ systemUs }) => systemUs),
          busy: spreadOf(costs, ({ busy }) => busy),
          instructions: counted.length === costs.length ? toSpread(counted) : null,
          toFloor: names[index] === FLOOR ? null : toFloorRatio(names, comparison, index),
        },
      ]
    }),
  )

export type CostFigures = ReturnType<typeof summarizeCosts>[number]

/** A note if the kernel of this machine counts no instructions. */
export const notCountedNote = (figures: readonly CostFigures[]): readonly string[] =>
  figures.some(({ instructions }) => instructions !== null)
    ? []
    : [
        'Instructions: not counted. This needs `perf` and a kernel with this counter, which virtual machines often lack.',
      ]

/** `unit` completes the title: per request, per row. */
export const costTable = (figures: readonly CostFigures[], unit = 'request'): Table => {
  const isCounted = figures.some(({ instructions }) => instructions !== null)
  return {
    columns: [
      right('virtual users'),
      left('process'),
      ...[`CPU µs per ${unit}`, 'user', 'system', 'busy', `/ ${FLOOR}`].map(right),
      ...(isCounted ? [right('instructions')] : []),
    ],
    rows: figures.map(({ users, name, totalUs, userUs, systemUs, busy, toFloor, instructions }) => [
      String(users),
      name,
      spreadText(totalUs),
      toFigure(userUs.median),
      toFigure(systemUs.median),
      toFigure(busy.median),
      toFloor ? spreadText(toFloor) : '',
      ...(isCounted ? [instructions ? toFigure(instructions.median) : ''] : []),
    ]),
  }
}

/** With as many virtual users as a goal is about. */
export const toCostGoal = (
  names: readonly string[],
  comparisons: readonly Costed[],
  users: number,
  atMost: number,
): Goal => {
  const comparison = comparisons.find(candidate => candidate.users === users)
  const measured = comparison ? toFloorRatio(names, comparison, 0) : null
  return toGoal(`${users} virtual users`, `CPU per request, ${names[0]} / ${FLOOR},`, 'at most', atMost, measured)
}
