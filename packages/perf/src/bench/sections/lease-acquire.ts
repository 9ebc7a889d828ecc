import { setTimeout as sleep } from 'node:timers/promises'
import { progress } from '../../shared/cli.ts'
import { type Spread, toRatios, toSpread } from '../../shared/stats.ts'
import { left, right, spreadText, type Table } from '../../shared/table.ts'
import type { LeaseWorker, Service } from '../environment/environment.ts'
import { type Measurement, runClosedLoop } from '../load/closed-loop.ts'
import { openHttpUsers, type Task } from '../load/target.ts'
import { goalTable, type Section, type SectionResult, toGoal } from '../report.ts'
import { LeaseClient, TTL_SECONDS, waitForCopies } from './lease-client.ts'

const TARGETS = [
  ['witness', 'witness'],
  ['kv-only', 'KV only'],
] as const satisfies readonly (readonly [LeaseWorker, string])[]
const USERS = 16
const READS_PER_SLOT = 3
const RENEWALS_PER_SLOT = 2
/** Longer than any load below takes. */
const MAX_SECONDS = 120

/** The shortest that the witness accepts, so that the leases of one load have expired before the next one. */
const SHORT_TTL_SECONDS = 1
const EXPIRY_MS = 1_200

const NOTE = [
  `${USERS} virtual users acquire all slots, each as soon as its last response has arrived, and then read every slot ${READS_PER_SLOT} times;`,
  'first on slots that were never written, whose objects (and their files) are created then, and again after the leases have',
  'expired. The witness copies each change of a tenure to KV, at a limited rate and not before a second has passed, so the',
  `copies are part of all loads. Last: they acquire the expired leases and renew each ${RENEWALS_PER_SLOT} times; operations per second of both`,
  'kinds. Medians over the rounds (min–max); ratios round by round, witness / KV only. KV is local: see lease-put.',
].join('\n')

const LOADS = ['first', 'read-first', 'again', 'read-again', 'put'] as const
type LoadName = (typeof LOADS)[number]
const TITLES: Readonly<Record<LoadName, string>> = {
  first: 'acquire at once, new slots',
  'read-first': 'then read',
  again: 'acquire at once, existing slots',
  'read-again': 'then read',
  put: 'acquire and renew, existing slots',
}
type Round = Readonly<Record<LoadName, Measurement>>

/** Runs `count` tasks, in the order of their numbers. */
const runAll = async (port: number, count: number, toTask: (index: number) => Task): Promise<Measurement> => {
  let next = 0
  using opened = await openHttpUsers(port, USERS, () => (next < count ? toTask(next++) : undefined))
  return await runClosedLoop(opened.users, MAX_SECONDS)
}

const putTask = (client: LeaseClient, index: number): Task => {
  const slot = index % client.slots
  return {
    request: client.put(slot),
    check(response) {
      client.update(slot, response)
      return client.isGranted(response) ? null : `status ${response.status}: ${response.text.slice(0, 120)}`
    },
  }
}

const readTask = (client: LeaseClient, index: number): Task => {
  const slot = index % client.slots
  return { request: client.get(slot), check: response => client.checkRead(slot, response) }
}

const measureRound = async (
  { port }: Service,
  slots: number,
  round: number,
  settle: (client: LeaseClient) => Promise<void>,
): Promise<Round> => {
  const client = new LeaseClient(`acquired-${round}`, slots, SHORT_TTL_SECONDS)
  const acquire = () => runAll(port, slots, index => putTask(client, index))
  const read = () => runAll(port, slots * READS_PER_SLOT, index => readTask(client, index))
  const expire = async () => {
    await settle(client)
    await sleep(EXPIRY_MS)
  }
  const first = { first: await acquire(), 'read-first': await read() }
  await expire()
  const again = { again: await acquire(), 'read-again': await read() }
  await expire()
  client.ttlSeconds = TTL_SECONDS
  const put = await runAll(port, slots * (1 + RENEWALS_PER_SLOT), index => putTask(client, index))
  await settle(client)
  return { ...first, ...again, put }
}

