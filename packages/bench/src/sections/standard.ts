import { type Comparison, compare } from '../load/compare.ts'
import { comparisonResult } from '../load/comparison-result.ts'
import type { Subject } from '../load/subject.ts'
import type { SectionContext } from '../section.ts'

export const POOL = 'pool.test'

/** One caller, a busy replica, and more than the pool of connections to the database can carry at a time. */
const CONNECTIONS = [1, 16, 64]

/** The first is set in relation to the others. */
export const SUBJECTS = { api: 'API', sql: 'SQL alone', empty: 'empty route' } as const

export const METHOD = [
  'Closed loop: each connection asks again when it has its answer. Medians over the rounds (min–max); ratios are taken',
  'round by round, the API to what stands in the line: ops/s below 1 and latencies above 1 are what it adds.',
  'SQL alone: the same statement by the same code through the driver, without HTTP, with as many callers and as large a',
  "pool. Empty route: a process of its own that answers the same request with a constant, on the API's own adapter.",
].join('\n')

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
