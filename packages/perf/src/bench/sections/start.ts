import { setTimeout as sleep } from 'node:timers/promises'
import type { Service } from '../environment/service.ts'
import { openConnection } from '../load/connection.ts'
import { type Member, readTree } from '../process-tree.ts'
import { figure, megabytes, spread } from '../report/numbers.ts'
import type { Table } from '../report/table.ts'
import { targetOf, targetTable } from '../report/target.ts'
import type { Section } from '../section.ts'
import { ratiosOf, spreadOf } from '../statistics.ts'
import { checkTask } from './requests.ts'

/** Seconds. */
const TARGETS = { api: 1, whole: 5 }
/** Whole starts take seconds. */
const MOST_WHOLE_STARTS = 3
/** After a start: what it left to do is done, and garbage of it collected or not as it would be. */
const IDLE_AFTER_MS = 2_000
const SUBJECTS = ['API', 'API, nothing compiled', 'bare Node'] as const

const NOTES = [
  'From the spawning of the process to its first answer over HTTP (of the API a check; database and schema are there).',
  'Node keeps what it has compiled from one start to the next, as with pnpm start; nothing compiled: it may not. bare',
  'Node: a process that imports node:http, and answers. Subjects take turns; ratios round by round, to bare Node.',
  'pnpm start: its script, without pnpm, on a store that an earlier start has made, until it says that all is running;',
  'first start: the one that made the store. Memory: two seconds after the last start; a share (PSS) counts what several',
  'processes have in common once.',
].join('\n')

/** Whose memory a process of `pnpm start` is. */
const roomOf = ({ command }: Member): string | null => {
  if (command.includes('workerd')) return 'witness, workerd'
  if (command.includes('lease-witness/local/main.ts')) return 'witness, Node'
  if (command.includes('allocation-api/src/main.ts')) return 'API'
  if (command.includes('dev-server/src/start.ts')) return 'the start command'
  return /postgres/.test(command) ? 'Postgres, all its processes' : null
}
const ROOMS = ['API', 'witness, Node', 'witness, workerd', 'Postgres, all its processes', 'the start command']

export const startSection: Section = {
  name: 'start',
  title: 'how long a start takes, and memory at idle',
  on: 'postgres',
  async run({ stage, options, say }) {
    await using database = await stage.database()
    const faults: string[] = []
    const firstAnswer = async (start: () => Promise<Service>): Promise<number> => {
      const started = performance.now()
      await using service = await start()
      const connection = await openConnection(service.port)
      const { request } = checkTask('bench')
      const { status } = await connection.send(request)
      const took = performance.now() - started
      connection.close()
      if (status !== 200) faults.push(`start: status ${status}`)
      return took
    }
    const starts = [
      () => stage.api(database),
      () => stage.api(database, { NODE_DISABLE_COMPILE_CACHE: '1' }),
      () => stage.bareNode(),
    ]
    const times: number[][] = starts.map(() => [])
    say('start: warming up')
    for (const start of starts) await firstAnswer(start)
    for (let round = 1; round <= options.rounds; round += 1) {
      say(`start: round ${round} of ${options.rounds}`)
      for (const [index, start] of starts.entries()) times[index]?.push(await firstAnswer(start))
    }

    const wholeStarts = Math.min(options.rounds, MOST_WHOLE_STARTS)
    const dataDir = stage.dataDir()
    say('start: pnpm start, the first')
    let firstMs: number
    {
      await using first = await stage.wholeStack(dataDir)
      firstMs = first.readyInMs
    }
    const wholeMs: number[] = []
    let members: Member[] = []
    for (let round = 1; round <= wholeStarts; round += 1) {
      say(`start: pnpm start, round ${round} of ${wholeStarts}`)
      await using whole = await stage.wholeStack(dataDir)
      wholeMs.push(whole.readyInMs)
      if (round < wholeStarts) continue
      await sleep(IDLE_AFTER_MS)
      members = await readTree(whole.pid)
    }

    const bare = times.at(-1) ?? []
    const processes = times.map((values, index) => ({
      name: SUBJECTS[index] ?? '',
      ms: spreadOf(values),
      toBare: values === bare ? null : ratiosOf(values, bare),
    }))
    const whole = spreadOf(wholeMs)
    const memory = ROOMS.map(room => {
      const own = members.filter(member => roomOf(member) === room)
      const sum = (of: 'residentBytes' | 'proportionalBytes') => own.reduce((total, member) => total + member[of], 0)
      return { room, processes: own.length, residentBytes: sum('residentBytes'), shareBytes: sum('proportionalBytes') }
    })
    const inSeconds = (values: readonly number[]) => spreadOf(values.map(value => value / 1_000))
    const targets = [
      targetOf('API', 'seconds', 'at most', TARGETS.api, inSeconds(times[0] ?? [])),
      targetOf('pnpm start on a warm store', 'seconds', 'at most', TARGETS.whole, inSeconds(wholeMs)),
    ]
    const left = (title: string) => ({ title, align: 'left' as const })
    const right = (title: string) => ({ title, align: 'right' as const })
    const times_: Table = {
      columns: [left('start'), right('ms'), right('this / bare Node')],
      rows: [
        ...processes.map(({ name, ms, toBare }) => [name, spread(ms), toBare ? spread(toBare) : '']),
        ['pnpm start on a warm store', spread(whole), ''],
        ['pnpm start, the first', figure(firstMs), ''],
      ],
    }
    const memoryTable: Table = {
      columns: [left('memory at idle'), right('processes'), right('resident'), right('share (PSS)')],
      rows: memory.map(({ room, processes: count, residentBytes, shareBytes }) =>
        count === 0
          ? [room, '', 'unknown: needs Linux', '']
          : // What processes share would be counted once for each.
            [room, String(count), count === 1 ? megabytes(residentBytes) : '', megabytes(shareBytes)],
      ),
    }
    return {
      notes: [NOTES],
      tables: [times_, memoryTable, targetTable('target', targets)],
      figures: { processes, wholeMs: whole, firstMs, memory, targets },
      faults,
    }
  },
}
