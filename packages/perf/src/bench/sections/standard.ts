import { type Comparison, compare, type Run } from '../load/compare.ts'
import { comparisonResult } from '../load/comparison-result.ts'
import type { Subject } from '../load/subject.ts'
import { type Target, targetOf, targetTable } from '../report/target.ts'
import type { SectionContext, SectionResult } from '../section.ts'
import { ratiosOf } from '../statistics.ts'

export const POOL = 'pool.test'

/** One caller, a busy replica, and more than the pool of connections to the database can carry at a time. */
const CONNECTIONS = [1, 16, 64]

/** The first is set in relation to the others. */
export const SUBJECTS = { api: 'API', sql: 'SQL alone', empty: 'empty route' } as const

/** What the targets are about. */
const MANY = 64
/** How many times its median the 99th percentile of a latency may be. */
const TAIL = 5

export const METHOD = [
  'Closed loop: each connection asks again when it has its answer. Medians over the rounds (min–max); ratios are taken',
  'round by round, the API to what stands in the line: ops/s below 1 and latencies above 1 are what it adds.',
  'SQL alone: the same statement by the same code through the driver, one request each, without HTTP, with as many',
  'callers and as large a pool; in the API, reserves and checks that come at once share a statement. Empty route: a',
  "process of its own that answers the same request with a constant, on the API's own adapter.",
].join('\n')

/**
 * The API with many connections: at least so much of what the bare statements do, and no request that waits for long
 * behind the others.
 */
export const targetsOf = (comparisons: readonly Comparison[], atLeast: number): readonly Target[] => {
  const runs = comparisons.find(({ connections }) => connections === MANY)?.runs ?? []
  const [api = [], sql = []] = runs
  const of = (rounds: readonly Run[], field: 'perSecond' | 'p50Ms' | 'p99Ms') => rounds.map(run => run[field])
  const where = `connections ${MANY}`
  return [
    targetOf(
      where,
      `ops/s, API / ${SUBJECTS.sql},`,
      'at least',
      atLeast,
      ratiosOf(of(api, 'perSecond'), of(sql, 'perSecond')),
    ),
    targetOf(where, 'p99 / p50 of the API', 'at most', TAIL, ratiosOf(of(api, 'p99Ms'), of(api, 'p50Ms'))),
  ]
}

/** A comparison at the standard loads. */
export const compareStandard = async (
  name: string,
  { options, say }: SectionContext,
  subjects: readonly Subject[],
): Promise<ReturnType<typeof comparisonResult> & { readonly comparisons: readonly Comparison[] }> => {
  const comparisons = await compare(subjects, {
    connections: CONNECTIONS,
    rounds: options.rounds,
    seconds: options.seconds,
    say: line => say(`${name}: ${line}`),
  })
  const names = subjects.map(subject => subject.name)
  return { ...comparisonResult(names, comparisons), comparisons }
}

/** The same, held to the targets: `atLeast` of what the bare statements do. */
export const compareWithTargets = async (
  name: string,
  context: SectionContext,
  subjects: readonly Subject[],
  atLeast: number,
): Promise<SectionResult> => {
  const { tables, figures, faults, comparisons } = await compareStandard(name, context, subjects)
  const targets = targetsOf(comparisons, atLeast)
  return {
    notes: [METHOD],
    tables: [...tables, targetTable('target', targets)],
    figures: { ...figures, targets },
    faults,
  }
}
