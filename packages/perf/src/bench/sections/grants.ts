import { type Spread, toRatios, toSpread } from '../../shared/stats.ts'
import { left, right, spreadText, type Table, toFigure } from '../../shared/table.ts'
import type { Comparison, Run } from '../load/compare.ts'

/** Counts the grants on one slot, and those of a generation that was granted before. */
export class GrantCounter {
  readonly #granted = new Set<number>()
  #grants = 0
  #duplicates = 0

  /** True: the generation was granted before, to any client. */
  add(generation: number): boolean {
    this.#grants += 1
    if (!this.#granted.has(generation)) {
      this.#granted.add(generation)
      return false
    }
    this.#duplicates += 1
    return true
  }

  /** Deletes the generations between two runs: duplicates are counted within a run. */
  reset(): void {
    this.#granted.clear()
  }

  get counters() {
    return { granted: this.#grants, duplicates: this.#duplicates }
  }
}

interface GrantFigures {
  readonly users: number
  readonly target: string
  /** Of all responses. */
  readonly grantedPercent: Spread
  readonly duplicatePercent: Spread
  /** Grants of a generation that was not granted before: the real progress of the slot. */
  readonly validGrantsPerSecond: Spread
  /** The first target's value divided by this one's; null for the first target. */
  readonly ratio: Spread | null
}

const share = ({ perOperation }: Run, counter: string): number => perOperation[counter] ?? Number.NaN
const toValidGrants = (run: Run): number => run.perSecond * (share(run, 'granted') - share(run, 'duplicates'))

const percentText = ({ median, min, max }: Spread): string =>
  max === 0 ? '0 %' : `${toFigure(median)} % (${toFigure(min)}–${toFigure(max)})`

/** The responses on one slot: among them an invalid 200 counts as much as a valid one. */
export const summarizeGrants = (
  names: readonly string[],
  comparisons: readonly Comparison[],
): { readonly table: Table; readonly figures: readonly GrantFigures[] } => {
  const figures = comparisons.flatMap(({ users, runs }) =>
    runs.map((rounds, index): GrantFigures => {
      const valid = rounds.map(toValidGrants)
      return {
        users,
        target: names[index] ?? '',
        grantedPercent: toSpread(rounds.map(run => 100 * share(run, 'granted'))),
        duplicatePercent: toSpread(rounds.map(run => 100 * share(run, 'duplicates'))),
        validGrantsPerSecond: toSpread(valid),
        ratio: index === 0 ? null : toSpread(toRatios((runs[0] ?? []).map(toValidGrants), valid)),
      }
    }),
  )
  const table: Table = {
    columns: [
      right('on one slot: virtual users'),
      left('target'),
      ...['granted', 'a generation granted before', 'valid grants/s', `${names[0]} / this`].map(right),
    ],
    rows: figures.map(({ users, target, grantedPercent, duplicatePercent, validGrantsPerSecond, ratio }) => [
      ratio ? '' : String(users),
      target,
      percentText(grantedPercent),
      percentText(duplicatePercent),
      spreadText(validGrantsPerSecond),
      ratio ? spreadText(ratio) : '',
    ]),
  }
  return { table, figures }
}
