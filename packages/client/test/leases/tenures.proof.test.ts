import { setTimeout as sleep } from 'node:timers/promises'
import { shouldSkip } from '@pool/test-kit/optional-deps.ts'
import { createPrng } from '@pool/test-kit/prng.ts'
import { createProcessClock, missingProcessClock } from '@pool/test-kit/process-clock.ts'
import { proofSize, reportProof } from '@pool/test-kit/proof-size.ts'
import { startTcpProxy, type TcpProxy } from '@pool/test-kit/tcp-proxy.ts'
import { describe, expect, test } from 'vitest'
import { LeaseClient } from '../../src/leases/lease-client.ts'
import { type CandidateProcess, startCandidate, startObserver } from './support/candidates.ts'
import { type ClockStep, largestStepMs } from './support/clock-watch.ts'
import type { TenureSummary } from './support/tenure-judge.ts'
import { startPostgresWitness, startWitness } from './support/witness.ts'

const HOSTS = [
  { on: 'workerd', start: startWitness, hasGlitches: true, slots: 90, tenures: proofSize(10_000, 300) },
  // A server without fsync that shares the machine with the candidates.
  { on: 'Postgres', start: () => startPostgresWitness(), hasGlitches: false, slots: 20, tenures: proofSize(1_000, 50) },
] as const
const DURATIONS = { leaseDuration: 1_500, renewDeadline: 1_000, retryPeriod: 300 } as const
const CANDIDATES = 6
const MAX_FREEZE_MS = 60_000
const HOUR_MS = 3_600_000
/** The mean time between two handovers of all candidates. */
const MEAN_HANDOVER_MS = 50
/** The time between two faults of a candidate. */
const MAX_CALM_MS = 3_000

const FAULTS = [
  [8, 'freeze'],
  [3, 'clock step'],
  [3, 'partition'],
  [3, 'dropped responses'],
  [2, 'reset connections'],
  [2, 'slow witness'],
  [4, 'blocked event loop'],
] as const
type FaultKind = (typeof FAULTS)[number][1] | 'frozen witness'

interface InjectedFault {
  /** Undefined: it affects all candidates. */
  readonly candidate?: string
  readonly kind: FaultKind
  readonly from: number
  to: number
}

/** CLOCK_MONOTONIC, as in the observer. */
const now = () => Number(process.hrtime.bigint()) / 1e6

/** A tenure that ends this long after the end of a fault is counted as ended by the fault. */
const AFTERMATH_MS = DURATIONS.leaseDuration

/** The time between two faults of the witness. */
const MAX_WITNESS_CALM_MS = 20_000
const MAX_WITNESS_FREEZE_MS = 2 * DURATIONS.leaseDuration
/** The time between two glitches of the clock of the witness. */
const MAX_GLITCH_CALM_MS = 1_000
const MAX_GLITCH_MS = 50
const MIN_AHEAD_MS = 100
const MAX_AHEAD_FACTOR = 100

/** Far below the margin between the deadline of a leader and the expiry of its lease. */
const MAX_CLOCK_STEP_MS = 100
const describeSteps = (clock: string, advice: string, steps: readonly ClockStep[]): string[] =>
  steps
    .filter(({ byMs }) => Math.abs(byMs) > MAX_CLOCK_STEP_MS)
    .map(({ byMs, at }) => `${clock} was set by at least ${byMs.toFixed(0)} ms before ${at.toFixed(0)}: ${advice}`)

const countByFault = (summary: TenureSummary, faults: readonly InjectedFault[]): Record<string, number> => {
  const counts: Record<string, number> = {}
  for (const { candidate, at, reason } of summary.ends) {
    const fault = faults.findLast(
      ({ candidate: name = candidate, from, to }) => name === candidate && at >= from && at <= to + AFTERMATH_MS,
    )
    const key = reason === 'cancelled' ? 'handover' : (fault?.kind ?? 'other')
    counts[key] = (counts[key] ?? 0) + 1
  }
  return counts
}

