import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { UsageError } from '../shared/cli.ts'
import type { Checkout, Environment } from './environment/environment.ts'
import { compare, listErrors } from './load/compare.ts'
import { COST_NOTE, costTable, FLOOR, notCountedNote, summarizeCosts } from './load/cost.ts'
import { pairTable, toComparedLoad } from './load/pair.ts'
import type { Target } from './load/target.ts'
import type { BenchOptions } from './options.ts'
import type { Section, SectionResult } from './report.ts'
import { checkSection, commitSection, notFoundSection, releaseSection, reserveSection } from './sections/allocation.ts'
import { cloneStartSection } from './sections/clone-start.ts'
import { acquireAll, createGetTarget, createRenewTarget, LeaseClient, waitForCopies } from './sections/lease-client.ts'
import { leaseWaitAgainst } from './sections/lease-wait.ts'
import { findWorkerdOf, leaseGetSection } from './sections/leases.ts'
import {
  commitOverHttp,
  createCheckWorkload,
  createCommitWorkload,
  createFloorTarget,
  createHttpTarget,
  createNotFoundWorkload,
  createReleaseWorkload,
  createReserveWorkload,
  reserveOverHttp,
  type Workload,
} from './workloads.ts'

/** A section that can run against another checkout: it uses nothing of a service but its HTTP interface. */
interface ComparableSection extends Pick<Section, 'name' | 'title' | 'needs'> {
  readonly users: readonly number[]
  readonly createTarget: (side: Side) => Promise<Target>
}

interface Side {
  readonly name: string
  readonly checkout: Checkout
  readonly environment: Environment
  readonly options: BenchOptions
  /** Stops the services at the end of the section. */
  readonly stack: AsyncDisposableStack
}

const NAMES = ['this', 'other'] as const
const API_USERS = [16, 64]
const LEASE_USERS = [1, 16]

/** With a database of its own, whose schema the service applies itself. */
const startApi = async ({ environment, checkout, stack }: Side) =>
  stack.use(await environment.startApi(await environment.createDatabase(), {}, checkout))

const acquireLeases = async ({ environment, checkout, options, stack }: Side) => {
  const service = stack.use(await environment.startLeaseWorker('witness', checkout))
  const { port } = service
  const client = new LeaseClient('against', options.slots)
  await acquireAll(port, client)
  await waitForCopies(port, client)
  return { port, client, process: findWorkerdOf(service) }
}

const apiSection = <Item>(
  { name, title }: Pick<Section, 'name' | 'title'>,
  createWorkload: (port: number, options: BenchOptions) => Workload<Item> | Promise<Workload<Item>>,
): ComparableSection => ({
  name,
  title,
  needs: 'postgres',
  users: API_USERS,
  async createTarget(side) {
    const { port, pid } = await startApi(side)
    return createHttpTarget(side.name, port, await createWorkload(port, side.options), { pid })
  },
})

const leaseSection = (
  { name, title }: Pick<Section, 'name' | 'title'>,
  createTarget: typeof createGetTarget,
): ComparableSection => ({
  name,
  title,
  needs: 'workerd',
  users: LEASE_USERS,
  async createTarget(side) {
    const { port, client, process } = await acquireLeases(side)
    return { ...createTarget(side.name, port, client), ...process }
  },
})

const sections: readonly ComparableSection[] = [
  apiSection(reserveSection, () => createReserveWorkload()),
  apiSection(notFoundSection, () => createNotFoundWorkload()),
  apiSection(checkSection, port => createCheckWorkload(reserveOverHttp(port))),
  apiSection(commitSection, (port, { seconds }) => createCommitWorkload(reserveOverHttp(port), seconds)),
  apiSection(releaseSection, (port, { seconds }) =>
    createReleaseWorkload(reserveOverHttp(port), commitOverHttp(port), seconds),
  ),
  leaseSection(leaseGetSection, createGetTarget),
  leaseSection({ name: 'lease-put', title: 'PUT that renews a lease' }, createRenewTarget),
]

const NOTE = [
  'The same load on the services of this checkout and of another one, interleaved round by round; every other round runs',
  'in reverse order. Each has a database or a storage of its own. Ratios are this / other, round by round: the geometric',
  'mean with its 95 % confidence interval, over the rounds in which both completed operations. Below 1 for ops/s and',
  'above 1 for latencies, this checkout is slower.',
].join('\n')

const ENTRIES = ['apps/allocation-api/src/main.ts', 'apps/lease-witness/local/main.ts']

/** Throws UsageError unless the folder has the entry points of this project. */
export const checkCheckout = async (folder: string): Promise<void> => {
  for (const entry of ENTRIES) {
    const found = await stat(join(folder, entry)).catch(() => undefined)
    if (!found?.isFile())
      throw new UsageError(`--against ${folder}: ${entry} does not exist; name a checkout of this project`)
  }
}

const toSection = ({ name, title, needs, users, createTarget }: ComparableSection): Section => ({
  name,
  title,
  needs,
  async run({ environment, options }): Promise<SectionResult> {
    const { against } = options
    await using stack = new AsyncDisposableStack()
    // At the same time: the witness copies a renewed lease to KV a while after its last copy, and a side whose leases
    // were acquired earlier would make its copies in other rounds than the other side does.
    const targets = await Promise.all([
      createTarget({ name: 'this', checkout: null, environment, options, stack }),
      createTarget({ name: 'other', checkout: against, environment, options, stack }),
    ])
    const floor = createFloorTarget(stack.use(await environment.startHonoFloor()))
    const comparisons = await compare([...targets, floor], { name, users, timing: options })
    const loads = comparisons.map(toComparedLoad)
    const names = [...NAMES, FLOOR]
    const costs = summarizeCosts(names, comparisons)
    return {
      notes: [NOTE, COST_NOTE, ...notCountedNote(costs)],
      tables: [pairTable(name, NAMES, comparisons), costTable(costs)],
      figures: { loads, costs },
      errors: comparisons.flatMap(comparison => listErrors(names, `${comparison.users} virtual users`, comparison)),
    }
  },
})

export const comparableSections: readonly Section[] = [...sections.map(toSection), leaseWaitAgainst, cloneStartSection]

export const comparableNames = comparableSections.map(({ name }) => name)
