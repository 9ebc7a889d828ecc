import type { Prng } from '@pool/test-kit/prng.ts'
import { LeaseElector } from '../../../src/leases/elector.ts'
import { createIdentity } from '../../../src/leases/identity.ts'
import type { CallResult, LeaseCalls } from '../../../src/leases/lease-calls.ts'
import { type LeadershipContext, LeadershipLostError } from '../../../src/leases/tenure-context.ts'
import type { Timing } from '../../../src/timing.ts'
import { ModelWitness } from './model-witness.ts'

export const DURATIONS = { leaseDuration: 10_000, renewDeadline: 7_000, retryPeriod: 1_500 } as const

/** A leader stops this long before the witness grants the lease to another. */
const MARGIN_MS = DURATIONS.leaseDuration - DURATIONS.renewDeadline

/** Something that happens to one candidate or to its network. Times in milliseconds. */
export type Fault =
  /** The process does not run: SIGSTOP, a long garbage collection, a blocked event loop. Its clocks continue. */
  | { readonly kind: 'freeze'; readonly candidate: number; readonly at: number; readonly ms: number }
  /** The machine is suspended: its monotonic clock stands still. */
  | { readonly kind: 'suspend'; readonly candidate: number; readonly at: number; readonly ms: number }
  | { readonly kind: 'step-clock'; readonly candidate: number; readonly at: number; readonly byMs: number }
  /** Requests, responses, or both are lost. */
  | {
      readonly kind: 'drop'
      readonly candidate: number
      readonly at: number
      readonly ms: number
      readonly lost: 'requests' | 'responses' | 'both'
    }
  /** Requests and responses arrive up to this much later. */
  | {
      readonly kind: 'slow'
      readonly candidate: number
      readonly at: number
      readonly ms: number
      readonly byMs: number
    }
  | { readonly kind: 'hand-over'; readonly candidate: number; readonly at: number }

/** The identities of the candidates: one for each or the same for all, with or without `createIdentity`. */
export type Naming = 'created' | 'chosen' | 'one created' | 'one chosen'

const toIdentities = (naming: Naming, count: number): readonly string[] => {
  const chosen = Array.from({ length: count }, (_, index) => `candidate-${naming === 'one chosen' ? 0 : index}`)
  if (naming === 'one created') return chosen.fill(createIdentity('candidate'))
  return naming === 'created' ? chosen.map(createIdentity) : chosen
}

interface Event {
  readonly at: number
  readonly order: number
  readonly run: () => void
}

/** Lets every promise that can settle do so. */
const settlePromises = () => new Promise<void>(resolve => setImmediate(resolve))

/** Far more than the candidates need in one run. */
const MAX_EVENTS = 20_000

/** A world with one clock, in which nothing happens between two events. */
class World {
  now = 0
  #order = 0
  readonly #events: Event[] = []
  readonly random: Prng

  constructor(random: Prng) {
    this.random = random
  }

  /** Returns a function that cancels the event. */
  at(time: number, run: () => void): () => void {
    const event = { at: Math.max(time, this.now), order: this.#order++, run }
    let low = 0
    let high = this.#events.length
    while (low < high) {
      const middle = (low + high) >> 1
      const other = this.#events[middle]
      if (other && (other.at > event.at || (other.at === event.at && other.order > event.order))) low = middle + 1
      else high = middle
    }
    this.#events.splice(low, 0, event)
    return () => {
      const index = this.#events.indexOf(event)
      if (index >= 0) this.#events.splice(index, 1)
    }
  }

  async runUntil(time: number, afterEach: () => void): Promise<void> {
    await settlePromises()
    for (let count = 0; ; count += 1) {
      const event = this.#events.at(-1)
      if (!event || event.at > time) break
      if (count > MAX_EVENTS)
        throw new Error(`more than ${MAX_EVENTS} events until ${this.now} ms: a loop without a pause`)
      this.#events.pop()
      this.now = event.at
      event.run()
      await settlePromises()
      afterEach()
    }
    this.now = time
  }
}

interface Tenure {
  readonly context: LeadershipContext
  isStopped: boolean
}

/** A process with its own clocks, timers and network. */
class Candidate implements Timing {
  readonly identity: string
  readonly elector: LeaseElector
  readonly stop = new AbortController()
  tenure: Tenure | undefined
  isFrozen = false
  lost: 'none' | 'requests' | 'responses' | 'both' = 'none'
  slowMs = 0
  finished: Promise<void> = Promise.resolve()
  #wallAheadMs = 0
  #suspendedMs = 0
  #suspendedAt: number | undefined
  readonly #world: World
  /** What arrived while the process did not run. */
  #held: (() => void)[] = []