/** One run. Only its figures are reported; `histories` are the transitions of the slots whose tenures overlap. */
const observeTenures = async ({ on, start, hasGlitches, slots, tenures }: (typeof HOSTS)[number]) => {
  const seed = Date.now() % 2 ** 31
  const random = createPrng(seed)
  const faults: InjectedFault[] = []
  /** The candidates with a fault now. */
  const faulty = new Set<string>()
  const stop = new AbortController()
  const pause = (ms: number) => sleep(ms, undefined, { signal: stop.signal }).catch(() => {})

  const inject = async (
    candidate: CandidateProcess,
    proxy: TcpProxy,
    setClock: (aheadMs: number) => void,
  ): Promise<void> => {
    const kind = random.pickWeighted(FAULTS)
    const shortMs = random.below(3 * DURATIONS.leaseDuration)
    const ms = kind === 'freeze' && random.chance(0.1) ? random.below(MAX_FREEZE_MS) : shortMs
    const fault: InjectedFault = { candidate: candidate.name, kind, from: now(), to: Number.POSITIVE_INFINITY }
    faults.push(fault)
    faulty.add(candidate.name)
    if (kind === 'freeze') candidate.signal('SIGSTOP')
    else if (kind === 'clock step') setClock(random.pick([1, -1]) * random.below(random.pick([2_000, HOUR_MS])))
    else if (kind === 'partition') proxy.freeze()
    else if (kind === 'dropped responses') proxy.dropResponses(true)
    else if (kind === 'slow witness') proxy.delay(random.below(DURATIONS.leaseDuration))
    else if (kind === 'reset connections') proxy.resetAll()
    else candidate.send(`block ${ms}`)
    if (kind !== 'clock step' && kind !== 'reset connections') await pause(ms)
    if (kind === 'freeze') candidate.signal('SIGCONT')
    proxy.thaw()
    proxy.dropResponses(false)
    proxy.delay(0)
    fault.to = now()
    faulty.delete(candidate.name)
  }

  await using cleanup = new AsyncDisposableStack()
  const witnessClock = cleanup.use(createProcessClock())
  const { port, token, freeze } = cleanup.use(await start(witnessClock.env))
  const observer = cleanup.use(await startObserver())
  const candidates = await Promise.all(
    Array.from({ length: CANDIDATES }, async (_, index) => {
      const proxy = await startTcpProxy(port)
      cleanup.defer(() => proxy.close())
      const clock = cleanup.use(createProcessClock())
      const process = await startCandidate({
        name: `candidate-${index}`,
        url: `http://127.0.0.1:${proxy.port}`,
        token,
        slots: Array.from({ length: slots }, (_, index) => `slot-${index}`),
        pipe: observer.pipe,
        durations: DURATIONS,
        isBatched: index % 2 === 0,
        env: clock.env,
      })
      cleanup.use(process)
      return { process, proxy, clock }
    }),
  )

  const faultLoops = candidates.map(async ({ process, proxy, clock }) => {
    while (!stop.signal.aborted && !process.hasExited) {
      await pause(random.below(MAX_CALM_MS))
      await inject(process, proxy, clock.setAhead)
    }
  })
  const freezeWitness = async () => {
    while (freeze && !stop.signal.aborted) {
      await pause(random.below(MAX_WITNESS_CALM_MS))
      const fault: InjectedFault = { kind: 'frozen witness', from: now(), to: Number.POSITIVE_INFINITY }
      faults.push(fault)
      const thaw = freeze()
      await pause(random.below(MAX_WITNESS_FREEZE_MS))
      thaw()
      fault.to = now()
    }
  }
  let glitches = 0
  const disturbWitnessClock = async () => {
    while (hasGlitches && !stop.signal.aborted) {
      await pause(random.below(MAX_GLITCH_CALM_MS))
      observer.report('glitch - begin')
      witnessClock.setAhead(Math.round(MIN_AHEAD_MS * MAX_AHEAD_FACTOR ** random.next()))
      await pause(1 + random.below(MAX_GLITCH_MS))
      witnessClock.setAhead(0)
      observer.report('glitch - end')
      glitches += 1
    }
  }
  const witnessLoop = Promise.all([freezeWitness(), disturbWitnessClock()])
  // Before the witness and the candidates stop, also if this test fails.
  cleanup.defer(async () => {
    stop.abort()
    await witnessLoop
  })
  const handovers = async () => {
    while (!stop.signal.aborted) {
      await pause(random.below(2 * MEAN_HANDOVER_MS))
      const running = candidates.filter(({ process }) => !faulty.has(process.name))
      if (running.length > 0) random.pick(running).process.send('hand-over')
    }
  }
  const handoverLoop = handovers()
  while (observer.readLog().split(' start ').length <= tenures) {
    if (observer.hasExited) throw new Error(`the observer exited:\n${observer.errors()}`)
    const exited = candidates.find(({ process }) => process.hasExited)
    if (exited) throw new Error(`${exited.process.name} exited:\n${exited.process.errors()}`)
    await sleep(500)
  }
  stop.abort()
  await Promise.all([...faultLoops, handoverLoop, witnessLoop])
  await Promise.all(candidates.map(({ process }) => process.stop()))

  const summary = await observer.summarize()
  const figures = [
    `${summary.tenures} tenures, seed ${seed}, ${faults.length} faults`,
    `stops ${JSON.stringify(summary.reasons)}`,
    `by fault ${JSON.stringify(countByFault(summary, faults))}`,
    `${summary.endedInPause} deadlines in a pause of the process`,
    `${glitches} glitches of the clock of the witness, ${summary.overlapsInGlitches} overlaps by a grant during one`,
    `${summary.overlaps.length} other overlaps`,
    `${summary.reports} reports of leadership, ${summary.violations.length} violations`,
    `${summary.writes} writes, ${summary.rejectedLateWrites} late ones rejected, ${summary.acceptedLateWrites} accepted`,
    `each event observed within ${summary.maxUncertaintyMs.toFixed(0)} ms`,
    `largest step of the wall clock ${largestStepMs(summary.machineClockSteps).toFixed(0)} ms, of that of the witness ${largestStepMs(summary.witnessClockSteps).toFixed(0)} ms`,
  ]
  reportProof(`tenures, witness on ${on}: ${figures.join('; ')}`)
  // In one assertion, with the transitions as the witness saw them: they explain an overlap.
  const leases = new LeaseClient({ baseUrl: `http://127.0.0.1:${port}`, token })
  const contested = [...new Set(summary.overlaps.map(overlap => overlap.split(':')[0] ?? ''))]
  const histories = await Promise.all(contested.map(slot => leases.history(slot)))
  return { seed, summary, histories }
}

