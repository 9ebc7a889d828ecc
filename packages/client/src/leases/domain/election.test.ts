import { describe, expect, test } from 'vitest'
import type { Instant } from './elapsed-time.ts'
import {
  type Action,
  afterStop,
  applyResult,
  cancel,
  createElection,
  decide,
  type ElectionRules,
  type ElectionState,
  type ObservedLease,
  type Result,
  type Sent,
} from './election.ts'

const rules: ElectionRules = {
  identity: 'a',
  isUnique: false,
  leaseDuration: 30_000,
  renewDeadline: 20_000,
  retryPeriod: 5_000,
}
const unique = { ...rules, isUnique: true }

/** Both clocks show `ms`, unless the wall clock has advanced further. */
const at = (ms: number, wallMs = ms): Instant => ({ monotonicMs: ms, wallMs })

const lease = (holder: string, generation: number, remainingMs = 30_000, acquiredAt = 'tenure 1'): ObservedLease => ({
  holder,
  generation,
  remainingMs: holder === '' ? 0 : remainingMs,
  acquiredAt: holder === '' ? '' : acquiredAt,
})
const granted = (generation: number, remainingMs = 30_000): Result => ({
  kind: 'granted',
  lease: lease('a', generation, remainingMs),
})
const observed = (shown: ObservedLease, waited = false): Result => ({ kind: 'observed', lease: shown, waited })
const unknown: Result = { kind: 'unknown', retryAfterMs: 0 }
const failed: Result = { kind: 'failed', retryAfterMs: 0 }

/** Applies a result to the request that the rules would send at `sentAt`. */
const apply = (
  state: ElectionState,
  sentAt: Instant,
  result: Result,
  now: Instant,
  random = 0,
  withRules = rules,
): ElectionState => {
  const action = decide(withRules, state, sentAt)
  if (action.kind === 'sleep' || action.kind === 'stop') throw new Error(`no request, but ${action.kind}`)
  const sent: Sent = { kind: action.kind, generation: action.generation, sentAt }
  return applyResult(withRules, state, sent, result, now, random)
}

const start = createElection(at(0))
/** Reads a vacant slot, and acquires it with a request that is sent at 10 and granted at 20. */
const leading = apply(apply(start, at(0), observed(lease('', 4)), at(10)), at(10), granted(5), at(20))
const describeAction = ({ kind, ...rest }: Action) => {
  if ('generation' in rest) return `${kind} ${rest.generation} within ${rest.timeoutMs}`
  return 'ms' in rest ? `${kind} ${rest.ms}` : `${kind}: ${rest.reason}`
}
const next = (state: ElectionState, now: Instant) => describeAction(decide(rules, state, now))

