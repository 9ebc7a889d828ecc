import { compare, listErrors } from './load/compare.ts'
import type { Server } from './load/connection.ts'
import { COST_NOTE, costTable, FLOOR, notCountedNote, summarizeCosts } from './load/cost.ts'
import { pairTable, toComparedLoad } from './load/pair.ts'
import type { Section, SectionResult } from './report.ts'
import { checkSection, reserveSection } from './sections/allocation.ts'
import {
  createCheckWorkload,
  createFloorTarget,
  createHttpTarget,
  createReserveWorkload,
  reserveOverHttp,
  type Site,
  type Workload,
} from './workloads.ts'

const NAMES = ['this', 'peer'] as const
const USERS = [1, 16, 64]

const NOTE = [
  'The same load on the API of this checkout and on another server, interleaved round by round; every other round runs in reverse',
  'order. Ratios are this / peer, round by round: the geometric mean with its 95 % confidence interval. Above 1 for ops/s and',
  'below 1 for latencies, this API is faster.',
].join('\n')

/** Names that an earlier run has probably not used: those of a peer stay in its database. */
const toFirstName = (nowMs: number): number => (Math.floor(nowMs / 1_000) % 4_000) * 1_000_000

const toSection = <Item>(
  { name, title }: Pick<Section, 'name' | 'title'>,
  createWorkload: (server: Server, site: Site | undefined, from: number) => Promise<Workload<Item>> | Workload<Item>,
): Section => ({
  name,
  title,
  needs: 'postgres',
  async run({ environment, options }): Promise<SectionResult> {
    const { peer, processes } = options
    if (!peer) throw new Error('a peer is missing')
    await using stack = new AsyncDisposableStack()
    const url = await environment.createDatabase()
    const { port, pid } = stack.use(await environment.startSharedApi(url, processes))
    const own = { host: '127.0.0.1', port }
    const targets = [
      createHttpTarget(NAMES[0], own, await createWorkload(own, undefined, 0), pid === undefined ? {} : { pid }),
      createHttpTarget(NAMES[1], peer, await createWorkload(peer, peer, toFirstName(Date.now()))),
      createFloorTarget(stack.use(await environment.startHonoFloor())),
    ]
    const names = [...NAMES, FLOOR]
    const comparisons = await compare(targets, { name, users: USERS, timing: options })
    const costs = summarizeCosts(names, comparisons)
    return {
      notes: [NOTE, COST_NOTE, ...notCountedNote(costs)],
      tables: [pairTable(name, NAMES, comparisons), costTable(costs)],
      figures: { loads: comparisons.map(toComparedLoad), costs },
      errors: comparisons.flatMap(comparison => listErrors(names, `${comparison.users} virtual users`, comparison)),
    }
  },
})

export const peerSections: readonly Section[] = [
  toSection(reserveSection, (_, site, from) => createReserveWorkload(from, site)),
  toSection(checkSection, (server, site, from) => createCheckWorkload(reserveOverHttp(server, site), from, site)),
]

export const peerNames = peerSections.map(({ name }) => name)
