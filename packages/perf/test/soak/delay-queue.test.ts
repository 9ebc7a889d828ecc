import { createDelayQueue } from '@pool/test-kit/delay-queue.ts'
import { beforeEach, describe, expect, it } from 'vitest'

let clock: number
let sent: string[]
let timers: { readonly at: number; readonly then: () => void }[]
let enqueue: (item: string, delayMs: number) => void

beforeEach(() => {
  clock = 0
  sent = []
  timers = []
  enqueue = createDelayQueue({
    send: item => void sent.push(`${item} at ${clock}`),
    now: () => clock,
    after: (ms, then) => void timers.push({ at: clock + ms, then }),
  })
})

/** Runs the timers that are due only when it is called, like an event loop that was busy until then. */
const advanceTo = (until: number) => {
  for (;;) {
    const next = timers.filter(({ at }) => at <= until).sort((first, second) => first.at - second.at)[0]
    if (!next) break
    timers.splice(timers.indexOf(next), 1)
    clock = Math.max(clock, next.at)
    next.then()
  }
  clock = Math.max(clock, until)
}

describe('a delay queue', () => {
  it('sends immediately without a delay', () => {
    enqueue('a', 0)
    expect(sent).toEqual(['a at 0'])
    expect(timers).toEqual([])
  })

  it('sends each item after its own delay', () => {
    enqueue('a', 20)
    clock = 5
    enqueue('b', 20)
    advanceTo(100)
    expect(sent).toEqual(['a at 20', 'b at 25'])
  })

  it('preserves the order when the delay becomes shorter', () => {
    enqueue('a', 20)
    enqueue('b', 3)
    enqueue('c', 0)
    advanceTo(100)
    expect(sent).toEqual(['a at 20', 'b at 20', 'c at 20'])
  })

  it('sends a later item after items that are due but not sent yet', () => {
    enqueue('a', 20)
    clock = 60
    enqueue('b', 0)
    expect(sent).toEqual([])
    advanceTo(100)
    expect(sent).toEqual(['a at 60', 'b at 60'])
    enqueue('c', 0)
    expect(sent.at(-1)).toBe('c at 100')
  })

  it('never sends early, although timers have a resolution of one millisecond', () => {
    clock = 0.25
    enqueue('a', 1.5)
    advanceTo(100)
    expect(sent).toEqual(['a at 2.25'])
  })
})
