import type { Run } from '../load/compare.ts'
import { allFaultsOf } from '../load/comparison-result.ts'
import type { Section } from '../section.ts'
import { type ListPlay, type Play, startPlay } from './size-plays.ts'
import { type SizeRounds, sizeResult } from './size-result.ts'

const SMALLEST = 1_000
/** One after the other, and as many as a busy replica has. */
const ALONE = 1
const BUSY = 16

const sizesUpTo = (largest: number): number[] => {
  const sizes: number[] = []
  for (let rows = SMALLEST; rows <= largest; rows *= 10) sizes.push(rows)
  return sizes
}

interface Taken {
  readonly play: Play
  readonly checkAlone: Run[]
  readonly reserveAlone: Run[]
  readonly checkBusy: Run[]
  readonly reserveBusy: Run[]
  readonly sweepMs: number[]
  readonly list: ListPlay[]
  readonly scrapeMs: (number | null)[]
}

/**
 * What is looked for is smaller than what the machine does from one second to the next: each size has a fraction of the
 * standard seconds at a time, and many times so.
 */
const FRACTION = 0.25
const TURNS = 8

export const sizeSection: Section = {
  name: 'size',
  title: 'what check, reserve, sweep, list and a scrape cost in pools of different size',
  on: 'postgres',
  async run(context) {
    const { options, say } = context
    const seconds = options.seconds * FRACTION
    await using opened = new AsyncDisposableStack()
    const all: Taken[] = []
    for (const rows of sizesUpTo(options.largest)) {
      const play = opened.use(await startPlay(context, rows))
      all.push({
        play,
        checkAlone: [],
        reserveAlone: [],
        checkBusy: [],
        reserveBusy: [],
        sweepMs: [],
        list: [],
        scrapeMs: [],
      })
    }
    say('size: warming up')
    for (const { play } of all) {
      await play.check(BUSY, options.seconds)
      await play.reserve(BUSY, options.seconds)
      await play.list()
    }
    /** One thing of every size, then the next: what the machine does meanwhile meets all sizes alike. */
    const inTurn = async (round: number, measure: (of: Taken) => Promise<unknown>) => {
      // Every round begins with another size: what one leaves to be written to disk does not always meet the same.
      for (const index of all.keys()) {
        const of = all[(index + round) % all.length]
        if (of) await measure(of)
      }
    }
    const inTurns = async (round: number, measure: (of: Taken) => Promise<unknown>) => {
      for (let turn = 0; turn < TURNS; turn += 1) await inTurn(round + turn, measure)
    }
    for (let round = 1; round <= options.rounds; round += 1) {
      say(`size: round ${round} of ${options.rounds}`)
      await inTurns(round, async ({ play, checkAlone }) => checkAlone.push(await play.check(ALONE, seconds)))
      await inTurns(round, async ({ play, reserveAlone }) => reserveAlone.push(await play.reserve(ALONE, seconds)))
      await inTurns(round, async ({ play, checkBusy }) => checkBusy.push(await play.check(BUSY, seconds)))
      await inTurns(round, async ({ play, reserveBusy }) => reserveBusy.push(await play.reserve(BUSY, seconds)))
      await inTurn(round, async ({ play, sweepMs }) => sweepMs.push(await play.sweep()))
      await inTurn(round, async ({ play, list }) => list.push(await play.list()))
      await inTurn(round, async ({ play, scrapeMs }) => scrapeMs.push(await play.scrape()))
    }
    const faults = all.flatMap(({ play, checkAlone, checkBusy, reserveAlone, reserveBusy }) =>
      allFaultsOf(['check', 'check', 'reserve', 'reserve'], `${play.rows} rows`, [
        checkAlone,
        checkBusy,
        reserveAlone,
        reserveBusy,
      ]),
    )
    const rounds = all.map(
      ({ play, checkAlone, reserveAlone, checkBusy, reserveBusy, sweepMs, list, scrapeMs }): SizeRounds => ({
        rows: play.rows,
        bytes: play.bytes,
        seededInMs: play.seededInMs,
        checkMs: checkAlone.map(run => run.p50Ms),
        reserveMs: reserveAlone.map(run => run.p50Ms),
        checkPerSecond: checkBusy.map(run => run.perSecond),
        reservePerSecond: reserveBusy.map(run => run.perSecond),
        sweepMs,
        listMs: list.map(({ msPer1000 }) => msPer1000),
        listBytes: list.map(({ aboveBytes }) => aboveBytes),
        scrapeMs,
      }),
    )
    return { ...sizeResult(rounds), faults }
  },
}