  constructor(identity: string, world: World, witness: ModelWitness, simulation: Simulation) {
    this.identity = identity
    this.#world = world
    this.elector = new LeaseElector({
      ...DURATIONS,
      leases: { calls: this.#connect(witness) },
      slot: 'slot',
      identity: this.identity,
      timing: this,
      onError: () => {},
      callbacks: {
        onStartedLeading: context => simulation.started(this, context),
        onStoppedLeading: () => simulation.stopped(this),
      },
    })
  }

  now(): number {
    return (this.#suspendedAt ?? this.#world.now) - this.#suspendedMs
  }

  wallNow(): number {
    return Math.floor(this.#world.now + this.#wallAheadMs)
  }

  random(): number {
    return this.#world.random.next()
  }

  schedule(ms: number, callback: () => void): () => void {
    let isCancelled = false
    // As the timers of every platform: whole milliseconds, at least one.
    const due = this.now() + Math.max(1, Math.ceil(ms))
    const fire = (): void => {
      if (isCancelled) return
      const leftMs = due - this.now()
      if (leftMs > 0) cancelEvent = this.#world.at(this.#world.now + leftMs, () => this.#deliver(fire))
      else callback()
    }
    let cancelEvent = this.#world.at(this.#world.now + (due - this.now()), () => this.#deliver(fire))
    return () => {
      isCancelled = true
      cancelEvent()
    }
  }

  stepClock(byMs: number): void {
    this.#wallAheadMs += byMs
  }

  freeze(ms: number, isSuspended: boolean): void {
    if (this.isFrozen) return
    this.isFrozen = true
    if (isSuspended) this.#suspendedAt = this.#world.now
    this.#world.at(this.#world.now + ms, () => {
      if (this.#suspendedAt !== undefined) this.#suspendedMs += this.#world.now - this.#suspendedAt
      this.#suspendedAt = undefined
      this.isFrozen = false
      // The process is checked before its timers and responses, which then run in any order.
      const held = this.#held
      this.#held = []
      this.#world.at(this.#world.now, () => {
        while (held.length > 0) held.splice(this.#world.random.below(held.length), 1)[0]?.()
      })
    })
  }

  #deliver(event: () => void): void {
    if (this.isFrozen) this.#held.push(event)
    else event()
  }

  #latency(): number {
    return 1 + this.#world.random.below(20) + this.#world.random.below(this.slowMs + 1)
  }

  #connect(witness: ModelWitness): LeaseCalls {
    const world = this.#world
    /** If the request or the response is lost, half of the calls end at once, and the others never. */
    const send = (
      failure: 'unknown' | 'failed',
      handle: (respond: (result: CallResult) => void) => void,
    ): Promise<CallResult> =>
      new Promise(resolve => {
        const respond = (result: CallResult) =>
          world.at(world.now + this.#latency(), () => this.#deliver(() => resolve(result)))
        const lose = () => {
          if (world.random.below(2) === 0) respond({ kind: failure, retryAfterMs: 0 })
        }
        if (this.lost === 'requests' || this.lost === 'both') return lose()
        world.at(world.now + this.#latency(), () =>
          handle(result => {
            if (this.lost === 'responses' || this.lost === 'both') lose()
            else respond(result)
          }),
        )
      })
    const write = (kind: 'acquire' | 'renew' | 'release', holder: string, generation: number, ttlMs: number) =>
      send('unknown', respond => {
        respond(witness.write(kind, holder, generation, ttlMs, world.now))
        if (kind !== 'release') world.at(witness.expiresAt, () => witness.notify(world.now))
      })
    return {
      read: () => send('failed', respond => respond(witness.read(world.now))),
      waitUntilVacant: (_slot, seconds) =>
        send('failed', respond => {
          const end = witness.wait(world.now, respond)
          world.at(world.now + seconds * 1_000, end)
        }),
      acquire: (_slot, { holder, generation, ttlMs }) => write('acquire', holder, generation, ttlMs),
      renew: (_slot, { holder, generation, ttlMs }) => write('renew', holder, generation, ttlMs),
      release: (_slot, { holder, generation }) => write('release', holder, generation, 0),
    }
  }
}

export interface SimulationResult {
  readonly violations: readonly string[]
  readonly tenures: number
  /** The number of calls of `isLeader` that returned true. */
  readonly positives: number
}

/** Runs candidates against a model of the witness, and checks after every event what each of them reports. */
export class Simulation {
  readonly violations: string[] = []
  tenures = 0
  positives = 0
  readonly #world: World
  readonly #witness = new ModelWitness()
  readonly #candidates: Candidate[]
  #highestToken = 0

  constructor(candidates: number, random: Prng, naming: Naming) {
    this.#world = new World(random)
    this.#candidates = toIdentities(naming, candidates).map(
      identity => new Candidate(identity, this.#world, this.#witness, this),
    )
  }

