import { createPrng } from '@pool/test-kit/prng.ts'
import { describe, expect, it } from 'vitest'
import { faultKinds, faultNames } from '../../src/soak/faults/kinds.ts'
import { createSchedule, type Round, STEADY_REPLICA } from '../../src/soak/faults/schedule.ts'

const deal = (rounds: Generator<Round>) => (): Round => rounds.next().value

const roundsOf = (seed: number, minutes: number, count: number): Round[] =>
  Array.from(
    { length: count },
    deal(createSchedule({ prng: createPrng(seed), replicas: 3, names: faultNames, minutes })),
  )
const many = roundsOf(1, 20, 200)
const faults = many.flatMap(round => round.faults)

describe('the schedule', () => {
  it('is the same for one seed, and another for another', () => {
    expect(roundsOf(1, 20, 50)).toEqual(many.slice(0, 50))
    expect(roundsOf(2, 20, 50)).not.toEqual(many.slice(0, 50))
  })

  it('deals every kind before any comes a third time', () => {
    const seen = new Map<string, number>()
    for (const { name } of faults) {
      seen.set(name, (seen.get(name) ?? 0) + 1)
      if (seen.get(name) === 3) break
    }
    expect([...seen.keys()].toSorted()).toEqual(faultNames.toSorted())
  })

  it('now and then has two at once, never of one part, nor of one replica', () => {
    const pairs = many.filter(round => round.faults.length === 2)
    expect(pairs.length).toBeGreaterThan(40)
    for (const round of pairs) {
      expect(new Set(round.faults.map(({ name }) => faultKinds[name].part)).size).toBe(2)
      expect(new Set(round.faults.map(({ replica }) => replica)).size).toBe(2)
    }
  })

  it('keeps to the times of each kind', () => {
    for (const { name, durationMs: holdMs, afterMs, strength } of faults) {
      const [least, most] = faultKinds[name].durationMs
      expect(holdMs).toBeGreaterThanOrEqual(least)
      expect(holdMs).toBeLessThanOrEqual(most)
      expect(afterMs).toBeLessThan(1_000)
      expect(strength).toBeLessThan(1)
    }
  })

  it('ends every replica in the first rounds, and the steady one not after them', () => {
    const ended = (rounds: readonly Round[]) =>
      rounds
        .flatMap(round => round.faults)
        .filter(({ name }) => name === 'replica killed' || name === 'replica terminated')
        .map(({ replica }) => replica)
    expect(ended(many.slice(8))).not.toContain(STEADY_REPLICA)
    expect(new Set(ended(many.slice(8)))).toEqual(new Set([1, 2]))
    const early = Array.from({ length: 20 }, (_, seed) => ended(roundsOf(seed, 20, 8))).flat()
    expect(new Set(early)).toEqual(new Set([0, 1, 2]))
  })

  it('leaves out of a short run what lasts long', () => {
    const names = (minutes: number) => roundsOf(1, minutes, 60).flatMap(round => round.faults.map(({ name }) => name))
    expect(names(1)).not.toContain('replica frozen for long')
    expect(names(5)).toContain('replica frozen for long')
  })

  it('rests after every second round', () => {
    expect(many.slice(0, 4).map(({ quiesceAfter: restsAfter }) => restsAfter)).toEqual([false, true, false, true])
  })
})
