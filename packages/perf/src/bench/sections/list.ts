import { readMemory, resetPeak } from '@pool/test-kit/processes.ts'
import { progress } from '../../shared/cli.ts'
import { type Spread, toSpread } from '../../shared/stats.ts'
import { left, right, spreadText, type Table, toFigure, toMegabytes } from '../../shared/table.ts'
import { insertPool, POOL } from '../environment/seed.ts'
import { runOnce } from '../load/compare.ts'
import { COST_NOTE, type Cost, costTable, FLOOR, notCountedNote, startCost, summarizeCosts } from '../load/cost.ts'
import { type ListRead, readList } from '../load/stream-reader.ts'
import { goalTable, type Section, toGoal } from '../report.ts'
import { createFloorTarget } from '../workloads.ts'

/** A list takes seconds: more rounds would add little. */
const MAX_ROUNDS = 3
/** Memory above idle, however long the list is. */
const MAX_MEGABYTES_ABOVE_IDLE = 80

const NOTE = [
  'The whole pool in one response, which the client reads without keeping it. Memory is the resident set of the API',
  'process: idle before the first list, and the peak during each. Half of the rows are active, each with its DNS state.',
  'Statements: those of a start, one list and a stop, without those of a start and a stop.',
].join('\n')

/** The load of the floor. */
const FLOOR_USERS = 64

export const listSection: Section = {
  name: 'list',
  title: 'GET list of a large pool',
  needs: 'postgres',
  async run({ environment, options }) {
    const url = await environment.createEmptySchema()
    progress(`list: inserting ${options.rows} rows`)
    {
      await using database = environment.connect(url)
      await insertPool(database.sql, options.rows)
    }
    const countWork = (read: (port: number) => Promise<unknown>) =>
      environment.countServerWork(url, async () => {
        await using counted = await environment.startApi(url)
        await read(counted.port)
      })
    const toUrl = (port: number) => `http://127.0.0.1:${port}/api/v1/pool/${POOL}/list`
    progress('list: counting statements')
    const startAndStop = await countWork(async () => {})
    const withList = await countWork(port => readList(toUrl(port)))
    const statements = withList.statements - startAndStop.statements

    await using floor = await environment.startHonoFloor()
    await using api = await environment.startApi(url)
    const idle = readMemory(api.pid)
    const reads: ListRead[] = []
    const peaks: number[] = []
    const errors: string[] = []
    const floorTarget = createFloorTarget(floor)
    const costs: { cost: Cost | null }[] = []
    const floorCosts: { cost: Cost | null }[] = []
    const rounds = Math.min(options.rounds, MAX_ROUNDS)
    for (let round = 1; round <= rounds; round += 1) {
      progress(`list: round ${round} of ${rounds}`)
      await resetPeak(api.pid)
      const stopCost = await startCost(api.pid)
      const read = await readList(toUrl(api.port))
      costs.push({ cost: await stopCost(read.rows) })
      floorCosts.push(await runOnce(floorTarget, FLOOR_USERS, options.seconds))
      const memory = readMemory(api.pid)
      reads.push(read)
      if (memory) peaks.push(memory.peakBytes)
      if (read.status !== 200) errors.push(`list: status ${read.status}`)
      if (read.truncated) errors.push(`list: truncated after ${read.rows} rows: ${read.truncated}`)
      else if (read.rows !== options.rows) errors.push(`list: ${read.rows} rows of ${options.rows}`)
    }

    const spreadOver = (field: 'firstByteMs' | 'totalMs' | 'bytes') => toSpread(reads.map(read => read[field]))
    const [firstByteMs, totalMs, bytes] = [spreadOver('firstByteMs'), spreadOver('totalMs'), spreadOver('bytes')]
    const peak: Spread | null = peaks.length > 0 ? toSpread(peaks) : null
    const aboveIdle = peak && idle ? peak.max - idle.residentBytes : null
    const toText = (size: number | null | undefined) =>
      size === null || size === undefined ? 'unknown: needs Linux' : toMegabytes(size)
    const table: Table = {
      columns: [left(`list of ${options.rows} rows`), right('median (min–max)')],
      rows: [
        ['first byte, ms', spreadText(firstByteMs)],
        ['total, ms', spreadText(totalMs)],
        ['size', toMegabytes(bytes.median)],
        ['memory idle', toText(idle?.residentBytes)],
        ['memory peak, highest round', toText(peak?.max)],
        ['above idle', toText(aboveIdle)],
        ['statements', `${toFigure(statements)}, one for ${toFigure(options.rows / statements)} rows`],
      ],
    }
    const perRow = summarizeCosts(['API', FLOOR], [{ users: 1, runs: [costs, floorCosts] }])
    const goals = [
      toGoal(
        `list of ${options.rows} rows`,
        'MB above idle, highest round,',
        'at most',
        MAX_MEGABYTES_ABOVE_IDLE,
        aboveIdle === null ? null : toSpread([aboveIdle / 1e6]),
      ),
    ]
    const figures = {
      rows: options.rows,
      rounds,
      firstByteMs,
      totalMs,
      bytes: bytes.median,
      idleBytes: idle?.residentBytes ?? null,
      peakBytes: peak,
      aboveIdleBytes: aboveIdle,
      statements,
      costs: perRow,
      goals,
    }
    return {
      notes: [NOTE, COST_NOTE, ...notCountedNote(perRow)],
      tables: [table, costTable(perRow, `row; of the floor, per request at ${FLOOR_USERS}`), goalTable('goal', goals)],
      figures,
      errors,
    }
  },
}
