import { createDelayQueue } from '@pool/test-kit/delay-queue.ts'
import { beforeEach, describe, expect, it } from 'vitest'

let clock: number
let sent: string[]
let timers: { readonly at: number; readonly then: () => void }[]
let carry: (item: string, delayMs: number) => void

beforeEach(() => {
  clock = 0
  sent = []
  timers = []
  carry = createDelayQueue({
    send: item => void sent.push(`${item} at ${clock}`),
    now: () => clock,
    after: (ms, then) => void timers.push({ at: clock + ms, then }),
  })
})

/** The timers that are due are heard only here, as on a machine that is too busy for them before. */
const run = (until: number) => {
  for (;;) {
    const next = timers.filter(({ at }) => at <= until).sort((one, other) => one.at - other.at)[0]
    if (!next) break
    timers.splice(timers.indexOf(next), 1)
    clock = Math.max(clock, next.at)
    next.then()
  }
  clock = Math.max(clock, until)
}

describe('what is carried late', () => {
  it('goes at once where nothing is to be late', () => {
    carry('a', 0)
    expect(sent).toEqual(['a at 0'])
    expect(timers).toEqual([])
  })

  it('goes each after its own delay', () => {
    carry('a', 20)
    clock = 5
    carry('b', 20)
    run(100)
    expect(sent).toEqual(['a at 20', 'b at 25'])
  })

  it('goes behind what came earlier, when the delay gets shorter', () => {
    carry('a', 20)
    carry('b', 3)
    carry('c', 0)
    run(100)
    expect(sent).toEqual(['a at 20', 'b at 20', 'c at 20'])
  })

  it('goes behind what is due and has not gone out', () => {
    carry('a', 20)
    clock = 60
    carry('b', 0)
    expect(sent).toEqual([])
    run(100)
    expect(sent).toEqual(['a at 60', 'b at 60'])
    carry('c', 0)
    expect(sent.at(-1)).toBe('c at 100')
  })

  it('never goes early, though timers know whole milliseconds only', () => {
    clock = 0.25
    carry('a', 1.5)
    run(100)
    expect(sent).toEqual(['a at 2.25'])
  })
})