describe('a standby', () => {
  test.each<[string, Result, number, string]>([
    ['a lease of another candidate: wait until it is vacant', observed(lease('b', 7)), 0, 'wait 7 within 40000'],
    ['a vacant lease: acquire', observed(lease('', 7)), 0, 'acquire 7 within 20000'],
    ['an expired lease: acquire', observed(lease('b', 7, 0)), 0, 'acquire 7 within 20000'],
    ['a slot that was never written: acquire', observed(lease('', 0)), 0, 'acquire 0 within 20000'],
    ['a race for a vacant lease: wait up to a fiftieth of the retry period', observed(lease('', 7)), 1, 'sleep 100'],
    ['its own name, not acquired by it: wait until it is vacant', observed(lease('a', 7)), 0, 'wait 7 within 40000'],
    ['no response: pause', failed, 0, 'sleep 4900'],
    ['no response with Retry-After: pause longer', { kind: 'failed', retryAfterMs: 9_000 }, 0, 'sleep 9000'],
  ])('%s', (_, result, random, expected) => {
    expect(next(apply(start, at(0), result, at(100), random), at(100))).toBe(expected)
  })

  test('a wait that ends without a vacancy is repeated at once, one that was not granted after a pause with jitter', () => {
    const waiting = apply(start, at(0), observed(lease('b', 7)), at(10))
    const after = (waited: boolean, random: number) =>
      next(apply(waiting, at(10), observed(lease('b', 9), waited), at(110), random), at(110))
    expect([after(true, 1), after(false, 0), after(false, 1)]).toEqual([
      'wait 9 within 40000',
      'sleep 4900',
      'sleep 10900',
    ])
  })

  describe('a wait that its path ended', () => {
    const waiting = apply(start, at(0), observed(lease('b', 7)), at(0))
    const timedOut: Result = { ...failed, timedOut: true }
    const stopping: Result = { kind: 'failed', retryAfterMs: 3_000 }

    test.each<[string, number, Result, string]>([
      ['after half of its time: the next one is shorter', 15_000, failed, 'wait 0 within 21000'],
      ['after all of it: too', 30_000, failed, 'wait 0 within 32000'],
      ['after 2 s: the next one is not shorter than 3 s, a retry period after this one', 2_000, failed, 'sleep 3000'],
      ['after 3 s with Retry-After: it has its length', 7_000, stopping, 'sleep 3000'],
      ['before it began: a pause with jitter', 999, failed, 'sleep 10001'],
      ['in silence: a pause with jitter', 5_000, timedOut, 'sleep 6000'],
    ])('%s', (_, ranMs, result, expected) => {
      expect(next(apply(waiting, at(0), result, at(ranMs), 1), at(ranMs))).toBe(expected)
    })

    const run = (state: ElectionState, ranMs: number, result: Result, times: number) => {
      let current = state
      for (let time = 0; time < times; time += 1)
        current = apply({ ...current, at: { since: at(0), ms: 0 } } as ElectionState, at(0), result, at(ranMs))
      return current
    }

    test('does not count as a failure, and a wait with Retry-After is as long as before', () => {
      expect(run(waiting, 15_000, failed, 9)).toMatchObject({ failures: 0, pathSeconds: 11 })
      expect(run(waiting, 15_000, stopping, 9)).toMatchObject({ failures: 0, pathSeconds: 60 })
      expect(run(waiting, 999, failed, 2)).toMatchObject({ failures: 2, pathSeconds: 60 })
    })

    test('each complete wait makes the next one a second longer, up to the lease', () => {
      const cut = run(waiting, 15_000, failed, 1)
      const after = (times: number) => next(run(cut, 11_000, observed(lease('b', 7), true), times), at(11_000))
      expect([after(1), after(4), after(30)]).toEqual([
        'wait 7 within 22000',
        'wait 7 within 25000',
        'wait 7 within 40000',
      ])
    })
  })

  const acquiring = apply(start, at(0), observed(lease('', 4)), at(10))

  test('the tenure counts from before the request, and its token is the generation', () => {
    const state = apply(acquiring, at(10), granted(5), at(4_000))
    expect(state).toMatchObject({
      kind: 'leading',
      tenure: { fencingToken: 5, generation: 5, deadline: { since: at(10), ms: 20_000 } },
    })
    expect(next(state, at(20_009))).toBe('renew 5 within 1')
    expect(next(state, at(20_010))).toBe('stop: renew-deadline')
  })

  test('a grant that arrives after its deadline does not start a tenure', () => {
    const state = apply(acquiring, at(10), granted(5), at(20_010))
    expect(next(state, at(20_010))).toBe('acquire 5 within 20000')
  })

  test('an acquisition without a response is not repeated: the lease is read and compared', () => {
    const state = apply(acquiring, at(10), unknown, at(5_010))
    expect(next(state, at(5_010))).toBe('read 0 within 20000')
    const afterRead = (shown: ObservedLease, withRules = rules) =>
      next(apply(state, at(5_010), observed(shown), at(5_020), 0, withRules), at(5_020))
    // It did not take effect, and the slot is vacant.
    expect(afterRead(lease('', 4))).toBe('acquire 4 within 20000')
    // Another candidate was faster, perhaps one of the same name.
    expect(afterRead(lease('b', 5))).toBe('wait 5 within 40000')
    expect(afterRead(lease('a', 5))).toBe('wait 5 within 40000')
    // It took effect, because no other candidate has the name: a new write gives the tenure a token.
    expect(afterRead(lease('a', 5), unique)).toBe('acquire 5 within 20000')
  })

  test.each([
    ['only this candidate can have: it holds the lease', unique, 'acquire 5 within 20000'],
    ['another candidate can have: wait', rules, 'wait 5 within 40000'],
  ])('a rejected acquisition that shows a name that %s', (_, withRules, expected) => {
    expect(next(apply(acquiring, at(10), observed(lease('a', 5)), at(20), 0, withRules), at(20))).toBe(expected)
  })

  test('a tenure that ended early is its own, unless it was released or another one has the lease', () => {
    const afterTenure = (stopping: ElectionState, shown: ObservedLease) =>
      next(apply(afterStop(stopping, at(300), 0), at(300), observed(shown), at(310)), at(310))
    const ended = apply(leading, at(5_010), granted(6), at(20_010))
    expect(afterTenure(ended, lease('a', 6))).toBe('acquire 6 within 20000')
    expect(afterTenure(ended, lease('a', 7, 30_000, 'tenure 2'))).toBe('wait 7 within 40000')
    expect(afterTenure(cancel(leading), lease('a', 5))).toBe('wait 5 within 40000')
  })

  test('lost races show many candidates: the next race is spread over more time', () => {
    let state = acquiring
    const windows: string[] = []
    for (let race = 0; race < 6; race += 1) {
      state = apply(state, at(10), observed(lease('b', 5)), at(20))
      state = apply(state, at(20), observed(lease('', 6)), at(20), 1)
      windows.push(next(state, at(20)))
      state = { ...state, at: { since: at(0), ms: 0 } } as ElectionState
    }
    expect(windows).toEqual(['sleep 200', 'sleep 400', 'sleep 800', 'sleep 1250', 'sleep 1250', 'sleep 1250'])
  })
})

