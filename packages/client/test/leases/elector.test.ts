import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import type { ElectionDurations } from '../../src/leases/domain/durations.ts'
import { LeaseElector, type LeaseElectorOptions } from '../../src/leases/elector.ts'
import { guard, StaleFencingTokenError } from '../../src/leases/guard.ts'
import { createIdentity } from '../../src/leases/identity.ts'
import { PreferenceElector } from '../../src/leases/preference.ts'
import { type LeadershipContext, LeadershipLostError } from '../../src/leases/tenure-context.ts'
import { withLease } from '../../src/leases/with-lease.ts'
import { ModelWitnesses } from './support/model-calls.ts'

const DURATIONS = { leaseDuration: 10_000, renewDeadline: 7_000, retryPeriod: 1_500 } as const
const SHORTEST = { leaseDuration: 1_000, renewDeadline: 700, retryPeriod: 200 } as const
const SHORT = { leaseDuration: 6_000, renewDeadline: 4_000, retryPeriod: 1_000 } as const

let witness: ModelWitnesses
let events: string[]
let stops: (() => Promise<void>)[]

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date', 'performance'] })
  vi.spyOn(console, 'warn').mockImplementation(() => {})
  witness = new ModelWitnesses()
  events = []
  stops = []
})
afterEach(async () => {
  const stopped = Promise.all(stops.map(stop => stop()))
  await vi.advanceTimersByTimeAsync(30_000)
  await stopped
  vi.restoreAllMocks()
  vi.useRealTimers()
})

const pass = (ms: number) => vi.advanceTimersByTimeAsync(ms)

const toOptions = (identity: string, options: Partial<LeaseElectorOptions> = {}): LeaseElectorOptions => ({
  ...DURATIONS,
  leases: witness,
  slot: 'slot',
  identity,
  ...options,
  callbacks: {
    onStartedLeading: ({ fencingToken }) => void events.push(`${identity} starts with ${fencingToken}`),
    onStoppedLeading: reason => void events.push(`${identity} stops: ${reason}`),
    onNewLeader: leader => void events.push(`${identity} sees ${leader}`),
    ...options.callbacks,
  },
})

/** Runs an elector until the end of the test, or until `stop`. */
const run = (elector: LeaseElector) => {
  const controller = new AbortController()
  const finished = elector.run(controller.signal)
  finished.catch(() => {})
  const stop = async () => {
    controller.abort()
    await finished.catch(() => {})
  }
  stops.push(stop)
  return { elector, finished, stop }
}
const start = (identity: string, options?: Partial<LeaseElectorOptions>) =>
  run(new LeaseElector(toOptions(identity, options)))

