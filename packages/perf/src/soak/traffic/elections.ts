import { setTimeout as sleep } from 'node:timers/promises'
import {
  createIdentity,
  type LeadershipContext,
  LeadershipLostError,
  LeaseClient,
  LeaseElector,
  PreferenceElector,
  RenewalBatch,
  withLease,
} from '@pool/client/leases'
import type { Prng } from '@pool/test-kit/prng.ts'
import type { Candidate, LeadershipChecker } from '../checks/leadership.ts'
import type { Witness } from '../environment/witness.ts'
import type { InvariantChecker } from '../invariants.ts'
import type { Quiescer } from './quiescer.ts'

/** The slots of the regional controllers. */
export const CONTROLLER_SLOTS = ['pair-0', 'pair-1', 'pair-2', 'pair-3', 'pair-4']
/** One region is preferred for this slot. */
const PREFERENCE_SLOT = 'pair-4'
const REGIONS = ['region-0', 'region-1', 'region-2', 'region-3', 'region-4']
const PREFERRED_REGION = 'region-2'
/** These send the renewals of all slots in one request. */
const BATCHED_REGIONS: ReadonlySet<string> = new Set(['region-0', 'region-1'])
const JOB_SLOTS = ['job-0', 'job-1']
const WORKERS = ['worker-0', 'worker-1']

/** Short, so that a run of a few minutes has many tenures. */
export const ELECTION_DURATIONS = { leaseDuration: 2_000, renewDeadline: 1_300, retryPeriod: 400 } as const
const SAMPLE_INTERVAL_MS = 25
const MEAN_WRITE_PAUSE_MS = 100
const MEAN_HANDOVER_PAUSE_MS = 700
const MAX_JOB_MS = 400
const MAX_JOB_PAUSE_MS = 1_500

export interface ElectionsOptions {
  readonly witness: Pick<Witness, 'url' | 'token'>
  /** Records the requests of a holder. */
  readonly fetchAs: (identity: string) => typeof fetch
  readonly prng: Prng
  readonly quiescer: Quiescer
  readonly leadership: LeadershipChecker
  readonly invariants: InvariantChecker
}

/** Ends early when the signal is aborted. */
const pause = (ms: number, signal: AbortSignal): Promise<void> => sleep(ms, undefined, { signal }).catch(() => {})

/** Writes to the resource of the slot while the tenure lasts, and once after it, as if a write had been delayed. */
const lead = async (
  slot: string,
  context: LeadershipContext,
  { prng, leadership }: Pick<ElectionsOptions, 'prng' | 'leadership'>,
): Promise<void> => {
  const resource = context.guard({ write: (token: number) => leadership.write(slot, token) })
  const lateWrite = { token: context.fencingToken, afterMs: prng.below(2 * ELECTION_DURATIONS.leaseDuration) }
  try {
    while (context.isLeader()) {
      resource.write()
      await pause(prng.below(2 * MEAN_WRITE_PAUSE_MS), context.signal)
    }
  } catch (error) {
    // The deadline passed between the two checks.
    if (!(error instanceof LeadershipLostError)) throw error
  }
  setTimeout(() => leadership.write(slot, lateWrite.token), lateWrite.afterMs).unref()
}

/** Regional controllers: each is a candidate for every slot. One of the leaders hands over now and then. */
export const runControllers = async (options: ElectionsOptions): Promise<void> => {
  const { witness, prng, quiescer, leadership } = options
  const electors: LeaseElector[] = []
  const runs = REGIONS.flatMap((region, number) => {
    const identity = createIdentity(region)
    const client = new LeaseClient({ baseUrl: witness.url, token: witness.token, fetch: options.fetchAs(identity) })
    const isBatched = BATCHED_REGIONS.has(region)
    const leases = isBatched ? new RenewalBatch({ leases: client, identity }) : client
    return CONTROLLER_SLOTS.map((slot, index) => {
      const own = prng.fork(number * CONTROLLER_SLOTS.length + index)
      const electorOptions = {
        ...ELECTION_DURATIONS,
        leases,
        slot,
        identity,
        ...(isBatched && { renewalPhaseMs: 100 * number }),
        callbacks: {
          onStartedLeading: (context: LeadershipContext) => {
            leadership.started(candidate, context)
            return lead(slot, context, { prng: own, leadership })
          },
          onStoppedLeading: () => leadership.stopped(candidate),
        },
      }
      const elector =
        slot === PREFERENCE_SLOT
          ? new PreferenceElector({ ...electorOptions, isPreferred: region === PREFERRED_REGION })
          : new LeaseElector(electorOptions)
      const candidate: Candidate = { slot, identity, isLeader: () => elector.isLeader() }
      leadership.add(candidate)
      electors.push(elector)
      return elector.run(quiescer.signal)
    })
  })
  const sampling = setInterval(() => leadership.sample(), SAMPLE_INTERVAL_MS)
  const handOver = async () => {
    while (!quiescer.isEnded) {
      await pause(prng.below(2 * MEAN_HANDOVER_PAUSE_MS), quiescer.signal)
      const leaders = electors.filter(elector => elector.isLeader())
      if (leaders.length > 0) prng.pick(leaders).handOver()
    }
  }
  try {
    await Promise.all([...runs, handOver()])
  } finally {
    clearInterval(sampling)
  }
}

/** Workers that take turns at jobs under a lease. */
export const runJobs = async (options: ElectionsOptions): Promise<void> => {
  const { witness, prng, quiescer, leadership, invariants } = options
  const running = new Map<string, string>()
  const work = async (worker: string, own: Prng) => {
    const identity = createIdentity(worker)
    const leases = new LeaseClient({ baseUrl: witness.url, token: witness.token, fetch: options.fetchAs(identity) })
    while (!quiescer.isEnded) {
      const slot = own.pick(JOB_SLOTS)
      const job = async (context: LeadershipContext) => {
        const other = running.get(slot)
        const violations = other === undefined ? [] : [`${slot}: ${worker} started while ${other} worked`]
        invariants.record('one leader per slot', 1, violations)
        running.set(slot, worker)
        leadership.write(slot, context.fencingToken)
        await pause(own.below(MAX_JOB_MS), context.signal)
        running.delete(slot)
      }
      try {
        await withLease(slot, job, { ...ELECTION_DURATIONS, leases, identity, signal: quiescer.signal })
      } catch (error) {
        // The lease was lost, or the run has ended.
        if (!(error instanceof LeadershipLostError) && error !== quiescer.signal.reason) throw error
      }
      await pause(own.below(MAX_JOB_PAUSE_MS), quiescer.signal)
    }
  }
  await Promise.all(WORKERS.map((worker, index) => work(worker, prng.fork(index))))
}
