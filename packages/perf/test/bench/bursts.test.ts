import { describe, expect, it } from 'vitest'
import { type BurstSubject, type Ended, runBursts } from '../../src/bench/load/bursts.ts'

/** A subject whose operations take as long as they say, one after another on a clock of its own. */
const played = (operations: readonly (readonly [ms: number, ended: Ended])[], { prepareMs = 0 } = {}) => {
  let [at, next, called] = [0, 0, 0]
  const prepared: number[] = []
  const subject: BurstSubject = {
    async prepare(count) {
      prepared.push(count)
      at += prepareMs
    },
    async operate(_, isOver) {
      if (isOver()) {
        at += 10
        return 'given up'
      }
      const [ms, ended] = operations[next++ % operations.length] ?? [0, 'done']
      at += ms
      called += 3
      return ended
    },
    calls: async () => called,
  }
  return { subject, prepared, now: () => at }
}

/** Its operations wait for each other, so that whoever is late sees how much time is left. */
const inTurn = ({ operate, ...rest }: BurstSubject): BurstSubject => {
  let last: Promise<unknown> = Promise.resolve()
  return {
    ...rest,
    operate(caller, isOver) {
      const ended = last.then(() => operate(caller, isOver))
      last = ended.then(() => new Promise(resolve => setImmediate(resolve)))
      return ended
    },
  }
}

describe('bursts', () => {
  it('are run until they have taken the time, what is prepared not counted', async () => {
    const { subject, prepared, now } = played([[100, 'done']], { prepareMs: 5_000 })
    const run = await runBursts(subject, 2, 0.5, now)
    expect(prepared).toEqual([2, 2, 2])
    expect(run).toMatchObject({ done: 6, late: 0, perSecond: 10, callsPerOperation: 3 })
  })

  it('are waited for: one that takes longer than the time is whole', async () => {
    const { subject, now } = played([[400, 'done']])
    expect(await runBursts(subject, 4, 0.1, now)).toMatchObject({ done: 4, perSecond: 2.5, p50Ms: 1_600, p99Ms: 1_600 })
  })

  it('leave out what was given up, and the first is never', async () => {
    const { subject, prepared, now } = played([[400, 'done']])
    const run = await runBursts(inTurn(subject), 64, 0.9, now)
    expect(prepared).toEqual([64])
    expect(run).toMatchObject({ done: 3, perSecond: 2.5, callsPerOperation: 3, p50Ms: 800, p99Ms: 1_200 })
    const second = played([[100, 'done']])
    expect(await runBursts(inTurn(second.subject), 4, 0.5, second.now)).toMatchObject({ done: 5, perSecond: 10 })
    const tiny = played([[400, 'done']])
    expect(await runBursts(inTurn(tiny.subject), 64, 0, tiny.now)).toMatchObject({ done: 0 })
    expect(await runBursts(inTurn(tiny.subject), 64, 0.001, tiny.now)).toMatchObject({ done: 1, perSecond: 2.5 })
  })

  it('count what is late apart, with its calls and without its latency', async () => {
    const { subject, now } = played([
      [100, 'done'],
      [900, 'late'],
    ])
    const run = await runBursts(inTurn(subject), 2, 1, now)
    expect(run).toMatchObject({ done: 1, late: 1, perSecond: 1, callsPerOperation: 3, p99Ms: 100 })
  })

  it('end with the first fault, which is counted; an error is one', async () => {
    const { subject, prepared, now } = played([[100, { fault: 'status 503' }]])
    const run = await runBursts(subject, 2, 60, now)
    expect(prepared).toEqual([2])
    expect(run).toMatchObject({ done: 0, perSecond: 0, faults: new Map([['status 503', 2]]) })
    const broken: BurstSubject = { ...subject, operate: () => Promise.reject(new Error('broken')) }
    expect((await runBursts(broken, 1, 60, now)).faults).toEqual(new Map([['broken', 1]]))
  })
})
