import type { Run } from '../load/compare.ts'
import { figure, spread } from '../report/numbers.ts'
import type { Table } from '../report/table.ts'
import { ratiosOf, type Spread, spreadOf } from '../statistics.ts'

/** Counts what was granted on one slot. */
export interface Tally {
  /** True: that generation had been granted before, to whichever client. */
  readonly grant: (generation: number) => boolean
  /** Between two runs: generations are told apart within one. */
  readonly forget: () => Promise<void>
  readonly counters: () => Promise<{ readonly granted: number; readonly twice: number }>
}

export const createTally = (): Tally => {
  const seen = new Set<number>()
  let [granted, twice] = [0, 0]
  return {
    grant(generation) {
      granted += 1
      if (!seen.has(generation)) {
        seen.add(generation)
        return false
      }
      twice += 1
      return true
    },
    forget: async () => seen.clear(),
    counters: async () => ({ granted, twice }),
  }
}

export interface Contention {
  readonly clients: number
  /** In the order of the subjects; of each, its rounds. */
  readonly runs: readonly (readonly Run[])[]
}

interface GrantFigures {
  readonly clients: number
  readonly subject: string
  /** Of a hundred answers. */
  readonly grantedPercent: Spread
  readonly grantedTwicePercent: Spread
  /** Grants of a generation that nobody had been granted: how fast the slot really goes on. */
  readonly rightGrantsPerSecond: Spread
  /** The first subject's for one of this one; null for the first itself. */
  readonly ratio: Spread | null
}

const share = ({ perOperation }: Run, counter: string): number => perOperation[counter] ?? Number.NaN
const rightGrants = (run: Run): number => run.perSecond * (share(run, 'granted') - share(run, 'twice'))

const percent = ({ median, min, max }: Spread): string =>
  max === 0 ? '0 %' : `${figure(median)} % (${figure(min)}–${figure(max)})`

/** What the answers on one slot were, since among them a 200 that is wrong counts as much as one that is right. */
export const contentionTable = (
  names: readonly string[],
  contentions: readonly Contention[],
): { readonly table: Table; readonly figures: readonly GrantFigures[] } => {
  const figures = contentions.flatMap(({ clients, runs }) =>
    runs.map((rounds, index): GrantFigures => {
      const right = rounds.map(rightGrants)
      return {
        clients,
        subject: names[index] ?? '',
        grantedPercent: spreadOf(rounds.map(run => 100 * share(run, 'granted'))),
        grantedTwicePercent: spreadOf(rounds.map(run => 100 * share(run, 'twice'))),
        rightGrantsPerSecond: spreadOf(right),
        ratio: index === 0 ? null : ratiosOf((runs[0] ?? []).map(rightGrants), right),
      }
    }),
  )
  const table: Table = {
    columns: [
      { title: 'on one slot: clients', align: 'right' },
      { title: 'subject', align: 'left' },
      { title: 'granted of all answers', align: 'right' },
      { title: 'a generation granted before', align: 'right' },
      { title: 'right grants/s', align: 'right' },
      { title: `${names[0]} / this`, align: 'right' },
    ],
    rows: figures.map(({ clients, subject, grantedPercent, grantedTwicePercent, rightGrantsPerSecond, ratio }) => [
      ratio ? '' : String(clients),
      subject,
      percent(grantedPercent),
      percent(grantedTwicePercent),
      spread(rightGrantsPerSecond),
      ratio ? spread(ratio) : '',
    ]),
  }
  return { table, figures }
}
