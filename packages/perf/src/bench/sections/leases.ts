import { findWorkerd } from '@pool/test-kit/processes.ts'
import type { Table } from '../../shared/table.ts'
import type { LeaseWorker, Service } from '../environment/environment.ts'
import { type Load, type LoadResults, loadTable, measureLoads } from '../load/compare.ts'
import { COST_NOTE, costTable, FLOOR, notCountedNote, summarizeCosts } from '../load/cost.ts'
import type { Target } from '../load/target.ts'
import { type Goal, goalTable, type Section, type SectionContext, toGoal } from '../report.ts'
import { createFloorTarget } from '../workloads.ts'
import { summarizeGrants } from './grants.ts'
import {
  acquireAll,
  createContendedTarget,
  createGetTarget,
  createRenewTarget,
  LeaseClient,
  waitForCopies,
} from './lease-client.ts'

/** The first is the numerator of every ratio. */
const TARGETS = [
  ['witness', 'witness'],
  ['memory', 'memory'],
  ['kv-only', 'KV only'],
] as const satisfies readonly (readonly [LeaseWorker, string])[]
const NAMES = TARGETS.map(([, name]) => name)
const ALL_NAMES = [...NAMES, FLOOR]
const VIRTUAL_USERS = [1, 16]

const METHOD = [
  'Closed loop; medians over the rounds (min–max); ratios round by round, witness / this row: above 1 for ops/s and below',
  '1 for latencies the witness is better. Each target is a Node process with workerd, with the same options, token check',
  'and wire format, and storage on the same disk. witness: as shipped, with a log line per request, which this process',
  'reads. memory: answers from a Map, stores nothing, logs nothing. KV only: reads the record from KV, compares generation,',
  'holder and expiry, writes it back, logs a line. KV is local: without the latency, the delay and the limit of one write',
  'per second and key of the real one. The first writes of the slots and their copies to KV end before anything is timed.',
].join('\n')

const PUT_NOTE = [
  'On one slot every client writes with the generation in its last response, all with the same holder: a 200 renews, a 412',
  'is a client that lost the race and receives the new generation. Both are counted as responses. That favours KV only,',
  'since its errors are not counted against it: see how often it granted a generation that was granted before. On many',
  'slots each client renews its own in order: every response is a 200. Renewals are copied to KV every ten minutes,',
  'which is less often than a section lasts.',
].join('\n')

interface Worker {
  readonly worker: LeaseWorker
  readonly name: string
  readonly service: Service
  /** Of workerd, which does the work; the process that started it only copies its log. */
  readonly process: { readonly pid?: number }
}

type Workers = readonly Worker[]

/** For the target of a lease worker. Empty if it cannot be found. */
export const findWorkerdOf = ({ pid }: Service): { readonly pid?: number } => {
  const workerd = findWorkerd(pid)
  return workerd === undefined ? {} : { pid: workerd }
}

const startFloor = async ({ environment }: SectionContext, stack: AsyncDisposableStack): Promise<Target> =>
  createFloorTarget(stack.use(await environment.startHonoFloor()))

/** In the order of the loads. */
const summarize = (measured: readonly LoadResults[], slots: readonly number[]) =>
  measured.map(({ comparisons }, index) => ({
    slots: slots[index],
    costs: summarizeCosts(ALL_NAMES, comparisons),
  }))

const costTables = (summaries: ReturnType<typeof summarize>): Table[] =>
  summaries.map(({ slots, costs }) => costTable(costs, `request, ${slots} slots`))

const costNotes = (summaries: ReturnType<typeof summarize>): readonly string[] => [
  COST_NOTE,
  ...notCountedNote(summaries.flatMap(({ costs }) => costs)),
]

const startWorkers = async ({ environment }: SectionContext, stack: AsyncDisposableStack): Promise<Workers> => {
  const workers = []
  for (const [worker, name] of TARGETS) {
    const service = stack.use(await environment.startLeaseWorker(worker))
    workers.push({ worker, name, service, process: findWorkerdOf(service) })
  }
  return workers
}

const acquiredClient = async ({ worker, service }: Workers[number], name: string, slots: number) => {
  const client = new LeaseClient(name, slots)
  await acquireAll(service.port, client)
  if (worker === 'witness') await waitForCopies(service.port, client)
  return client
}

