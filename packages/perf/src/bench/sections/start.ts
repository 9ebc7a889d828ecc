import { setTimeout as sleep } from 'node:timers/promises'
import { type ProcessInfo, readMemory, readProcessTree } from '@pool/test-kit/processes.ts'
import { progress } from '../../shared/cli.ts'
import { toRatios, toSpread } from '../../shared/stats.ts'
import { left, right, spreadText, type Table, toFigure, toMegabytes } from '../../shared/table.ts'
import type { Service } from '../environment/environment.ts'
import { POOL } from '../environment/seed.ts'
import { createDataDir, startWholeStack } from '../environment/whole-stack.ts'
import { sendOne } from '../load/target.ts'
import { goalTable, type Section, toGoal } from '../report.ts'

/** Seconds. */
const GOALS = { api: 1, bundle: 0.6, wholeStack: 5 }
/** A start of the whole stack takes seconds. */
const MAX_WHOLE_STARTS = 3
/** After a start: its remaining work is done, and garbage was collected as usual. */
const IDLE_MS = 2_000

const NOTE = [
  'From the spawn of the process to its first response over HTTP (of the API to a check; database and schema exist).',
  'Node keeps compiled code from one start to the next, as with pnpm start; "without compile cache": it may not. Bare',
  'Node: a process that imports node:http and answers. Bundle: as in the image, one file without compile cache. Interleaved;',
  'ratios round by round, this row / bare Node and / the API without compile cache. Resident: two seconds after a start.',
  'pnpm start: its script without pnpm, on the data of an earlier start, until it prints that everything is ready; first',
  'start: the one that created the data. Memory: two seconds after the last start; PSS counts shared pages once.',
].join('\n')

/** The processes of `pnpm start`, by a part of their command lines. */
const PARTS = [
  { name: 'API', pattern: /allocation-api\/src\/main\.ts/ },
  { name: 'witness, workerd', pattern: /workerd/ },
  { name: 'witness, Node', pattern: /lease-witness\/local\/main\.ts/ },
  { name: 'Postgres, all processes', pattern: /postgres/ },
  { name: 'the start command', pattern: /dev\/src\/start\.ts/ },
]

const groupByPart = (processes: readonly ProcessInfo[]) => {
  const groups = Map.groupBy(processes, ({ command }) => PARTS.find(({ pattern }) => pattern.test(command))?.name)
  return PARTS.map(({ name }) => {
    const own = groups.get(name) ?? []
    const sum = (field: 'residentBytes' | 'proportionalBytes') => own.reduce((total, part) => total + part[field], 0)
    return {
      part: name,
      processes: own.length,
      residentBytes: sum('residentBytes'),
      proportionalBytes: sum('proportionalBytes'),
    }
  })
}

export const startSection: Section = {
  name: 'start',
  title: 'start times, and memory at idle',
  needs: 'postgres',
  async run({ environment, options }) {
    await using database = await environment.createSchema()
    const errors: string[] = []
    const bundle = await environment.bundleApi()
    const timeFirstResponse = async (start: () => Promise<Service>): Promise<number> => {
      const started = performance.now()
      await using service = await start()
      const { status } = await sendOne(service.port, { method: 'GET', path: `/api/v1/pool/${POOL}/check?sub=bench` })
      const took = performance.now() - started
      if (status !== 200) errors.push(`start: status ${status}`)
      return took
    }
    const starts = [
      { name: 'API', start: () => environment.startApi(database.url) },
      {
        name: 'API, without compile cache',
        start: () => environment.startApi(database.url, { NODE_DISABLE_COMPILE_CACHE: '1' }),
      },
      {
        name: 'API, bundle',
        start: () => environment.startApiFile(bundle, database.url, { NODE_DISABLE_COMPILE_CACHE: '1' }),
      },
      { name: 'bare Node', start: () => environment.startBareNode() },
    ]
    const times: number[][] = starts.map(() => [])
    progress('start: warming up')
    for (const { start } of starts) await timeFirstResponse(start)
    for (let round = 1; round <= options.rounds; round += 1) {
      progress(`start: round ${round} of ${options.rounds}`)
      for (const [index, { start }] of starts.entries()) times[index]?.push(await timeFirstResponse(start))
    }

    const resident: (number | null)[] = []
    for (const { start } of starts) {
      await using service = await start()
      await sleep(IDLE_MS)
      resident.push(readMemory(service.pid)?.residentBytes ?? null)
    }

    const dataDir = createDataDir(environment.folder)
    const startStack = () => startWholeStack(dataDir, stop => environment.defer(stop))
    progress('start: pnpm start, the first')
    let firstMs: number
    {
      await using first = await startStack()
      firstMs = first.readyInMs
    }
    const wholeStarts = Math.min(options.rounds, MAX_WHOLE_STARTS)
    const wholeMs: number[] = []
    let processes: ProcessInfo[] = []
    for (let round = 1; round <= wholeStarts; round += 1) {
      progress(`start: pnpm start, round ${round} of ${wholeStarts}`)
      await using stack = await startStack()
      wholeMs.push(stack.readyInMs)
      if (round < wholeStarts) continue
      await sleep(IDLE_MS)
      processes = readProcessTree(stack.pid)
    }

    const bare = times.at(-1) ?? []
    const source = times[1] ?? []
    const timed = times.map((values, index) => ({
      name: starts[index]?.name ?? '',
      ms: toSpread(values),
      toBare: values === bare ? null : toSpread(toRatios(values, bare)),
      toSource: values === source ? null : toSpread(toRatios(values, source)),
      residentBytes: resident[index] ?? null,
    }))
    const whole = toSpread(wholeMs)
    const memory = groupByPart(processes)
    const toSeconds = (values: readonly number[]) => toSpread(values.map(value => value / 1_000))
    const goals = [
      toGoal('API', 'seconds', 'at most', GOALS.api, toSeconds(times[0] ?? [])),
      toGoal('API, bundle', 'seconds', 'at most', GOALS.bundle, toSeconds(times[2] ?? [])),
      toGoal('pnpm start on existing data', 'seconds', 'at most', GOALS.wholeStack, toSeconds(wholeMs)),
    ]
    const timeTable: Table = {
      columns: [left('start'), right('ms'), right('/ bare Node'), right('/ without cache'), right('resident')],
      rows: [
        ...timed.map(({ name, ms, toBare, toSource, residentBytes }) => [
          name,
          spreadText(ms),
          toBare ? spreadText(toBare) : '',
          toSource ? spreadText(toSource) : '',
          residentBytes === null ? '' : toMegabytes(residentBytes),
        ]),
        ['pnpm start on existing data', spreadText(whole), '', '', ''],
        ['pnpm start, the first', toFigure(firstMs), '', '', ''],
      ],
    }
    const memoryTable: Table = {
      columns: [left('memory at idle'), right('processes'), right('resident'), right('PSS')],
      rows: memory.map(({ part, processes: count, residentBytes, proportionalBytes }) =>
        count === 0
          ? [part, '', 'unknown: needs Linux', '']
          : // The resident set of several processes would count shared pages repeatedly.
            [part, String(count), count === 1 ? toMegabytes(residentBytes) : '', toMegabytes(proportionalBytes)],
      ),
    }
    return {
      notes: [NOTE],
      tables: [timeTable, memoryTable, goalTable('goal', goals)],
      figures: { processes: timed, wholeMs: whole, firstMs, memory, goals },
      errors,
    }
  },
}