describe('a tenure', () => {
  test('one candidate leads, and the others see it', async () => {
    const a = start('a')
    await pass(100)
    const b = start('b')
    await pass(30_000)
    expect(events).toEqual(['a sees a', 'a starts with 1', 'b sees a'])
    expect([a.elector.isLeader(), b.elector.isLeader()]).toEqual([true, false])
    expect(a.elector.health()).toMatchObject({ isLeader: true, leader: 'a' })
    expect(a.elector.health().remainingMs).toBeGreaterThan(DURATIONS.renewDeadline - DURATIONS.retryPeriod - 10)
    expect(b.elector.health()).toMatchObject({ isLeader: false, remainingMs: 0, leader: 'a' })
    expect(a.elector.metrics()).toMatchObject({ tenures: 1, failures: 0, lostRaces: 0 })
    expect(a.elector.metrics().renewals).toBeGreaterThanOrEqual(19)
  })

  test('ends at the deadline without a response, before the lease expires', async () => {
    const a = start('a')
    await pass(100)
    witness.isDown = true
    const stoppedAt = () => events.includes('a stops: renew-deadline')
    await pass(DURATIONS.renewDeadline - DURATIONS.retryPeriod - 100)
    expect([a.elector.isLeader(), stoppedAt()]).toEqual([true, false])
    await pass(DURATIONS.retryPeriod + 100)
    expect([a.elector.isLeader(), stoppedAt()]).toEqual([false, true])
    expect(witness.slot('slot').isHeld(performance.now())).toBe(true)
    witness.isDown = false
    await pass(20_000)
    expect(events.slice(2)).toEqual(['a stops: renew-deadline', expect.stringMatching(/^a starts with /)])
  })

  test('has ended for every call after a pause of the process, before a timer runs', async () => {
    let context: LeadershipContext | undefined
    const written: string[] = []
    const { elector } = start('a', {
      callbacks: {
        ...toOptions('a').callbacks,
        onStartedLeading: started => {
          context = started
        },
      },
    })
    await pass(100)
    const resource = context?.guard({ write: (token: number, text: string) => written.push(`${token} ${text}`) })
    resource?.write('in time')
    const signal = context?.signal
    vi.setSystemTime(Date.now() + DURATIONS.renewDeadline)
    // The copy of the signal is that of the moment at which it was read.
    expect(signal?.aborted).toBe(false)
    expect(context?.remainingMs()).toBe(0)
    expect([elector.isLeader(), context?.isLeader(), context?.signal.aborted]).toEqual([false, false, true])
    expect(() => resource?.write('late')).toThrow(LeadershipLostError)
    expect(() => context?.assertLeader()).toThrow('no longer leads slot (renew-deadline)')
    expect(written).toEqual(['1 in time'])
    await pass(10)
    expect(events.at(-1)).toBe('a stops: renew-deadline')
    // The lease is read before anything else, and the next tenure has a token of its own.
    expect(witness.requests.slice(-2)).toEqual(['read slot', 'acquire slot'])
    expect(context?.fencingToken).toBe(2)
  })

  test('a stop waits for the work, and then releases the lease', async () => {
    const { elector, finished, stop } = start('a', {
      callbacks: {
        ...toOptions('a').callbacks,
        onStartedLeading: async ({ signal }) => {
          await new Promise(resolve => signal.addEventListener('abort', resolve))
          events.push(`aborted, leader: ${elector.isLeader()}`)
          await new Promise(resolve => setTimeout(resolve, 2_000))
          events.push(`work ends, held: ${witness.slot('slot').isHeld(performance.now())}`)
        },
      },
    })
    await pass(100)
    void stop()
    await pass(2_100)
    await finished
    expect(events.slice(1)).toEqual(['a stops: cancelled', 'aborted, leader: false', 'work ends, held: true'])
    expect(witness.slot('slot').isHeld(performance.now())).toBe(false)
  })

  test('work that does not stop keeps the lease until it expires, and this process from leading again', async () => {
    let end = () => {}
    const { elector } = start('a', {
      callbacks: {
        ...toOptions('a').callbacks,
        onStartedLeading: () =>
          new Promise(resolve => {
            end = resolve
            events.push('work starts')
          }),
      },
    })
    await pass(100)
    elector.handOver()
    await pass(30_000)
    expect(events.slice(1)).toEqual(['work starts', 'a stops: cancelled'])
    expect(witness.requests.filter(request => request === 'release slot')).toEqual([])
    end()
    await pass(10_000)
    expect(events.at(-1)).toBe('work starts')
  })

  test('without releaseOnCancel, the lease expires', async () => {
    const { stop } = start('a', { releaseOnCancel: false })
    await pass(100)
    void stop()
    await pass(100)
    expect(witness.slot('slot').isHeld(performance.now())).toBe(true)
    expect(witness.requests).not.toContain('release slot')
  })

  test('an error of the work ends the tenure, releases the lease, and rejects', async () => {
    const { finished } = start('a', {
      callbacks: {
        ...toOptions('a').callbacks,
        onStartedLeading: async () => {
          throw new Error('the work failed')
        },
      },
    })
    await pass(100)
    await expect(finished).rejects.toThrow('the work failed')
    expect(events.at(-1)).toBe('a stops: cancelled')
    expect(witness.slot('slot').isHeld(performance.now())).toBe(false)
  })

  test('one 503 whose Retry-After ends after the deadline does not end the tenure', async () => {
    const a = start('a', SHORT)
    await pass(100)
    witness.failNextWrite(5_000)
    await pass(30_000)
    expect(witness.requests.filter(request => request === 'acquire slot')).toHaveLength(1)
    expect(a.elector.metrics()).toMatchObject({ tenures: 1, failures: 1 })
  })

  test('a lease that another writer took ends the tenure', async () => {
    start('a')
    await pass(100)
    const slot = witness.slot('slot')
    slot.write('release', 'a', slot.generation, 0, performance.now())
    slot.write('acquire', 'b', slot.generation, 10_000, performance.now())
    await pass(DURATIONS.retryPeriod)
    expect(events.slice(2)).toEqual(['a sees b', 'a stops: lease-lost'])
  })
})

describe('late responses', () => {
  /** The part of two minutes in which there is a leader. */
  const measureLeadership = async (latencyMs: number, identities: readonly string[]) => {
    witness.latencyMs = latencyMs
    const electors = identities.map(identity => start(identity, SHORT).elector)
    const STEPS = 1_200
    let led = 0
    for (let step = 0; step < STEPS; step += 1) {
      await pass(100)
      const leaders = electors.filter(elector => elector.isLeader()).length
      expect(leaders).toBeLessThan(2)
      led += leaders
    }
    return led / STEPS
  }

  test.each([500, 1_200, 1_800])('of %i ms, of a deadline of 4 s: there is a leader', async latencyMs => {
    expect(await measureLeadership(latencyMs, ['a', 'b'])).toBeGreaterThan(0.9)
  })

  test('of more than half of the deadline: tenures without a renewal', async () => {
    const part = await measureLeadership(2_500, ['a', createIdentity('b')])
    expect(part).toBeGreaterThan(0.1)
    expect(part).toBeLessThan(0.5)
  })
})