interface AcquireLoad {
  readonly load: LoadName
  readonly targets: readonly {
    readonly name: string
    readonly perSecond: Spread
    readonly p50Ms: Spread
    readonly p99Ms: Spread
  }[]
  /** The witness divided by the KV-only worker. */
  readonly ratio: { readonly perSecond: Spread; readonly p50: Spread; readonly p99: Spread }
}

const toLoad = (load: AcquireLoad['load'], rounds: readonly (readonly Round[])[]): AcquireLoad => {
  const pick = (target: number, field: 'perSecond' | 'p50Ms' | 'p99Ms') =>
    (rounds[target] ?? []).map(round => round[load][field])
  const ratio = (field: 'perSecond' | 'p50Ms' | 'p99Ms') => toSpread(toRatios(pick(0, field), pick(1, field)))
  return {
    load,
    targets: TARGETS.map(([, name], target) => ({
      name,
      perSecond: toSpread(pick(target, 'perSecond')),
      p50Ms: toSpread(pick(target, 'p50Ms')),
      p99Ms: toSpread(pick(target, 'p99Ms')),
    })),
    ratio: { perSecond: ratio('perSecond'), p50: ratio('p50Ms'), p99: ratio('p99Ms') },
  }
}

const acquireTable = (loads: readonly AcquireLoad[]): Table => ({
  columns: [left('load'), left('target'), ...['ops/s', 'p50 ms', 'p99 ms', 'ratio: ops/s', 'p50', 'p99'].map(right)],
  rows: loads.flatMap(({ load, targets, ratio }) =>
    targets.map(({ name, perSecond, p50Ms, p99Ms }, index) => [
      index === 0 ? TITLES[load] : '',
      name,
      ...[perSecond, p50Ms, p99Ms].map(spreadText),
      ...(index === 0 ? [ratio.perSecond, ratio.p50, ratio.p99].map(spreadText) : ['', '', '']),
    ]),
  ),
})

export const leaseAcquireSection: Section = {
  name: 'lease-acquire',
  title: 'slots acquired at once, beside the copies of their leases',
  needs: 'workerd',
  async run({ environment, options }): Promise<SectionResult> {
    await using stack = new AsyncDisposableStack()
    const services: Service[] = []
    for (const [worker] of TARGETS) services.push(stack.use(await environment.startLeaseWorker(worker)))
    const rounds: Round[][] = TARGETS.map(() => [])
    // Round 0 compiles the code, and is not counted.
    for (let round = 0; round <= options.rounds; round += 1) {
      progress(`lease-acquire: round ${round} of ${options.rounds}`)
      const order = [...services.entries()]
      for (const [index, service] of round % 2 === 1 ? order : order.reverse()) {
        const settle = (client: LeaseClient) =>
          TARGETS[index]?.[0] === 'witness' ? waitForCopies(service.port, client) : Promise.resolve()
        const measured = await measureRound(service, options.slots, round, settle)
        if (round > 0) rounds[index]?.push(measured)
      }
    }
    const loads = LOADS.map(load => toLoad(load, rounds))
    const goals = loads.map(({ load, ratio }) =>
      load === 'put'
        ? toGoal(TITLES[load], 'ops/s', 'at least', 1.5, ratio.perSecond)
        : toGoal(TITLES[load], 'p99', 'at most', 1, ratio.p99),
    )
    const errors = rounds.flatMap((measured, target) =>
      measured.flatMap(round =>
        LOADS.flatMap(load =>
          Array.from(
            round[load].problems,
            ([what, count]) => `${TARGETS[target]?.[1]}, ${TITLES[load]}: ${count} × ${what}`,
          ),
        ),
      ),
    )
    return {
      notes: [NOTE],
      tables: [acquireTable(loads), goalTable('goal: witness / KV only', goals)],
      figures: { loads, goals },
      errors,
    }
  },
}