test('failures in a row double the pause up to the lease, and the timeout up to the deadline', () => {
  let state = start
  const seen: string[] = []
  for (let now = 0; seen.length < 5; now += 60_000) {
    seen.push(next(state, at(now)))
    state = apply(state, at(now), failed, at(now))
    seen.push(next(state, at(now)))
  }
  expect(seen).toEqual([
    'read 0 within 10000',
    'sleep 5000',
    'read 0 within 20000',
    'sleep 10000',
    'read 0 within 20000',
    'sleep 20000',
  ])
})

describe('a leader', () => {
  test('renews after the retry period, and up to a tenth earlier', () => {
    expect(next(leading, at(20))).toBe('sleep 4990')
    expect(next(leading, at(5_010))).toBe('renew 5 within 10000')
    const renewed = apply(leading, at(5_010), granted(6), at(5_020), 1)
    expect(next(renewed, at(5_020))).toBe('sleep 4490')
  })

  test('renewals of one phase are sent at the same time', () => {
    const aligned = { ...rules, renewalPhaseMs: 1_000 }
    const sent: Sent = { kind: 'renew', generation: 5, sentAt: at(5_010) }
    const state = applyResult(aligned, leading, sent, granted(6), at(5_020), 1)
    expect(decide(aligned, state, at(5_020))).toEqual({ kind: 'sleep', ms: 980 })
  })

  test('a renewal extends the tenure from before its request, and keeps the token', () => {
    const renewed = apply(leading, at(5_010), granted(6), at(9_000))
    expect(renewed).toMatchObject({ tenure: { fencingToken: 5, generation: 6, deadline: { since: at(5_010) } } })
    expect(next(renewed, at(25_009))).toBe('renew 6 within 1')
    expect(next(renewed, at(25_010))).toBe('stop: renew-deadline')
  })

  test.each<[string, Instant]>([
    ['by the monotonic clock', at(20_010, 0)],
    ['by the wall clock, after the machine was suspended', at(100, 20_010)],
  ])('stops at the deadline %s', (_, now) => {
    expect(next(leading, now)).toBe('stop: renew-deadline')
  })

  test('stops before the lease expires, if the witness grants less than was requested', () => {
    const state = apply(apply(start, at(0), observed(lease('', 4)), at(10)), at(10), granted(5, 12_000), at(20))
    expect(next(state, at(2_009))).toBe('sleep 1')
    expect(next(state, at(2_010))).toBe('stop: renew-deadline')
  })

  test('a response after the deadline does not continue the tenure', () => {
    const late = apply(leading, at(5_010), granted(6), at(20_010))
    expect(next(late, at(20_010))).toBe('stop: renew-deadline')
    expect(next(afterStop(late, at(20_100), 0), at(20_100))).toBe('read 0 within 10000')
  })

  test.each<[string, ObservedLease]>([
    ['another candidate holds the lease', lease('b', 6)],
    ['the lease was released', lease('', 6)],
    ['the lease has expired', lease('a', 5, 0)],
    ['it was acquired again under the same name', lease('a', 7, 30_000, 'tenure 2')],
  ])('stops if %s', (_, shown) => {
    expect(next(apply(leading, at(5_010), observed(shown), at(5_020)), at(5_020))).toBe('stop: lease-lost')
  })

  test('continues with a generation that the witness has increased', () => {
    const state = apply(leading, at(5_010), observed(lease('a', 1_048_581, 24_000)), at(5_020))
    expect(next(state, at(10_010))).toBe('renew 1048581 within 10000')
  })

  const uncertain = apply(leading, at(5_010), unknown, at(10_010))

  test('a renewal without a response is not repeated: the lease is read and compared', () => {
    expect(next(uncertain, at(10_010))).toBe('read 5 within 10000')
  })

  test('it took effect: the read extends the tenure by the remaining time', () => {
    const state = apply(uncertain, at(10_010), observed(lease('a', 6, 25_500)), at(10_050))
    expect(state).toMatchObject({
      tenure: { fencingToken: 5, generation: 6, deadline: { since: at(10_010), ms: 15_500 } },
    })
    expect(next(state, at(10_050))).toBe('renew 6 within 10000')
  })

  test('it had no effect: the tenure has the deadline that it had', () => {
    const state = apply(uncertain, at(10_010), observed(lease('a', 5, 19_999)), at(10_050))
    expect(next(state, at(10_050))).toBe('renew 5 within 9960')
    expect(next(state, at(20_010))).toBe('stop: renew-deadline')
  })

  test('a witness that fails quickly does not get a request at once', () => {
    const state = apply(leading, at(5_010), { kind: 'unknown', retryAfterMs: 1_000 }, at(5_011))
    expect(next(state, at(5_011))).toBe('sleep 1000')
    const read = apply(state, at(6_011), observed(lease('a', 5, 24_000)), at(6_020))
    expect(next(read, at(6_020))).toBe('sleep 3990')
    expect(next(apply(leading, at(5_010), failed, at(5_011)), at(5_011))).toBe('sleep 4999')
  })

  test.each<[string, Result, string, string]>([
    ['of a write', { kind: 'unknown', retryAfterMs: 60_000 }, 'sleep 7495', 'read 5 within 7495'],
    ['of a request without effect', { kind: 'failed', retryAfterMs: 60_000 }, 'sleep 7495', 'renew 5 within 7495'],
  ])('Retry-After %s leaves half of the time until the deadline', (_, result, pause, attempt) => {
    const state = apply(leading, at(5_010), result, at(5_020))
    expect([next(state, at(5_020)), next(state, at(12_515))]).toEqual([pause, attempt])
  })

  test('stops when it is cancelled', () => {
    expect(next(cancel(leading), at(100))).toBe('stop: cancelled')
    expect(cancel(start)).toBe(start)
  })
})