const measure = (
  section: string,
  { options }: SectionContext,
  slots: number,
  targets: readonly Target[],
): Promise<LoadResults> =>
  measureLoads(targets, {
    name: `${section}, ${slots} slots`,
    slots,
    users: VIRTUAL_USERS,
    timing: options,
  })

/** The throughput of the witness relative to the KV-only worker. */
export const toLeaseGoal = ({ slots, users, targets }: Load, atLeast: number): Goal => {
  const ratio = targets.find(({ name }) => name === 'KV only')?.ratio?.perSecond ?? null
  return toGoal(`${slots} slots, ${users} virtual users`, 'ops/s', 'at least', atLeast, ratio)
}

const leaseGoalTable = (goals: readonly Goal[]): Table => goalTable('goal: witness / KV only', goals)

export const leaseGetSection: Section = {
  name: 'lease-get',
  title: 'GET of a lease',
  needs: 'workerd',
  async run(context) {
    await using stack = new AsyncDisposableStack()
    const workers = await startWorkers(context, stack)
    const floor = await startFloor(context, stack)
    const measured: LoadResults[] = []
    const goals: Goal[] = []
    for (const [slots, atLeast] of [
      [1, 1.7],
      [context.options.slots, 1.5],
    ] as const) {
      const targets: Target[] = []
      for (const worker of workers) {
        const client = await acquiredClient(worker, `get-of-${slots}`, slots)
        targets.push({ ...createGetTarget(worker.name, worker.service.port, client), ...worker.process })
      }
      targets.push(floor)
      const result = await measure('lease-get', context, slots, targets)
      measured.push(result)
      goals.push(...result.loads.map(load => toLeaseGoal(load, atLeast)))
    }
    const loads = measured.flatMap(result => result.loads)
    const costs = summarize(measured, [1, context.options.slots])
    return {
      notes: [METHOD, ...costNotes(costs)],
      tables: [loadTable(loads), ...costTables(costs), leaseGoalTable(goals)],
      figures: { loads, costs, goals },
      errors: measured.flatMap(({ errors }) => errors),
    }
  },
}

export const leasePutSection: Section = {
  name: 'lease-put',
  title: 'PUT of a lease by clients that know its generation',
  needs: 'workerd',
  async run(context) {
    await using stack = new AsyncDisposableStack()
    const workers = await startWorkers(context, stack)
    const floor = await startFloor(context, stack)
    const contended: Target[] = []
    for (const worker of workers) {
      await acquiredClient(worker, 'put-one', 1)
      const createClient = () => new LeaseClient('put-one', 1)
      // The KV-only worker does this by design; of the witness it would break its only promise.
      const mayGrantTwice = worker.worker === 'kv-only'
      const target = createContendedTarget(worker.name, worker.service.port, createClient, { mayGrantTwice })
      contended.push({ ...target, ...worker.process })
    }
    const one = await measure('lease-put', context, 1, [...contended, floor])
    const { slots } = context.options
    const renewing: Target[] = []
    for (const worker of workers) {
      const client = await acquiredClient(worker, 'put-many', slots)
      renewing.push({ ...createRenewTarget(worker.name, worker.service.port, client), ...worker.process })
    }
    const many = await measure('lease-put', context, slots, [...renewing, floor])
    const goals = [
      ...one.loads.map(load => toLeaseGoal(load, load.users === 1 ? 2.5 : 3)),
      ...many.loads.map(load => toLeaseGoal(load, 1.5)),
    ]
    const loads = [...one.loads, ...many.loads]
    const withoutFloor = one.comparisons.map(({ users, runs }) => ({ users, runs: runs.slice(0, NAMES.length) }))
    const grants = summarizeGrants(NAMES, withoutFloor)
    const costs = summarize([one, many], [1, slots])
    return {
      notes: [METHOD, PUT_NOTE, ...costNotes(costs)],
      tables: [loadTable(loads), ...costTables(costs), grants.table, leaseGoalTable(goals)],
      figures: { loads, costs, oneSlot: grants.figures, goals },
      errors: [...one.errors, ...many.errors],
    }
  },
}
