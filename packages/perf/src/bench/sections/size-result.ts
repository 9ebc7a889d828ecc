import { figure, megabytes, spread } from '../report/numbers.ts'
import type { Table } from '../report/table.ts'
import { type Target, targetOf, targetTable } from '../report/target.ts'
import type { SectionResult } from '../section.ts'
import { ratiosOf, type Spread, spreadOf } from '../statistics.ts'
import { LISTED } from './size-plays.ts'

/** What was measured of one size, turn by turn. */
export interface SizeRounds {
  readonly rows: number
  readonly bytes: number
  readonly seededInMs: number
  /** Medians of a turn, with one connection; a round has several. */
  readonly checkMs: readonly number[]
  readonly reserveMs: readonly number[]
  /** With sixteen. */
  readonly checkPerSecond: readonly number[]
  readonly reservePerSecond: readonly number[]
  /** Of a thousand rows. */
  readonly sweepMs: readonly number[]
  readonly listMs: readonly number[]
  readonly listBytes: readonly (number | null)[]
  readonly scrapeMs: readonly (number | null)[]
}

/** How many times what they cost in the smallest pool check and reserve may cost in the largest. */
const AT_MOST = 1.3

const NOTES = [
  'Pools of different size in databases of one Postgres, each with an API process; round by round, one thing is measured',
  'of every size, then the next. Check and reserve have eight turns a round, of a quarter of the seconds each: machines',
  'change by more, from one second to the next, than what is looked for. Half of the rows are active, with their DNS',
  'state; the history is what made them: reserved, committed, published. Rows are not in the order of their names.',
  'check: half of the names are taken; reserve: fresh names at random places of the index. p50 with one connection, rate',
  'with sixteen. sweep: the statement of the sweeper, a batch of a thousand. list: ms for a thousand rows, of the first',
  `${LISTED} (a shorter one is read whole, several times), and memory of the API above what it had before. scrape: GET`,
  '/metrics, which counts rows. What a round adds to pools of up to 100000 rows is taken away again. / 1000: cost to that',
  'of the smallest pool, turn by turn; of the rates, the other way round.',
].join('\n')

const OPERATIONS = ['checkMs', 'reserveMs', 'sweepMs', 'listMs'] as const
const RATES = ['checkPerSecond', 'reservePerSecond'] as const

const known = (values: readonly (number | null)[]): number[] => values.filter(value => value !== null)

const summarise = (of: SizeRounds, smallest: SizeRounds) => {
  const costs = OPERATIONS.map(name => [name, spreadOf(of[name]), ratiosOf(of[name], smallest[name])] as const)
  // A rate that falls is a cost that rises.
  const rates = RATES.map(name => [name, spreadOf(of[name]), ratiosOf(smallest[name], of[name])] as const)
  const [listBytes, scrapeMs] = [known(of.listBytes), known(of.scrapeMs)]
  return {
    rows: of.rows,
    bytes: of.bytes,
    seededInMs: of.seededInMs,
    figures: Object.fromEntries([...costs, ...rates].map(([name, value]) => [name, value])) as Record<
      (typeof OPERATIONS | typeof RATES)[number],
      Spread
    >,
    toSmallest: Object.fromEntries([...costs, ...rates].map(([name, , ratio]) => [name, ratio])) as Record<
      (typeof OPERATIONS | typeof RATES)[number],
      Spread
    >,
    listAboveBytes: listBytes.length > 0 ? spreadOf(listBytes) : null,
    scrapeMs: scrapeMs.length > 0 ? spreadOf(scrapeMs) : null,
    scrapesWithoutCounts: of.scrapeMs.length - scrapeMs.length,
  }
}

/** Sizes from the smallest on. */
export const sizeResult = (all: readonly SizeRounds[]): Omit<SectionResult, 'faults'> => {
  const [smallest] = all
  if (!smallest) throw new Error('no size was measured')
  const sizes = all.map(of => summarise(of, smallest))
  const largest = sizes.at(-1)
  const targets: Target[] = (['checkMs', 'reserveMs', 'checkPerSecond', 'reservePerSecond'] as const).map(name =>
    targetOf(
      `${largest?.rows} rows, ${name.endsWith('Ms') ? '1 connection' : '16 connections'}`,
      `${name.startsWith('check') ? 'check' : 'reserve'} / that at ${smallest.rows} rows,`,
      'at most',
      AT_MOST,
      largest?.toSmallest[name] ?? null,
    ),
  )
  const right = (title: string) => ({ title, align: 'right' as const })
  const cost: Table = {
    columns: [
      right('rows'),
      ...['check p50 ms', 'reserve p50 ms', 'sweep ms', 'list ms'].flatMap(title => [right(title), right('/ 1000')]),
    ],
    rows: sizes.map(({ rows, figures, toSmallest }) => [
      String(rows),
      ...OPERATIONS.flatMap(name => [spread(figures[name]), figure(toSmallest[name].median)]),
    ]),
  }
  const besides: Table = {
    columns: [
      right('rows'),
      ...['check/s', 'reserve/s'].flatMap(title => [right(title), right('/ 1000')]),
      ...['scrape ms', 'list above, MB', 'database', 'seeded in s'].map(right),
    ],
    rows: sizes.map(({ rows, figures, toSmallest, scrapeMs, listAboveBytes, bytes, seededInMs }) => [
      String(rows),
      ...RATES.flatMap(name => [spread(figures[name]), figure(toSmallest[name].median)]),
      scrapeMs ? spread(scrapeMs) : 'no counts',
      listAboveBytes ? figure(listAboveBytes.max / 1e6) : '',
      megabytes(bytes),
      figure(seededInMs / 1_000),
    ]),
  }
  return { notes: [NOTES], tables: [cost, besides, targetTable('target', targets)], figures: { sizes, targets } }
}
