import { execFile } from 'node:child_process'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { progress } from '../../shared/cli.ts'
import { toSpread } from '../../shared/stats.ts'
import { left, right, spreadText, type Table } from '../../shared/table.ts'
import { createDataDir, startWholeStack } from '../environment/whole-stack.ts'
import { goalTable, type Section, type SectionResult, toGoal } from '../report.ts'

const root = fileURLToPath(new URL('../../../../..', import.meta.url))
const run = promisify(execFile)

/** A round takes a minute. */
const MAX_ROUNDS = 3
/** Seconds that the console may add to a start. */
const MAX_ADDED_S = 5

const START = { command: 'npx', args: ['-y', 'pnpm@12', 'start'] }

interface Variant {
  readonly name: string
  /** The checkout whose last commit is cloned. */
  readonly checkout: string
  readonly buildsConsole: boolean
}

const toVariants = (against: string | null): readonly [Variant, Variant] => [
  { name: 'this', checkout: root, buildsConsole: true },
  against === null
    ? { name: 'this, without a build of the console', checkout: root, buildsConsole: false }
    : { name: 'other', checkout: against, buildsConsole: true },
]

const NOTE = [
  'From `npx -y pnpm@12 start` until it prints that everything is ready, in a new clone of the last commit: the first start installs',
  'every dependency, builds the console and creates the data; a later one finds them. The caches of npm and pnpm are warm: one',
  'start of each is not counted. Interleaved; medians over the rounds (min–max); differences round by round.',
].join('\n')

export const cloneStartSection: Section = {
  name: 'clone-start',
  title: 'pnpm start in a new clone, with the console and without it',
  needs: 'workerd',
  async run({ environment, options }): Promise<SectionResult> {
    const variants = toVariants(options.against)
    const rounds = Math.min(options.rounds, MAX_ROUNDS)
    /** Seconds. */
    const measure = async ({ checkout, buildsConsole }: Variant): Promise<{ first: number; later: number }> => {
      const dataDir = createDataDir(environment.folder)
      const clone = join(dataDir, 'clone')
      await run('git', ['clone', '--quiet', '--shared', checkout, clone])
      if (!buildsConsole) await rm(join(clone, 'apps/console/scripts'), { recursive: true })
      const start = async () => {
        await using stack = await startWholeStack(join(dataDir, 'data'), stop => environment.defer(stop), {
          ...START,
          cwd: clone,
        })
        return stack.readyInMs / 1_000
      }
      const times = { first: await start(), later: await start() }
      await rm(dataDir, { recursive: true, force: true })
      return times
    }
    progress('clone-start: warming up')
    for (const variant of variants) await measure(variant)
    const [ours, theirs] = variants.map(() => ({ first: [] as number[], later: [] as number[] }))
    if (!ours || !theirs) throw new Error('two variants are compared')
    for (let round = 1; round <= rounds; round += 1) {
      progress(`clone-start: round ${round} of ${rounds}`)
      for (const [i, times] of [ours, theirs].entries()) {
        const { first, later } = await measure(variants[i] ?? variants[0])
        times.first.push(first)
        times.later.push(later)
      }
    }
    const starts = (['first', 'later'] as const).map(start => ({
      start,
      ours: toSpread(ours[start]),
      theirs: toSpread(theirs[start]),
      difference: toSpread(ours[start].map((seconds, i) => seconds - (theirs[start][i] ?? Number.NaN))),
    }))
    const table: Table = {
      columns: [left('start, seconds'), ...variants.map(({ name }) => right(name)), right('difference')],
      rows: starts.map(row => [row.start, ...[row.ours, row.theirs, row.difference].map(spreadText)]),
    }
    const goals = starts.map(({ start, difference }) =>
      toGoal(`${start} start`, 'difference, seconds,', 'at most', MAX_ADDED_S, difference),
    )
    return { notes: [NOTE], tables: [table, goalTable('goal', goals)], figures: { starts, goals }, errors: [] }
  },
}