describe('a path that ends waits', () => {
  const DEFAULTS = { leaseDuration: 30_000, renewDeadline: 20_000, retryPeriod: 5_000 } as const

  test.each<[string, ElectionDurations, (seconds: number) => number]>([
    ['after half of each wait', DEFAULTS, seconds => seconds * 500],
    ['after half of each wait, short durations', SHORT, seconds => seconds * 500],
    ['after half of each wait, the shortest lease', SHORTEST, seconds => seconds * 500],
    ['after 15 s', DEFAULTS, () => 15_000],
    ['after 2 s', DEFAULTS, () => 2_000],
    ['at the end of each wait', DEFAULTS, seconds => seconds * 1_000 - 1],
  ])('%s: a standby leads within two retry periods of a release', async (_, durations, toWaitLimitMs) => {
    witness.toWaitLimitMs = toWaitLimitMs
    const electors = ['a', 'b'].map(identity => start(identity, durations).elector)
    for (let round = 0; round < 20; round += 1) {
      await pass(60_000 + round * 1_700)
      const [leader, standby] = electors.toSorted((a, b) => Number(b.isLeader()) - Number(a.isLeader()))
      leader?.handOver()
      await pass(2 * durations.retryPeriod)
      expect([leader?.isLeader(), standby?.isLeader()]).toEqual([false, true])
    }
  })

  test('learns its limit: most waits are complete', async () => {
    witness.toWaitLimitMs = () => 15_000
    start('a', DEFAULTS)
    await pass(100)
    const { elector } = start('b', DEFAULTS)
    await pass(600_000)
    const waits = witness.requests.filter(request => request === 'wait slot').length
    expect(waits).toBeGreaterThan(40)
    expect(elector.metrics().failures).toBeLessThan(waits / 4)
  })
})

test('the time since the last response does not depend on the wall clock', async () => {
  const { elector } = start('a')
  await pass(100)
  vi.setSystemTime(Date.now() + 3_600_000)
  await pass(DURATIONS.retryPeriod)
  witness.isDown = true
  await pass(6_000)
  expect(elector.health().lastResponseMs).toBeGreaterThanOrEqual(6_000)
  expect(elector.health().lastResponseMs).toBeLessThan(6_000 + DURATIONS.retryPeriod)
})

test.each<[string, string, string]>([
  ['is from createIdentity', createIdentity('a'), 'acquire slot'],
  ['was chosen', 'a', 'wait slot'],
])('after an acquisition without a response, a lease of its name, which %s', async (_, identity, expected) => {
  witness.isMute = true
  start(identity)
  await pass(DURATIONS.renewDeadline)
  witness.isMute = false
  await pass(100)
  expect(witness.requests.slice(0, 4)).toEqual(['read slot', 'acquire slot', 'read slot', expected])
})

test('a release without a response is not repeated on the lease of another candidate of the same name', async () => {
  const { stop } = start('a')
  await pass(100)
  witness.isMute = true
  void stop()
  await pass(0)
  const slot = witness.slot('slot')
  slot.write('acquire', 'a', slot.generation, 10_000, performance.now())
  await pass(DURATIONS.leaseDuration)
  expect(witness.requests.slice(2)).toEqual(['release slot', 'read slot'])
})

describe('a handover', () => {
  test('another candidate leads at once, and the former leader is a standby', async () => {
    const a = start('a')
    await pass(100)
    const b = start('b')
    await pass(100)
    a.elector.handOver()
    await pass(200)
    expect(events.slice(3)).toEqual(['a stops: cancelled', 'b sees b', 'b starts with 3'])
    await pass(20_000)
    expect([a.elector.isLeader(), b.elector.isLeader()]).toEqual([false, true])
    expect(events.at(-1)).toBe('a sees b')
  })

  test('a candidate hands over to the preferred one, and leads again after it', async () => {
    const startPreference = (identity: string, isPreferred: boolean) =>
      run(new PreferenceElector({ ...toOptions(identity), isPreferred }))
    const a = startPreference('a', false)
    const b = startPreference('b', false)
    await pass(5_000)
    expect(a.elector.isLeader() || b.elector.isLeader()).toBe(true)
    const preferred = startPreference('preferred', true)
    await pass(3 * DURATIONS.retryPeriod)
    expect(preferred.elector.isLeader()).toBe(true)
    void preferred.stop()
    await pass(3 * DURATIONS.leaseDuration)
    expect(preferred.elector.isLeader()).toBe(false)
    expect(a.elector.isLeader() || b.elector.isLeader()).toBe(true)
  })
})