  started(candidate: Candidate, context: LeadershipContext): void {
    this.tenures += 1
    const { identity, tenure } = candidate
    if (tenure && !tenure.isStopped) this.#report(`${identity} started twice`)
    if (context.fencingToken <= this.#highestToken) this.#report(`${identity} started with an old fencing token`)
    this.#highestToken = context.fencingToken
    for (const other of this.#candidates) {
      if (other === candidate || !other.tenure || other.tenure.isStopped || other.isFrozen) continue
      this.#report(`${identity} started before ${other.identity} stopped`)
    }
    candidate.tenure = { context, isStopped: false }
  }

  stopped(candidate: Candidate): void {
    const { tenure, identity } = candidate
    if (!tenure || tenure.isStopped) {
      this.#report(`${identity} stopped without a start`)
      return
    }
    if (candidate.elector.isLeader()) this.#report(`${identity} is still leader in onStoppedLeading`)
    tenure.isStopped = true
  }

  async run(faults: readonly Fault[], durationMs: number): Promise<SimulationResult> {
    for (const candidate of this.#candidates) candidate.finished = candidate.elector.run(candidate.stop.signal)
    for (const fault of faults) this.#world.at(fault.at, () => this.#inject(fault))
    await this.#world.runUntil(durationMs, () => this.#check())
    for (const candidate of this.#candidates) candidate.lost = 'none'
    const { now } = this.#world
    // The longest freeze has ended by then, and one of the candidates has acquired the lease.
    await this.#world.runUntil(now + MAX_FREEZE_MS + 5 * DURATIONS.leaseDuration, () => this.#check())
    const leaders = this.#candidates.filter(({ elector }) => elector.isLeader())
    if (leaders.length !== 1) this.#report(`${leaders.length} leaders at the end`)
    for (const { stop } of this.#candidates) stop.abort()
    await this.#world.runUntil(this.#world.now + 2 * DURATIONS.leaseDuration, () => this.#check())
    let finished = 0
    for (const candidate of this.#candidates) void candidate.finished.then(() => (finished += 1))
    await settlePromises()
    if (finished !== this.#candidates.length) this.#report('run did not end')
    if (this.#witness.isHeld(this.#world.now)) this.#report('the lease was not released')
    const { violations, tenures, positives } = this
    return { violations, tenures, positives }
  }

  #inject(fault: Fault): void {
    const candidate = this.#candidates[fault.candidate % this.#candidates.length]
    if (!candidate) return
    if (fault.kind === 'freeze' || fault.kind === 'suspend') candidate.freeze(fault.ms, fault.kind === 'suspend')
    else if (fault.kind === 'step-clock') {
      // No clock of a process shows a suspension during which the wall clock was set back.
      if (!candidate.isFrozen) candidate.stepClock(fault.byMs)
    } else if (fault.kind === 'hand-over') {
      if (!candidate.isFrozen) candidate.elector.handOver()
    } else if (fault.kind === 'drop') {
      candidate.lost = fault.lost
      this.#world.at(this.#world.now + fault.ms, () => {
        candidate.lost = 'none'
      })
    } else {
      candidate.slowMs = fault.byMs
      this.#world.at(this.#world.now + fault.ms, () => {
        candidate.slowMs = 0
      })
    }
  }

  /** A process that does not run calls nothing. It calls again directly after it was frozen, before its timers. */
  #check(): void {
    const { now } = this.#world
    // The witness cannot tell candidates of one name apart.
    const leaders = this.#candidates.filter(({ elector, isFrozen }) => !isFrozen && elector.isLeader())
    if (leaders.length > 1) this.#report(`${leaders.length} leaders`)
    for (const { identity, elector, tenure, isFrozen } of this.#candidates) {
      if (isFrozen) continue
      this.#checkGuard(identity, tenure)
      if (!elector.isLeader()) continue
      this.positives += 1
      if (this.#witness.holder !== identity || now >= this.#witness.expiresAt)
        this.#report(`${identity} reports leadership without the lease`)
      if (now > this.#witness.expiresAt - MARGIN_MS) this.#report(`${identity} reports leadership after the deadline`)
      if (!tenure || tenure.isStopped) this.#report(`${identity} reports leadership outside of a tenure`)
      if (tenure?.context.signal.aborted) this.#report(`the signal of ${identity} is aborted while it leads`)
    }
  }

  /** A guarded call is sent only before the deadline. */
  #checkGuard(identity: string, tenure: Tenure | undefined): void {
    let isSent = false
    try {
      tenure?.context.guard({ write: () => (isSent = true) }).write()
    } catch (error) {
      if (!(error instanceof LeadershipLostError)) throw error
    }
    const isLate = this.#witness.holder !== identity || this.#world.now > this.#witness.expiresAt - MARGIN_MS
    if (isSent && (tenure?.isStopped || isLate))
      this.#report(`a guarded call of ${identity} is sent after the deadline`)
  }

  #report(what: string): void {
    this.violations.push(`${this.#world.now} ms: ${what}`)
  }
}

export const MAX_FREEZE_MS = 60_000
