import { labelOf } from '../labels.ts'
import { compare } from '../load/compare.ts'
import { comparisonResult, type SubjectFigures } from '../load/comparison-result.ts'
import { openHttpCrew, type Subject } from '../load/subject.ts'
import { spread } from '../report/numbers.ts'
import type { Table } from '../report/table.ts'
import type { Section } from '../section.ts'
import { ratiosOf, type Spread } from '../statistics.ts'
import { checkTask, commitTask, reserveTask } from './requests.ts'
import { createStock } from './reservations.ts'

const CONNECTIONS = [1, 2, 4, 8, 16, 32, 64, 128, 256]
/** Nine loads: with more rounds of each this would be the longest section. */
const MOST_ROUNDS = 3
/** More than the API commits in a second here; a run that uses it up ends early, and its rate is over that time. */
const STOCK_PER_SECOND = 3_000
const CHECKED = 10_000

const NOTES = [
  'The API alone, one verb at a time. Closed loop: so many connections, each of which asks again when it has its answer.',
  'Offered at a rate of its own (an open loop), the load would be a share of a capacity found a minute earlier, and here',
  'that changes too much to stay the same share. So beyond the load at which ops/s no longer rise, a latency is the time',
  'in the queue of the others: connections / ops/s. Half of the names checked are taken.',
].join('\n')

export const loadSection: Section = {
  name: 'load',
  title: 'latency of check, reserve and commit against load',
  on: 'postgres',
  async run({ stage, options, say }) {
    await using database = await stage.database()
    await using api = await stage.api(database)
    const toCheck = createStock(database.sql, 'checked')
    const toCommit = createStock(database.sql)
    await toCheck.fill(CHECKED / 2)
    const taken = Array.from({ length: CHECKED / 2 }, () => toCheck.take()?.subdomain ?? '')
    let [checked, reserved] = [0, 0]
    const nextCheck = () => {
      const turn = checked++ % CHECKED
      const name = taken[turn >> 1] ?? ''
      return turn % 2 === 0 ? checkTask(name, 'reserved') : checkTask(`free-${name}`)
    }
    const verb = (name: string, next: Parameters<typeof openHttpCrew>[2]): Subject => ({
      name,
      open: callers => openHttpCrew(api.port, callers, next),
    })
    const subjects: Subject[] = [
      verb('check', nextCheck),
      verb('reserve', () => reserveTask(`new-${labelOf(reserved++)}`)),
      {
        ...verb('commit', () => {
          const reservation = toCommit.take()
          return reservation && commitTask(reservation)
        }),
        prepare: () => toCommit.fill(Math.ceil(options.seconds * STOCK_PER_SECOND)),
      },
    ]
    const names = subjects.map(({ name }) => name)
    const rounds = Math.min(options.rounds, MOST_ROUNDS)
    const comparisons = await compare(subjects, {
      connections: CONNECTIONS,
      rounds,
      seconds: options.seconds,
      say: line => say(`load: ${line}`),
    })
    const { loads, faults } = comparisonResult(names, comparisons)

    interface Line extends Omit<SubjectFigures, 'ratio' | 'perOperation'> {
      readonly connections: number
      readonly tail: Spread
    }
    const lines = loads.flatMap(({ connections, subjects: verbs }, load) =>
      verbs.map(({ ratio: _, perOperation: __, ...figures }, index): Line => {
        const runs = comparisons[load]?.runs[index] ?? []
        const tail = ratiosOf(
          runs.map(run => run.p99Ms),
          runs.map(run => run.p50Ms),
        )
        return { connections, ...figures, tail }
      }),
    )
    const table: Table = {
      columns: [
        { title: 'verb', align: 'left' },
        { title: 'connections', align: 'right' },
        { title: 'ops/s', align: 'right' },
        { title: 'p50 ms', align: 'right' },
        { title: 'p99 ms', align: 'right' },
        { title: 'p99 / p50', align: 'right' },
      ],
      rows: names.flatMap(name =>
        lines
          .filter(line => line.name === name)
          .map((line, index) => [
            index === 0 ? name : '',
            String(line.connections),
            ...[line.perSecond, line.p50Ms, line.p99Ms, line.tail].map(spread),
          ]),
      ),
    }
    return {
      notes: [`${NOTES}\n${rounds} rounds.`],
      tables: [table],
      figures: { rounds, verbs: lines },
      faults,
    }
  },
}