describe('withLease', () => {
  const options = () => ({ ...DURATIONS, leases: witness, identity: 'a' })

  test('returns the result of the work, and releases the lease', async () => {
    const result = withLease('slot', async ({ fencingToken }) => `done with ${fencingToken}`, options())
    await pass(100)
    expect(await result).toBe('done with 1')
    expect(witness.slot('slot').isHeld(performance.now())).toBe(false)
  })

  test('waits while another candidate leads', async () => {
    const { stop } = start('b')
    await pass(100)
    const result = withLease('slot', async () => performance.now(), options())
    await pass(5_000)
    const releasedAt = performance.now()
    void stop()
    await pass(200)
    expect(await result).toBeGreaterThan(releasedAt)
  })

  test.each<[string, () => Promise<unknown>, RegExp]>([
    ['an error of the work', () => Promise.reject(new Error('the work failed')), /the work failed/],
    [
      'a result after the deadline',
      async () => {
        witness.isDown = true
        await new Promise(resolve => setTimeout(resolve, 15_000))
      },
      /no longer leads slot \(renew-deadline\)/,
    ],
  ])('rejects: %s', async (_, work, message) => {
    const result = withLease('slot', work, options())
    result.catch(() => {})
    await pass(40_000)
    await expect(result).rejects.toThrow(message)
  })

  test('rejects with the reason of its signal', async () => {
    start('b')
    await pass(100)
    const controller = new AbortController()
    const result = withLease('slot', async () => 1, { ...options(), signal: controller.signal })
    result.catch(() => {})
    await pass(100)
    controller.abort(new Error('shutdown'))
    await pass(100)
    await expect(result).rejects.toThrow('shutdown')
  })
})

test('guard: a resource rejects a lower fencing token than the highest it has seen', () => {
  const written: string[] = []
  const resource = guard({ write: (text: string) => written.push(text) })
  resource.write(4, 'a')
  resource.write(4, 'b')
  resource.write(9, 'c')
  expect(() => resource.write(8, 'late')).toThrow(StaleFencingTokenError)
  expect(() => resource.write(Number.NaN, 'invalid')).toThrow(StaleFencingTokenError)
  expect(written).toEqual(['a', 'b', 'c'])
})

test('an identity is unique to a start of the process', () => {
  expect(createIdentity('region-a/controller-0')).toMatch(/^region-a\/controller-0_[0-9a-f]{8}$/)
  expect(createIdentity('a')).not.toBe(createIdentity('a'))
})

test.each<[string, Partial<LeaseElectorOptions>, RegExp]>([
  ['durations', { renewDeadline: 10_000 }, /must be greater than renewDeadline/],
  ['a slot', { slot: '' }, /slot must be text of 1 to 506 bytes/],
  ['an identity', { identity: ' a' }, /holder must be 1 to 253 printable ASCII/],
  ['a value', { value: 'ä'.repeat(513) }, /value must be text of at most 1024 bytes/],
])('an elector rejects %s that violates a rule', (_, options, message) => {
  expect(() => new LeaseElector(toOptions('a', options))).toThrow(message)
})

test('an elector needs its callbacks, and a signal to run', async () => {
  const withoutCallbacks = { ...toOptions('a'), callbacks: {} } as unknown as LeaseElectorOptions
  expect(() => new LeaseElector(withoutCallbacks)).toThrow(/^callbacks\.onStartedLeading must be a function/)
  const elector = new LeaseElector(toOptions('a')) as unknown as { run: () => Promise<void> }
  await expect(elector.run()).rejects.toThrow(/^run needs an AbortSignal/)
})

test('an elector without onError warns of the first of the errors in a row, one with it does not', async () => {
  const failed = async () => ({ kind: 'failed' as const, retryAfterMs: 0, error: new Error('401 unauthorized') })
  const calls = { read: failed, waitUntilVacant: failed, acquire: failed, renew: failed, release: failed }
  const warn = vi.spyOn(console, 'warn')
  const errors: unknown[] = []
  const hanging = { ...calls, read: () => new Promise<never>(() => {}) }
  const late: unknown[] = []
  start('late', { leases: { calls: hanging }, onError: error => late.push(error) })
  start('silent', { leases: { calls } })
  start('b', { leases: { calls }, onError: error => errors.push(error) })
  await pass(30_000)
  expect(errors.length).toBeGreaterThan(1)
  expect(late).toContainEqual(expect.objectContaining({ name: 'NoResponseError', reasonCode: 'ETIMEDOUT' }))
  expect(warn.mock.calls).toEqual([
    [expect.stringMatching(/elector of slot failed; it continues: Error: 401 unauthorized/)],
  ])
})
