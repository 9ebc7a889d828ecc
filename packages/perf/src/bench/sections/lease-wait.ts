import { setTimeout as sleep } from 'node:timers/promises'
import { HttpConnection, type HttpResponse } from '@pool/test-kit/http1.ts'
import { findWorkerd, readRssMib } from '@pool/test-kit/processes.ts'
import { progress } from '../../shared/cli.ts'
import { percentile, type Spread, toRatios, toSpread } from '../../shared/stats.ts'
import { left, right, spreadText, type Table, toFigure } from '../../shared/table.ts'
import { type Checkout, type Environment, LEASE_TOKEN } from '../environment/environment.ts'
import { sendOne } from '../load/target.ts'
import { type Goal, goalTable, type Section, type SectionResult, toGoal } from '../report.ts'

/** The number of waiters on one slot; each has its limit for the ratio to the other checkout. */
const LOADS = [
  { waiters: 1, atMost: 1.25 },
  { waiters: 100, atMost: 1.25 },
  { waiters: 2_000, atMost: 2 },
] as const

/** Below the default of MAX_WAIT_SECONDS, and longer than a round. */
const WAIT_SECONDS = 24
const TTL_SECONDS = 3_600
/** The backlog of a listening socket is limited. */
const MAX_CONCURRENT_OPENS = 100
const MAX_MEMORY_ROUNDS = 3
const RESPONSE_TIMEOUT_MS = 60_000
const SETTLE_MS = 1_000

const NOTE = [
  'Waiters on one slot, each a connection with a GET that has the current generation in If-None-Match and Prefer: wait.',
  'Release: milliseconds from sending the DELETE to the response of the median and of the last waiter. Memory: the',
  'resident set of a new workerd while the waiters wait. A client cannot see that its wait has begun, so each round first',
  'leaves the witness 100 ms and 1 ms per waiter. With --against: rounds of both checkouts alternate, and the ratio is this /',
  'other, round by round.',
].join('\n')

interface Side {
  readonly name: string
  readonly checkout: Checkout
}

interface Witness {
  readonly port: number
  /** The id of the process that starts workerd. */
  readonly pid: number
}

const AUTHORIZATION = `Authorization: Bearer ${LEASE_TOKEN}\r\n`
const HOLDER = 'region-a/controller-0'

const toGeneration = ({ text }: HttpResponse): number => Number(/"generation":(\d+)/.exec(text)?.[1] ?? 0)

const acquire = async ({ port }: Witness, slot: string, generation: number): Promise<number> => {
  const response = await sendOne(port, {
    method: 'PUT',
    path: `/lease/${slot}`,
    headers: `${AUTHORIZATION}If-Match: ${generation}\r\n`,
    body: JSON.stringify({ holder: HOLDER, ttlSeconds: TTL_SECONDS }),
  })
  if (response.status !== 200) throw new Error(`acquire ${slot}: status ${response.status}: ${response.text}`)
  return toGeneration(response)
}

const openWaiters = async ({ port }: Witness, count: number): Promise<HttpConnection[]> => {
  const waiters: HttpConnection[] = []
  while (waiters.length < count) {
    const batch = Math.min(MAX_CONCURRENT_OPENS, count - waiters.length)
    waiters.push(...(await Promise.all(Array.from({ length: batch }, () => HttpConnection.open(port)))))
  }
  return waiters
}

interface EndedWait {
  readonly status: number
  readonly at: number
}

/** Sends the waits and returns when the witness has had time to accept them. */
const startWaits = async (
  waiters: readonly HttpConnection[],
  slot: string,
  generation: number,
): Promise<{ readonly ended: Promise<readonly EndedWait[]> }> => {
  const request =
    `GET /lease/${slot} HTTP/1.1\r\nHost: bench\r\n${AUTHORIZATION}If-None-Match: "${generation}"\r\n` +
    `Prefer: wait=${WAIT_SECONDS}\r\n\r\n`
  const ended = Promise.all(
    waiters.map(async waiter => {
      const { status } = await waiter.send(request, { timeoutMs: RESPONSE_TIMEOUT_MS })
      return { status, at: performance.now() }
    }),
  )
  // The waiters of a memory measurement are reset while they wait.
  ended.catch(() => {})
  await sleep(100 + waiters.length)
  return { ended }
}

