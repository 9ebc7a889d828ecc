import { createPrng } from '@pool/test-kit/prng.ts'
import { describe, expect, it } from 'vitest'
import { faultKinds, faultNames } from '../../src/soak/faults/kinds.ts'
import { createSchedule, type Round, STEADY_REPLICA } from '../../src/soak/faults/schedule.ts'

const toNextRound = (rounds: Generator<Round>) => (): Round => rounds.next().value

const createRounds = (seed: number, minutes: number, count: number): Round[] =>
  Array.from(
    { length: count },
    toNextRound(createSchedule({ prng: createPrng(seed), replicas: 3, names: faultNames, minutes })),
  )
const rounds = createRounds(1, 20, 200)
const faults = rounds.flatMap(round => round.faults)

describe('the schedule', () => {
  it('is deterministic for a seed and differs between seeds', () => {
    expect(createRounds(1, 20, 50)).toEqual(rounds.slice(0, 50))
    expect(createRounds(2, 20, 50)).not.toEqual(rounds.slice(0, 50))
  })

  it('has every kind before a kind occurs a third time', () => {
    const seen = new Map<string, number>()
    for (const { name } of faults) {
      seen.set(name, (seen.get(name) ?? 0) + 1)
      if (seen.get(name) === 3) break
    }
    expect([...seen.keys()].toSorted()).toEqual(faultNames.toSorted())
  })

  it('sometimes has two faults in a round, in different components and replicas', () => {
    const pairs = rounds.filter(round => round.faults.length === 2)
    expect(pairs.length).toBeGreaterThan(40)
    for (const round of pairs) {
      expect(new Set(round.faults.map(({ name }) => faultKinds[name].part)).size).toBe(2)
      expect(new Set(round.faults.map(({ replica }) => replica)).size).toBe(2)
    }
  })

  it('respects the minimum and maximum duration of each kind', () => {
    for (const { name, durationMs, afterMs, strength } of faults) {
      const [min, max] = faultKinds[name].durationMs
      expect(durationMs).toBeGreaterThanOrEqual(min)
      expect(durationMs).toBeLessThanOrEqual(max)
      expect(afterMs).toBeLessThan(1_000)
      expect(strength).toBeLessThan(1)
    }
  })

  it('ends every replica in the first rounds, and the steady replica only there', () => {
    const ended = (rounds: readonly Round[]) =>
      rounds
        .flatMap(round => round.faults)
        .filter(({ name }) => name === 'replica killed' || name === 'replica terminated')
        .map(({ replica }) => replica)
    expect(ended(rounds.slice(8))).not.toContain(STEADY_REPLICA)
    expect(new Set(ended(rounds.slice(8)))).toEqual(new Set([1, 2]))
    const early = Array.from({ length: 20 }, (_, seed) => ended(createRounds(seed, 20, 8))).flat()
    expect(new Set(early)).toEqual(new Set([0, 1, 2]))
  })

  it('omits long faults from a short run', () => {
    const names = (minutes: number) =>
      createRounds(1, minutes, 60).flatMap(round => round.faults.map(({ name }) => name))
    expect(names(1)).not.toContain('replica frozen for long')
    expect(names(5)).toContain('replica frozen for long')
  })

  it('quiesces after every second round', () => {
    expect(rounds.slice(0, 4).map(({ quiesceAfter }) => quiesceAfter)).toEqual([false, true, false, true])
  })
})
