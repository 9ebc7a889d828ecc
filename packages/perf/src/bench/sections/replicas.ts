import type { Service } from '../environment/service.ts'
import { labelOf } from '../labels.ts'
import { compare } from '../load/compare.ts'
import { comparisonResult } from '../load/comparison-result.ts'
import { openConnection } from '../load/connection.ts'
import { faultless, type Subject, type Task } from '../load/subject.ts'
import { spread } from '../report/numbers.ts'
import type { Table } from '../report/table.ts'
import type { Section } from '../section.ts'
import { ratiosOf } from '../statistics.ts'
import { checkTask, commitTask, releaseTask, reserveTask } from './requests.ts'

const REPLICAS = [1, 2, 4]
const CONNECTIONS = [16, 64]
/** A turn of the mix is eight requests long. */
const LONGER = 2

const NOTES = [
  'So many API processes over one database, each with its own pool of connections to it; every process has as many of',
  'the connections of the load as every other. All are up all the time, and those that are not asked do next to nothing.',
  'Each connection goes through the life of a name, again and again: five checks, reserve, commit, release.',
  'Closed loop; ratios are taken round by round, to one process. What the cores of the machine can do is shared by all of',
  'this: load, processes and Postgres. With two cores, one process already keeps them busy, and the ratio says what a',
  'replica costs where there is nothing left to gain; it is no measure of how far replicas go on machines of their own.',
].join('\n')

/** The life of one name after the other; a step follows when the one before is answered. */
const createMix = (fresh: () => string): (() => Task) => {
  let [step, subdomain, reservationToken] = [0, fresh(), '']
  return () => {
    const now = step
    step = (step + 1) % 8
    if (now < 3) return checkTask(subdomain)
    if (now === 3) {
      return reserveTask(subdomain, token => {
        reservationToken = token
      })
    }
    if (now === 4) return checkTask(subdomain, 'reserved')
    if (now === 5) return commitTask({ subdomain, reservationToken })
    if (now === 6) return checkTask(subdomain, 'active')
    const done = subdomain
    subdomain = fresh()
    return releaseTask(done)
  }
}

const subjectOf = (count: number, services: readonly Service[], fresh: () => string): Subject => ({
  name: String(count),
  async open(callers) {
    const crew = await Promise.all(
      Array.from({ length: callers }, async (_, caller) => ({
        connection: await openConnection(services[caller % count]?.port ?? 0),
        next: createMix(fresh),
      })),
    )
    return {
      callers: crew.map(({ connection, next }) => () => {
        const { request, faultOf } = next()
        return faultless(connection.send(request).then(faultOf))
      }),
      close: () => {
        for (const { connection } of crew) connection.close()
      },
    }
  },
})

export const replicasSection: Section = {
  name: 'replicas',
  title: 'a mix of verbs on 1, 2 and 4 API processes',
  on: 'postgres',
  async run({ stage, options, say }) {
    await using database = await stage.database()
    await using started = new AsyncDisposableStack()
    const services: Service[] = []
    for (let replica = 0; replica < Math.max(...REPLICAS); replica += 1) {
      services.push(started.use(await stage.api(database)))
    }
    let names = 0
    const fresh = () => labelOf(names++)
    const subjects = REPLICAS.map(count => subjectOf(count, services, fresh))
    const comparisons = await compare(subjects, {
      connections: CONNECTIONS,
      rounds: options.rounds,
      seconds: options.seconds * LONGER,
      say: line => say(`replicas: ${line}`),
    })
    const [open] = await database.sql<{ count: number }[]>`
      select count(*) from pg_stat_activity
      where datname = current_database() and application_name like 'allocation-api%'`
    const openEach = (open?.count ?? Number.NaN) / services.length
    const { loads, faults } = comparisonResult(
      subjects.map(({ name }) => name),
      comparisons,
    )
    const lines = comparisons.flatMap(({ connections, runs }, load) =>
      runs.map((rounds, index) => {
        const figures = loads[load]?.subjects[index]
        if (!figures) throw new Error('a subject without figures')
        const perSecond = (of: typeof rounds) => of.map(run => run.perSecond)
        const { ratio: _, perOperation: __, name, ...rest } = figures
        return {
          connections,
          processes: Number(name),
          pool: Number(name) * stage.config.database.poolSize,
          ...rest,
          toOne: ratiosOf(perSecond(rounds), perSecond(runs[0] ?? [])),
        }
      }),
    )
    const table: Table = {
      columns: [
        { title: 'connections', align: 'right' },
        { title: 'processes', align: 'right' },
        { title: 'pooled to Postgres', align: 'right' },
        { title: 'ops/s', align: 'right' },
        { title: 'p50 ms', align: 'right' },
        { title: 'p99 ms', align: 'right' },
        { title: 'ops/s to one process', align: 'right' },
      ],
      rows: lines.map(line => [
        line.processes === 1 ? String(line.connections) : '',
        String(line.processes),
        String(line.pool),
        ...[line.perSecond, line.p50Ms, line.p99Ms].map(spread),
        line.processes === 1 ? '' : spread(line.toOne),
      ]),
    }
    const besides =
      `A pool is ${stage.config.database.poolSize} connections at most. With those for claims, for listening and for probes, a process had ` +
      `${openEach} open at the end.`
    return {
      notes: [`${NOTES}\n${besides}`],
      tables: [table],
      figures: { loads: lines, openConnectionsEach: openEach },
      faults,
    }
  },
}