interface Release {
  readonly medianMs: number
  readonly lastMs: number
}

const measureRelease = async (witness: Witness, count: number, slot: string): Promise<Release> => {
  const waiters = await openWaiters(witness, count)
  try {
    const generation = await acquire(witness, slot, 0)
    const waits = await startWaits(waiters, slot, generation)
    using connection = await HttpConnection.open(witness.port)
    const sentAt = performance.now()
    const released = await connection.send(
      `DELETE /lease/${slot} HTTP/1.1\r\nHost: bench\r\n${AUTHORIZATION}If-Match: ${generation}\r\nX-Holder: ${HOLDER}\r\n\r\n`,
    )
    if (released.status !== 204) throw new Error(`release ${slot}: status ${released.status}`)
    const ended = await waits.ended
    const early = ended.filter(({ at }) => at < sentAt).length
    const failed = ended.filter(({ status }) => status !== 200).length
    if (early + failed > 0)
      throw new Error(`${slot}: ${early} waits ended before the release, ${failed} without a lease`)
    const ascending = Float64Array.from(ended, ({ at }) => at - sentAt).sort()
    return { medianMs: percentile(ascending, 50), lastMs: percentile(ascending, 100) }
  } finally {
    for (const waiter of waiters) waiter.socket.resetAndDestroy()
  }
}

/** Mebibytes of a new workerd without waiters, then with each number of waiters. */
const measureMemory = async (environment: Environment, { checkout }: Side): Promise<number[]> => {
  await using witness = await environment.startLeaseWorker('witness', checkout)
  const workerd = findWorkerd(witness.pid) ?? 0
  // One wait first, so that code that is compiled and isolates that are started for it do not count.
  await measureRelease(witness, 1, 'memory-of-the-first')
  const generation = await acquire(witness, 'memory', 0)
  const figures = [readRssMib(workerd)]
  const waiters: HttpConnection[] = []
  try {
    for (const { waiters: count } of LOADS) {
      const more = await openWaiters(witness, count - waiters.length)
      waiters.push(...more)
      await startWaits(more, 'memory', generation)
      figures.push(readRssMib(workerd))
    }
  } finally {
    for (const waiter of waiters) waiter.socket.resetAndDestroy()
  }
  return figures
}

/** The sides in order, reversed in every other round. */
const alternate = <Item>(sides: readonly Item[], round: number): [number, Item][] => {
  const order = [...sides.entries()]
  return round % 2 === 1 ? order : order.reverse()
}

interface SideFigures {
  readonly name: string
  readonly medianMs: Spread
  readonly lastMs: Spread
  readonly memoryMib: Spread
  readonly kibPerWaiter: Spread
}

interface WaitLoad {
  readonly waiters: number
  readonly sides: readonly SideFigures[]
  /** This checkout divided by the other one; null without another one. */
  readonly ratio: { readonly median: Spread; readonly last: Spread; readonly memory: Spread } | null
}

const toLoad = (
  waiters: number,
  names: readonly string[],
  releases: readonly (readonly Release[])[],
  memory: readonly (readonly { readonly idle: number; readonly waiting: number }[])[],
): WaitLoad => {
  const medians = releases.map(rounds => rounds.map(({ medianMs }) => medianMs))
  const lasts = releases.map(rounds => rounds.map(({ lastMs }) => lastMs))
  const resident = memory.map(rounds => rounds.map(({ waiting }) => waiting))
  const ratio = (values: readonly (readonly number[])[]) => toSpread(toRatios(values[0] ?? [], values[1] ?? []))
  return {
    waiters,
    sides: names.map((name, side) => ({
      name,
      medianMs: toSpread(medians[side] ?? []),
      lastMs: toSpread(lasts[side] ?? []),
      memoryMib: toSpread(resident[side] ?? []),
      kibPerWaiter: toSpread((memory[side] ?? []).map(({ idle, waiting }) => ((waiting - idle) * 1_024) / waiters)),
    })),
    ratio: names.length < 2 ? null : { median: ratio(medians), last: ratio(lasts), memory: ratio(resident) },
  }
}

