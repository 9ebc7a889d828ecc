import { type Table, tableText } from '../shared/figures.ts'
import type { Checkout, Environment } from './environment/environment.ts'
import { compare, comparisonTable, listErrors } from './load/compare.ts'
import { createHttpTarget, expectStatus, type Target, type Task } from './load/target.ts'
import type { BenchOptions, Peer } from './options.ts'

export interface SectionContext {
  readonly environment: Environment
  readonly options: BenchOptions
}

export interface SectionResult {
  readonly tables: readonly Table[]
  /** Unexpected responses and other errors. With any of them, the figures are invalid. */
  readonly errors: readonly string[]
}

/** A part of the benchmark that can be run alone. */
export interface Section {
  readonly name: string
  readonly title: string
  /** What the figures mean, and what they do not cover. */
  readonly note: string
  /** What `--against` can compare it with. A checkout can be compared with whatever a server can. */
  readonly comparesWith: 'nothing' | 'checkout' | 'server'
  readonly run: (context: SectionContext) => Promise<SectionResult>
}

/** One of the services that are compared: of this checkout, of another one, or a server that something else started. */
export interface Side extends SectionContext {
  readonly name: string
  readonly checkout: Checkout
  /** Null: the bench starts the service. */
  readonly peer: Peer | null
  /** Stops the services at the end of the load. */
  readonly stack: AsyncDisposableStack
}

export interface Load {
  readonly name: string
  readonly users: readonly number[]
  readonly createTarget: (side: Side) => Promise<Target>
  /** What else is under the same load. */
  readonly createBaselines: (side: Side) => Promise<readonly Target[]>
}

const startFloor = async ({ environment, stack }: Side): Promise<Target> => {
  const { port, pid } = stack.use(await environment.startHonoFloor())
  const task: Task = { request: { method: 'GET', path: '/' }, check: expectStatus(200) }
  return createHttpTarget('Hono floor', port, { next: () => task, toTask: () => task }, pid)
}

/** A section of loads. Each has services of its own, on new databases. */
export const loadSection = (
  section: Pick<Section, 'name' | 'title' | 'note' | 'comparesWith'> & {
    /** Of the target that is compared with its baselines. */
    readonly target: string
    readonly loads: (options: BenchOptions) => readonly Load[]
  },
): Section => ({
  ...section,
  async run(context) {
    const { options } = context
    const comparisons = []
    for (const { name, users, createTarget, createBaselines } of section.loads(options)) {
      await using stack = new AsyncDisposableStack()
      const own: Side = { ...context, name: section.target, checkout: null, peer: null, stack }
      const other: Side = { ...own, name: 'other', checkout: options.against, peer: options.peer }
      const isCompared = options.against !== null || options.peer !== null
      // At the same time: the witness copies a renewed lease to KV a while after its last copy, and a side whose leases
      // were acquired earlier would make its copies in other rounds than the other side does.
      const sides = isCompared ? [{ ...own, name: 'this' }, other] : [own]
      const targets = await Promise.all(sides.map(createTarget))
      targets.push(...(await createBaselines(own)), await startFloor(own))
      comparisons.push(...(await compare(name, users, targets, options)))
    }
    return { tables: [comparisonTable(comparisons)], errors: comparisons.flatMap(listErrors) }
  },
})

/** Markdown. `isNoted`: an earlier section has printed the note. */
export const sectionText = (
  { name, title, note }: Section,
  { tables, errors }: SectionResult,
  isNoted: boolean,
): string => {
  const invalid = errors.length > 0 ? [['**Invalid: unexpected responses or errors.**\n', ...errors].join('\n- ')] : []
  return [`## ${name}: ${title}`, ...(isNoted ? [] : [note]), ...tables.map(tableText), ...invalid].join('\n\n')
}
