import { setTimeout as sleep } from 'node:timers/promises'
import type { LeaseWorker, Service } from '../environment/service.ts'
import type { Answer } from '../load/answer.ts'
import type { Run } from '../load/compare.ts'
import { openConnectionPool } from '../load/connection-pool.ts'
import { openLoop, type Rate } from '../load/open-loop.ts'
import { faultless, oneOf } from '../load/subject.ts'
import type { Target } from '../report/target.ts'
import type { Section } from '../section.ts'
import { createBook } from './lease-book.ts'
import { seed } from './lease-seed.ts'
import {
  LEASE_METHOD,
  LEASE_SUBJECTS,
  leaseTarget,
  leaseTargetTable,
  loadOf,
  loadTable,
  startWorkers,
} from './lease-standard.ts'

/** Seconds after which a slot is renewed: 1,000 slots are 100 renewals a second. */
const RENEWED_EVERY = 10
/**
 * Of the seconds of a closed loop. At the standard length the witness's rounds are over within a minute of the first
 * writes: the copies that those make due come all at once then, as they would not where slots are of different ages.
 */
const LONGER = { renewals: 10, takeovers: 5 }
/** A round is long: more of them would say little more. */
const MOST_ROUNDS = 3
/** A slot that is renewed is copied to KV once a minute, so one of six renewals every 10 s causes a copy. */
const RENEWALS_A_COPY = 6
/** Of a lease that is to be expired when its turn comes again, so many seconds later. */
const SHORT_SECONDS = 1
const TAKEN_OVER_EVERY = 2.5
const CONNECTIONS = 16
const P99_TARGET = 1

const NOTES = [
  'Open loop: requests at even intervals, whether or not the last one was answered; latencies from the sending.',
  'renewals: each slot every 10 s. The run is too short for the copy that the witness makes of each once a minute, so as',
  'many copies are caused beside, not timed: after every sixth renewal the witness alone is sent a takeover of another',
  'slot, at any moment before the next renewal. takeovers: as many a second, each of an expired lease by another holder;',
  'the witness copies each to KV at once.',
].join('\n')

/**
 * A 412 comes where the write before it was so late that the client, who goes by its clock, did not know the new
 * generation, or that the lease had not expired yet: an answer, and a sign that nothing was steady. They are counted.
 */
const createCheck = () => {
  const decided = oneOf(200, 412)
  let late = 0
  return {
    late: () => late,
    faultOf(answer: Answer): string | null {
      if (answer.status === 412) late += 1
      return decided(answer)
    },
  }
}
type Check = ReturnType<typeof createCheck>

/** Takes over the expired leases of some slots in turn, each time by another holder. */
const createTakeovers = (name: string, slots: number, { faultOf }: Check) => {
  const book = createBook(name, slots)
  let turns = slots
  const as = (turn: number) => ({ holder: `region-${Math.floor(turn / slots) % 2}`, ttlSeconds: SHORT_SECONDS })
  return {
    seed: (port: number, worker: LeaseWorker) => seed(port, worker, name, book, as(0)),
    next: () => {
      const turn = turns++
      const slot = turn % slots
      return { book, slot, request: book.write(slot, as(turn)), faultOf }
    },
  }
}

const createRenewals = (slots: number, { faultOf }: Check) => {
  const book = createBook('renew', slots)
  let turns = 0
  return {
    seed: (port: number, worker: LeaseWorker) => seed(port, worker, 'renew', book),
    next: () => {
      const slot = turns++ % slots
      return { book, slot, request: book.write(slot), faultOf }
    },
  }
}

type Next = ReturnType<typeof createRenewals>['next']

/** One round of a subject; `beside` is called with each operation and is not timed. */
const round = async (port: number, rate: Rate, next: Next, beside?: (turn: number) => Next | undefined) => {
  using pool = await openConnectionPool(port, CONNECTIONS)
  const send = async (from: Next): Promise<string | null> => {
    const { book, slot, request, faultOf } = from()
    const answer = await pool.send(request)
    book.learn(slot, answer)
    return faultOf(answer)
  }
  const pause = 1_000 / rate.perSecond
  const besides: Promise<string | null>[] = []
  const measured = await openLoop(turn => {
    const other = beside?.(turn)
    // Not at the same moment as what is timed: copies come when they come.
    if (other) besides.push(faultless(sleep(Math.random() * pause).then(() => send(other))))
    return faultless(send(next))
  }, rate)
  const faults = new Map(measured.faults)
  for (const fault of await Promise.all(besides)) if (fault) faults.set(`beside: ${fault}`, 1)
  return { ...measured, faults, perOperation: {} } satisfies Run
}

const createPlayers = async (services: readonly (readonly [LeaseWorker, Service])[], slots: number) => {
  const perSecond = slots / RENEWED_EVERY
  const players = []
  for (const [worker, { port }] of services) {
    const check = createCheck()
    const renewals = createRenewals(slots, check)
    const takeovers = createTakeovers('take', Math.ceil(perSecond * TAKEN_OVER_EVERY), check)
    const aside = createTakeovers('aside', Math.ceil((perSecond / RENEWALS_A_COPY) * TAKEN_OVER_EVERY), check)
    for (const part of [renewals, takeovers, aside]) await part.seed(port, worker)
    const copies = (turn: number) => (worker === 'witness' && turn % RENEWALS_A_COPY === 0 ? aside.next : undefined)
    players.push({
      renewals: (seconds: number) => round(port, { perSecond, seconds }, renewals.next, copies),
      takeovers: (seconds: number) => round(port, { perSecond, seconds }, takeovers.next),
      late: check.late,
    })
  }
  // What was written last has expired too.
  await sleep(SHORT_SECONDS * 1_000 + 100)
  return players
}

export const leaseRenewalsSection: Section = {
  name: 'lease-renewals',
  title: 'renewing many leases every 10 s, and taking over',
  on: 'workerd',
  async run(context) {
    const { options, say } = context
    await using workers = await startWorkers(context, ['witness', 'kv-only'])
    say('lease-renewals: warming up')
    const players = await createPlayers(workers.services, options.slots)
    const names = workers.services.map(([worker]) => LEASE_SUBJECTS[worker])
    const rounds = Math.min(options.rounds, MOST_ROUNDS)

    const measure = async (load: keyof typeof LONGER) => {
      const seconds = options.seconds * LONGER[load]
      for (const player of players) await player[load](options.seconds)
      const runs: Run[][] = players.map(() => [])
      for (let count = 1; count <= rounds; count += 1) {
        say(`lease-renewals: ${load}, round ${count} of ${rounds}`)
        for (const [index, player] of players.entries()) runs[index]?.push(await player[load](seconds))
      }
      return loadOf({ load }, names, runs)
    }
    const measured = [await measure('renewals'), await measure('takeovers')]
    const loads = measured.map(({ load }) => load)
    const targets: Target[] = loads.slice(0, 1).map(load => leaseTarget(load, 'p99', P99_TARGET))
    const faults = measured.flatMap(({ faults }) => faults)
    const late = players.reduce((sum, player) => sum + player.late(), 0)
    const length =
      `${options.slots} slots, ${rounds} rounds of ${LONGER.renewals} and ${LONGER.takeovers} times the seconds of a ` +
      `closed loop. Answered 412, because the write before was late: ${late}.`
    return {
      notes: [LEASE_METHOD, `${NOTES}\n${length}`],
      tables: [loadTable(loads), leaseTargetTable(targets)],
      figures: { rounds, slots: options.slots, late, loads, targets },
      faults,
    }
  },
}
