import { setTimeout as sleep } from 'node:timers/promises'
import { readMemory, readProcessTree } from '@pool/test-kit/processes.ts'
import { progress } from '../../shared/cli.ts'
import { left, right, spreadText, toFigure, toMegabytes, toRatios, toSpread } from '../../shared/figures.ts'
import type { Service } from '../environment/environment.ts'
import { POOL } from '../environment/names.ts'
import { createDataDir, startWholeStack } from '../environment/whole-stack.ts'
import { sendOne } from '../load/target.ts'
import type { Section } from '../section.ts'

/** A start of the whole stack takes seconds. */
const MAX_WHOLE_STARTS = 3
/** After a start: its remaining work is done, and garbage was collected as usual. */
const IDLE_MS = 2_000

export const startSection: Section = {
  name: 'start',
  title: 'start times, and memory at idle',
  note: [
    'From the spawn of the process to its first response over HTTP (of the API to a check; database and schema exist). Node keeps',
    'compiled code from one start to the next, as with pnpm start. Bare Node: a process that imports node:http and answers.',
    'Bundle: as in the image, one file without compile cache. Interleaved; ratios round by round. Memory: two seconds after a',
    'start. pnpm start: its script without pnpm, on the data of an earlier start, until it prints that everything is ready;',
    'first start: the one that created the data. Its memory: all processes, in which shared pages count once (PSS).',
  ].join('\n'),
  comparesWith: 'nothing',
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
    const bare = { name: 'bare Node', start: () => environment.startBareNode(), times: [] as number[] }
    const starts: readonly (typeof bare)[] = [
      { name: 'API', start: () => environment.startApi(database.url), times: [] },
      {
        name: 'API, bundle',
        start: () => environment.startApiFile(bundle, database.url, { NODE_DISABLE_COMPILE_CACHE: '1' }),
        times: [],
      },
      bare,
    ]
    progress('start: warming up')
    for (const { start } of starts) await timeFirstResponse(start)
    for (let round = 1; round <= options.rounds; round += 1) {
      progress(`start: round ${round} of ${options.rounds}`)
      for (const { start, times } of starts) times.push(await timeFirstResponse(start))
    }
    const rows: string[][] = []
    for (const { name, start, times } of starts) {
      await using service = await start()
      await sleep(IDLE_MS)
      const ratio = times === bare.times ? '' : spreadText(toSpread(toRatios(times, bare.times)))
      const memory = readMemory(service.pid)?.residentBytes ?? Number.NaN
      rows.push([name, spreadText(toSpread(times)), ratio, toMegabytes(memory)])
    }

    const dataDir = createDataDir(environment.folder)
    const startStack = () => startWholeStack(dataDir, stop => environment.defer(stop))
    progress('start: pnpm start, the first')
    let firstMs: number
    {
      await using first = await startStack()
      firstMs = first.readyInMs
    }
    const wholeMs: number[] = []
    let wholeBytes = 0
    const wholeStarts = Math.min(options.rounds, MAX_WHOLE_STARTS)
    for (let round = 1; round <= wholeStarts; round += 1) {
      progress(`start: pnpm start, round ${round} of ${wholeStarts}`)
      await using stack = await startStack()
      wholeMs.push(stack.readyInMs)
      if (round < wholeStarts) continue
      await sleep(IDLE_MS)
      wholeBytes = readProcessTree(stack.pid).reduce((sum, { proportionalBytes }) => sum + proportionalBytes, 0)
    }
    rows.push(['pnpm start on existing data', spreadText(toSpread(wholeMs)), '', toMegabytes(wholeBytes)])
    rows.push(['pnpm start, the first', toFigure(firstMs), '', ''])
    return {
      tables: [{ columns: [left('start'), right('ms'), right('/ bare Node'), right('memory')], rows }],
      errors,
    }
  },
}
