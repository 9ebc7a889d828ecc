import { setTimeout as sleep } from 'node:timers/promises'
import type { Database } from '../environment/cluster.ts'
import type { Service } from '../environment/service.ts'
import { labelOf, labelSql } from '../labels.ts'
import { type Run, runOnce } from '../load/compare.ts'
import { allFaultsOf, summariseAll } from '../load/comparison-result.ts'
import { openHttpCrew } from '../load/subject.ts'
import { figure, spread } from '../report/numbers.ts'
import type { Table } from '../report/table.ts'
import { targetOf, targetTable } from '../report/target.ts'
import type { Section } from '../section.ts'
import { ratiosOf } from '../statistics.ts'
import { reserveTask } from './requests.ts'
import { POOL } from './standard.ts'

const CONNECTIONS = [16, 64]
/** A round writes and sweeps all its rows: more of them would say little more. */
const MOST_ROUNDS = 3
/** Of the standard seconds: enough requests for a 99th percentile, over before the sweep is. */
const LONGER = 3
/** How many times what it is without a sweep the 99th percentile of reserve may be with one. */
const AT_MOST = 2
const WARM_UP_CONNECTIONS = 16
const LOOK_EVERY_MS = 50
const GONE_WITHIN_MS = 300_000
const NAMES = ['without', 'with a sweep']

const NOTES = [
  'Each round on the same rows: an API process that has nothing to sweep by itself until the next day, with the expired',
  'rows there, and then one that begins to sweep them as it starts. Each is warmed up for as long before it is measured;',
  'that counts to the sweep, which in the last round goes on to its end. Closed loop;',
  'ratios round by round, with to without. Between rounds the tables are vacuumed.',
].join('\n')

const dueRows = async ({ sql }: Database): Promise<boolean> => {
  const [row] = await sql<{ due: boolean }[]>`
    select exists (select from pool_allocations where state = 'reserved' and expires_at <= now()) as due`
  return row?.due ?? false
}

/** As reservations of a day ago left them: at random places of the index of names, in order of time. */
const writeExpired = async ({ sql }: Database, rows: number, from: number): Promise<void> => {
  await sql.unsafe(
    `insert into pool_allocations
       (pool_domain, subdomain, state, reserved_at, expires_at, reservation_token, created_by)
     select $1, 'old-' || ${labelSql('n')}, 'reserved', now() - interval '2 days',
       now() - interval '1 day' + (n - $2::bigint) * interval '1 microsecond', gen_random_uuid(), 'bench'
     from generate_series($2::bigint, $2::bigint + $3::bigint - 1) n`,
    [POOL, from, rows],
  )
  await sql`analyze pool_allocations`
  await sql`checkpoint`
}

export const sweepSection: Section = {
  name: 'sweep',
  title: 'reserve while expired rows are swept',
  on: 'postgres',
  async run({ stage, options, say }) {
    await using database = await stage.database()
    const rounds = Math.min(options.rounds, MOST_ROUNDS)
    const seconds = options.seconds * LONGER
    let names = 0
    const fresh = () => reserveTask(`new-${labelOf(names++)}`)
    const reserve = ({ port }: Service, connections: number, forSeconds: number) =>
      runOnce({ name: 'API', open: callers => openHttpCrew(port, callers, fresh) }, connections, forSeconds)
    /** Of each number of connections its runs, without and with. */
    const runs = CONNECTIONS.map((): [Run[], Run[]] => [[], []])
    let sweptInMs = 0
    const faults: string[] = []
    const measure = async (api: Service, which: 0 | 1) => {
      await reserve(api, WARM_UP_CONNECTIONS, options.seconds)
      for (const [index, connections] of CONNECTIONS.entries()) {
        runs[index]?.[which].push(await reserve(api, connections, seconds))
      }
    }

    for (let round = 1; round <= rounds; round += 1) {
      say(`sweep: round ${round} of ${rounds}, writing ${options.expired} rows`)
      {
        await using idle = await stage.api(database, { PDM_SWEEPER_INTERVAL: '24h' })
        await writeExpired(database, options.expired, (round - 1) * options.expired)
        await measure(idle, 0)
      }
      say(`sweep: round ${round} of ${rounds}, sweeping`)
      const started = performance.now()
      await using sweeping = await stage.api(database, { PDM_SWEEPER_INTERVAL: '24h' })
      await measure(sweeping, 1)
      if (!(await dueRows(database))) faults.push('the sweep was over before the measurement: too few rows (--expired)')
      // One that is gone through to its end tells how long it takes, which is minutes.
      if (round < rounds) await database.sql`truncate pool_allocations`
      else {
        while (await dueRows(database)) {
          if (performance.now() - started > GONE_WITHIN_MS) throw new Error('the sweep does not end')
          await sleep(LOOK_EVERY_MS)
        }
        sweptInMs = performance.now() - started
      }
      for (const table of ['pool_allocations', 'allocation_history']) await database.sql.unsafe(`vacuum ${table}`)
    }

    const loads = CONNECTIONS.map((connections, index) => {
      const [without, swept] = runs[index] ?? [[], []]
      const ratio = (of: 'perSecond' | 'p50Ms' | 'p99Ms') =>
        ratiosOf(
          swept.map(run => run[of]),
          without.map(run => run[of]),
        )
      faults.push(...allFaultsOf(NAMES, `connections ${connections}`, [without, swept]))
      const subjects = summariseAll(NAMES, [without, swept]).map(({ ratio: _, perOperation: __, ...rest }) => rest)
      return {
        connections,
        subjects,
        ratio: { perSecond: ratio('perSecond'), p50: ratio('p50Ms'), p99: ratio('p99Ms') },
      }
    })
    const targets = loads.map(({ connections, ratio }) =>
      targetOf(`connections ${connections}`, 'p99, with / without,', 'at most', AT_MOST, ratio.p99),
    )
    const right = (title: string) => ({ title, align: 'right' as const })
    const table: Table = {
      columns: [
        right('connections'),
        { title: 'reserve', align: 'left' },
        ...['ops/s', 'p50 ms', 'p99 ms', 'with / without: ops/s', 'p50', 'p99'].map(right),
      ],
      rows: loads.flatMap(({ connections, subjects, ratio }) =>
        subjects.map((subject, index) => [
          index === 0 ? String(connections) : '',
          subject.name,
          ...[subject.perSecond, subject.p50Ms, subject.p99Ms].map(spread),
          ...(index === 0 ? ['', '', ''] : [spread(ratio.perSecond), figure(ratio.p50.median), spread(ratio.p99)]),
        ]),
      ),
    }
    const length =
      `${options.expired} rows, ${rounds} rounds of ${LONGER} times the standard seconds. The sweep of the last round, with ` +
      `this load beside its beginning, took ${figure(sweptInMs / 1e3)} s.`
    return {
      notes: [`${NOTES}\n${length}`],
      tables: [table, targetTable('target', targets)],
      figures: { rows: options.expired, rounds, loads, sweptInMs, targets },
      faults,
    }
  },
}