describe.skipIf(shouldSkip(missingProcessClock))('tenures of real processes under faults', () => {
  test.each(HOSTS)(
    'no overlap while the processes run, no report of leadership after the deadline, no late write, as an outside observer sees it: witness on $on',
    {
      timeout: 2 * (120_000 + 400 * Math.max(...HOSTS.map(({ tenures }) => tenures))),
    },
    async host => {
      let observed = await observeTenures(host)
      // A run during which the clock of the machine was set proves nothing. Another one may.
      if (largestStepMs(observed.summary.machineClockSteps) > MAX_CLOCK_STEP_MS) observed = await observeTenures(host)
      const { seed, summary, histories } = observed
      const { overlaps, violations } = summary
      // A witness has only the wall clock, and cannot detect that it was set forward: see `advanceClock`.
      const clockSteps = [
        ...describeSteps(
          'the wall clock of the machine',
          'an overlap of this run does not show a defect, and its absence proves nothing. Repeat it on a machine whose clock is not set.',
          summary.machineClockSteps,
        ),
        // With glitches, its responses show them.
        ...describeSteps(
          'the clock of the witness',
          'if that of the machine was not, the witness decided by a wrong time.',
          host.hasGlitches ? [] : summary.witnessClockSteps,
        ),
      ]
      expect({ clockSteps, overlaps, violations, histories }, `seed ${seed}`).toEqual({
        clockSteps: [],
        overlaps: [],
        violations: [],
        histories: [],
      })
      expect(summary.acceptedLateWrites).toBe(0)
      expect(summary.tenures).toBeGreaterThanOrEqual(host.tenures)
      expect(summary.rejectedLateWrites).toBeGreaterThan(0)
      expect(summary.endedInPause).toBeGreaterThan(0)
    },
  )
})