const waitTable = (loads: readonly WaitLoad[]): Table => ({
  columns: [
    right('waiters'),
    left('checkout'),
    ...['median ms', 'last ms', 'workerd MiB', 'KiB per waiter', 'ratio: median', 'last', 'memory'].map(right),
  ],
  rows: loads.flatMap(({ waiters, sides, ratio }) =>
    sides.map(({ name, medianMs, lastMs, memoryMib, kibPerWaiter }, index) => [
      index === 0 ? String(waiters) : '',
      name,
      ...[medianMs, lastMs, memoryMib].map(spreadText),
      waiters === 1 ? '' : toFigure(kibPerWaiter.median),
      ...(ratio && index === 0 ? [ratio.median, ratio.last, ratio.memory].map(spreadText) : ['', '', '']),
    ]),
  ),
})

const toGoals = (loads: readonly WaitLoad[]): Goal[] =>
  LOADS.flatMap(({ waiters, atMost }) => {
    const ratio = loads.find(load => load.waiters === waiters)?.ratio
    if (!ratio) return []
    return (['median', 'last', 'memory'] as const).map(figure =>
      toGoal(`${waiters} waiters`, figure, 'at most', atMost, ratio[figure]),
    )
  })

const createSection = (toSides: (against: Checkout) => readonly Side[]): Section => ({
  name: 'lease-wait',
  title: 'time from a release to the responses of the waiters, and their memory',
  needs: 'workerd',
  async run({ environment, options }): Promise<SectionResult> {
    const sides = toSides(options.against)
    const names = sides.map(({ name }) => name)
    const memoryRounds = Math.min(options.rounds, MAX_MEMORY_ROUNDS)
    const memory: number[][][] = sides.map(() => [])
    for (let round = 1; round <= memoryRounds; round += 1) {
      progress(`lease-wait: memory, round ${round} of ${memoryRounds}`)
      for (const [index, side] of alternate(sides, round)) memory[index]?.push(await measureMemory(environment, side))
    }

    await using stack = new AsyncDisposableStack()
    const witnesses: Witness[] = []
    for (const { checkout } of sides) witnesses.push(stack.use(await environment.startLeaseWorker('witness', checkout)))
    const loads: WaitLoad[] = []
    for (const [step, { waiters }] of LOADS.entries()) {
      const releases: Release[][] = sides.map(() => [])
      // Round 0 compiles the code, and is not counted.
      for (let round = 0; round <= options.rounds; round += 1) {
        progress(`lease-wait: ${waiters} waiters, round ${round} of ${options.rounds}`)
        for (const [index, witness] of alternate(witnesses, round)) {
          const release = await measureRelease(witness, waiters, `wait-of-${waiters}-${round}`)
          if (round > 0) releases[index]?.push(release)
          await sleep(waiters > 100 ? SETTLE_MS : 0)
        }
      }
      const resident = memory.map(rounds =>
        rounds.map(figures => ({ idle: figures[0] ?? Number.NaN, waiting: figures[step + 1] ?? Number.NaN })),
      )
      loads.push(toLoad(waiters, names, releases, resident))
    }
    const goals = toGoals(loads)
    return {
      notes: [NOTE],
      tables: [waitTable(loads), ...(goals.length > 0 ? [goalTable('goal: this / other', goals)] : [])],
      figures: { loads, goals },
      errors: [],
    }
  },
})

export const leaseWaitSection: Section = createSection(() => [{ name: 'witness', checkout: null }])

/** Compares with another checkout. */
export const leaseWaitAgainst: Section = createSection(against => [
  { name: 'this', checkout: null },
  { name: 'other', checkout: against },
])
