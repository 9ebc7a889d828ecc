import type { LeaseWorker, Service } from '../environment/service.ts'
import { type Comparison, compare } from '../load/compare.ts'
import {
  allFaultsOf,
  type SubjectFigures,
  subjectCells,
  subjectColumns,
  summariseAll,
} from '../load/comparison-result.ts'
import type { Subject } from '../load/subject.ts'
import type { Table } from '../report/table.ts'
import { type Target, targetOf, targetTable } from '../report/target.ts'
import type { SectionContext } from '../section.ts'

/** The first is set in relation to the others. */
export const LEASE_SUBJECTS: Readonly<Record<LeaseWorker, string>> = {
  witness: 'witness',
  memory: 'memory',
  'kv-only': 'KV only',
}

export const LEASE_METHOD = [
  'Closed loop; medians over the rounds (min–max); ratios are taken round by round, the witness to what stands in the',
  'line: ops/s above 1 and latencies below 1 are where it is the better one. Each subject is a Node process with workerd',
  'below it, with the same options, token check and wire, and storage on the same disk.',
  'witness: as it is shipped, a log line for each request included, which this process reads. memory: answers from a Map,',
  'stores nothing, logs nothing. KV only: reads the record from KV, compares generation, holder and expiry, writes it back,',
  'logs a line. KV is the local one: without the latency, the delay and the one write a second to a key of the real one.',
  'First writes of slots, and the copies to KV that they cause, are over before anything is timed.',
].join('\n')

const CLIENTS = [1, 16]

export type Services = readonly (readonly [LeaseWorker, Service])[]

/** Those named, each with new storage. */
export const startWorkers = async (
  { stage }: SectionContext,
  workers: readonly LeaseWorker[],
): Promise<AsyncDisposable & { readonly services: Services }> => {
  await using started = new AsyncDisposableStack()
  const services: (readonly [LeaseWorker, Service])[] = []
  for (const worker of workers) services.push([worker, started.use(await stage.leaseWorker(worker))])
  const kept = started.move()
  return { services, [Symbol.asyncDispose]: () => kept.disposeAsync() }
}

/** What was measured under one load. */
export interface LeaseLoad {
  /** What stands left of the subjects' columns. */
  readonly where: Readonly<Record<string, string | number>>
  readonly subjects: readonly SubjectFigures[]
}

export const loadOf = (
  where: LeaseLoad['where'],
  names: readonly string[],
  runs: Comparison['runs'],
): { readonly load: LeaseLoad; readonly faults: readonly string[] } => {
  const said = Object.entries(where).map(([what, value]) => `${what} ${value}`)
  return { load: { where, subjects: summariseAll(names, runs) }, faults: allFaultsOf(names, said.join(', '), runs) }
}

/** A comparison of the subjects on so many slots, with one client and with sixteen. */
export const compareLeases = async (
  section: string,
  { options, say }: SectionContext,
  slots: number,
  subjects: readonly Subject[],
): Promise<{ readonly comparisons: readonly Comparison[]; readonly loads: LeaseLoad[]; readonly faults: string[] }> => {
  const comparisons = await compare(subjects, {
    connections: CLIENTS,
    rounds: options.rounds,
    seconds: options.seconds,
    say: line => say(`${section}: ${slots} slots, ${line}`),
  })
  const names = subjects.map(({ name }) => name)
  const results = comparisons.map(({ connections, runs }) => loadOf({ slots, clients: connections }, names, runs))
  return { comparisons, loads: results.map(({ load }) => load), faults: results.flatMap(({ faults }) => faults) }
}

export const loadTable = (loads: readonly LeaseLoad[]): Table => ({
  columns: [
    ...Object.entries(loads[0]?.where ?? {}).map(([title, value]) => ({
      title,
      align: typeof value === 'number' ? ('right' as const) : ('left' as const),
    })),
    ...subjectColumns(LEASE_SUBJECTS.witness),
  ],
  rows: loads.flatMap(({ where, subjects }) =>
    subjects.map((subject, index) => [
      ...Object.values(where).map(value => (index === 0 ? String(value) : '')),
      ...subjectCells(subject),
    ]),
  ),
})

/** What is aimed at, of the witness to the KV-only worker. */
export const leaseTarget = ({ where, subjects }: LeaseLoad, of: 'ops/s' | 'p99', target: number): Target => {
  const ratios = subjects.find(({ name }) => name === LEASE_SUBJECTS['kv-only'])?.ratio
  const place = Object.entries(where).map(([what, value]) => (typeof value === 'number' ? `${what} ${value}` : value))
  return of === 'ops/s'
    ? targetOf(place.join(', '), of, 'at least', target, ratios?.perSecond ?? null)
    : targetOf(place.join(', '), of, 'at most', target, ratios?.p99 ?? null)
}

export const leaseTargetTable = (targets: readonly Target[]): Table =>
  targetTable(`target: ${LEASE_SUBJECTS.witness} / ${LEASE_SUBJECTS['kv-only']}`, targets)
