import { setTimeout as sleep } from 'node:timers/promises'
import { HttpConnection, type HttpResponse } from '@pool/test-kit/http1.ts'
import { findWorkerd, readCpuMs } from '@pool/test-kit/processes.ts'
import { progress } from '../../shared/cli.ts'
import { left, right, type Table, toFigure } from '../../shared/table.ts'
import { type Environment, LEASE_TOKEN, type Service } from '../environment/environment.ts'
import { sendOne } from '../load/target.ts'
import { goalTable, type Section, type SectionResult, toGoal } from '../report.ts'

/** Counters of environment/lease-cost/counted.mjs, and the CPU time of workerd. */
const COUNTERS = [
  'workerRequests',
  'objectRequests',
  'webSocketMessages',
  'objectMs',
  'objectStarts',
  'rowsRead',
  'rowsWritten',
  'kvReads',
  'kvWrites',
  'kvLists',
  'logLines',
  'alarms',
  'copyRows',
  'cpuMs',
] as const
type Counter = (typeof COUNTERS)[number]
export type Counts = Readonly<Record<Counter, number>>

/** The counters of the copies in KV, which are rarer than the longest run in real time. */
const COPY_COUNTERS: readonly Counter[] = ['alarms', 'copyRows', 'kvReads', 'kvWrites']

const SECONDS_PER_MONTH = 30 * 86_400
/** The platform bills 128 MB for an object, whatever it uses, and a GB of 1,000 MB. */
const OBJECT_GB = 0.128
const MILLION = 1_000_000

interface BilledResource {
  readonly name: string
  readonly source: string
  /** Dollars per million units, beyond the amounts that the plan includes. */
  readonly perMillion: number
  readonly units: (counts: Counts) => number
}

/** When the prices below were read from the documentation. */
export const PRICES_READ = '2026-11-23'
const WORKERS = 'Workers: Pricing'
const OBJECTS = 'Durable Objects: Pricing'
const KV = 'Workers KV: Pricing'

/** The prices of the Workers Paid plan on the public pages of developers.cloudflare.com. */
export const RESOURCES: readonly BilledResource[] = [
  { name: 'worker requests', source: WORKERS, perMillion: 0.3, units: counts => counts.workerRequests },
  { name: 'worker CPU, ms', source: WORKERS, perMillion: 0.02, units: counts => counts.cpuMs },
  {
    name: 'object requests',
    source: OBJECTS,
    perMillion: 0.15,
    // 20 incoming WebSocket messages are billed as one request; outgoing ones are free.
    units: counts => counts.objectRequests + counts.alarms + counts.webSocketMessages / 20,
  },
  {
    name: 'object duration, GB-s',
    source: OBJECTS,
    perMillion: 12.5,
    units: counts => (counts.objectMs / 1_000) * OBJECT_GB,
  },
  { name: 'rows written', source: OBJECTS, perMillion: 1, units: counts => counts.rowsWritten + counts.copyRows },
  { name: 'rows read', source: OBJECTS, perMillion: 0.001, units: counts => counts.rowsRead },
  { name: 'KV writes', source: KV, perMillion: 5, units: counts => counts.kvWrites + counts.kvLists },
  { name: 'KV reads', source: KV, perMillion: 0.5, units: counts => counts.kvReads },
  { name: 'log lines', source: 'Workers: Pricing, Workers Logs', perMillion: 0.6, units: counts => counts.logLines },
]

/** What one slot costs. */
export interface SlotCost {
  readonly slots: number
  readonly resources: readonly { readonly name: string; readonly units: number; readonly dollars: number }[]
  readonly dollars: number
}

/** `perMonth`: the counts of one slot in a month. */
export const toSlotCost = (slots: number, perMonth: Counts): SlotCost => {
  const resources = RESOURCES.map(({ name, perMillion, units }) => {
    const amount = units(perMonth)
    return { name, units: amount, dollars: (amount / MILLION) * perMillion }
  })
  return { slots, resources, dollars: resources.reduce((sum, { dollars }) => sum + dollars, 0) }
}

/** Scales the counts of a run to one slot and month. */
export const toMonth = (counts: Counts, slots: number, seconds: number): Counts => {
  const entries = COUNTERS.map(name => [name, (counts[name] / slots / seconds) * SECONDS_PER_MONTH] as const)
  return Object.fromEntries(entries) as Record<Counter, number>
}

/** The counts of a run in real time, except those of the copies, which are from a run with a fast clock. */
export const withCopies = (counts: Counts, fast: Counts): Counts => ({
  ...counts,
  ...Object.fromEntries(COPY_COUNTERS.map(name => [name, fast[name]])),
})

const AUTHORIZATION = `Authorization: Bearer ${LEASE_TOKEN}\r\n`
const HOLDER = 'region-a/controller-0'
const TTL_SECONDS = 30
/** Until the clock starts. No lease expires while the first writes create the objects. */
const FIRST_TTL_SECONDS = 86_400
const RENEWAL_SECONDS = 10
/** The default of MAX_WAIT_SECONDS. */
const WAIT_SECONDS = 25
const RENEWING_CONNECTIONS = 16
/** The first copies are written before anything is counted. */
const WARM_UP_SECONDS = 15
/** Two renewal copies of each slot. */
const FAST_SECONDS = 1_140
const FAST_SPEED = 10
/** The TTL is 3 s of real time then, so a busy machine could not renew more slots in time. */
const FAST_SLOTS = 20
const MAX_SLOTS_IN_REAL_TIME = 1_000
/** More would need more open files than a process may have. */
const MAX_SLOTS_PER_PROCESS = 5_000
/** What the renewals and the waits of a slot take in a second, in renewals: a wait takes about as much as two of them. */
const RENEWALS_PER_SLOT_SECOND = 1 / RENEWAL_SECONDS + 2 / WAIT_SECONDS
/** The share of the machine that they may take, so that a renewal is on time. */
const MAX_USE = 0.6
const COST_PER_SLOT = 0.5
/** Of real time, after the end of a wait. */
const RESPONSE_TIMEOUT_MS = 120_000

/** A clock that runs `speed` times as fast as real time. */
class Clock {
  readonly #speed: number
  readonly #startedAt = performance.now()

  constructor(speed: number) {
    this.#speed = speed
  }

  seconds(): number {
    return ((performance.now() - this.#startedAt) / 1_000) * this.#speed
  }

  /** In milliseconds of real time. */
  toRealMs(seconds: number): number {
    return (seconds / this.#speed) * 1_000
  }

  async until(seconds: number): Promise<void> {
    const ms = this.toRealMs(seconds - this.seconds())
    if (ms > 0) await sleep(ms)
  }
}

const readCounts = async ({ port, pid }: Service, resetTo?: number): Promise<Counts> => {
  const { text } = await sendOne(port, {
    method: resetTo === undefined ? 'GET' : 'DELETE',
    path: `/bench/counts${resetTo === undefined ? '' : `?speed=${resetTo}`}`,
  })
  return { ...JSON.parse(text), cpuMs: readCpuMs(findWorkerd(pid) ?? 0) }
}

const addCounts = (all: readonly Counts[]): Counts =>
  all.reduce((sum, counts) => {
    const entries = COUNTERS.map(name => [name, sum[name] + counts[name]] as const)
    return Object.fromEntries(entries) as Record<Counter, number>
  })

/** A holder that renews each slot every 10 s and a standby that waits for each, on one witness. */
class Controllers implements Disposable {
  readonly service: Service
  readonly #slots: number
  readonly #generations: number[]
  readonly #connections: HttpConnection[] = []
  readonly #failure = Promise.withResolvers<never>()
  #isStopped = false
  /** How far a renewal was behind its time. */
  maxLagSeconds = 0

  constructor(service: Service, slots: number) {
    this.service = service
    this.#slots = slots
    this.#generations = Array.from({ length: slots }, () => 0)
    this.#failure.promise.catch(() => {})
  }

  /** Rejects when a response is not the expected one. */
  get failure(): Promise<never> {
    return this.#failure.promise
  }

  /** Writes each slot once, as fast as possible. */
  async writeAll(): Promise<void> {
    let next = 0
    const connections = this.#connections.length > 0 ? this.#connections : await this.#openAll()
    await Promise.all(
      connections.map(async connection => {
        while (next < this.#slots) await this.#write(connection, next++, FIRST_TTL_SECONDS)
      }),
    )
  }

  /** Resolves when every slot was renewed once on the clock and has a waiting standby. `writeAll` comes first. */
  async start(clock: Clock): Promise<void> {
    let next = 0
    const ready = Promise.withResolvers<void>()
    const renew = async (connection: HttpConnection) => {
      while (!this.#isStopped) {
        const turn = next++
        const at = (turn / this.#slots) * RENEWAL_SECONDS
        await clock.until(at)
        if (this.#isStopped) return
        this.maxLagSeconds = Math.max(this.maxLagSeconds, clock.seconds() - at)
        const slot = turn % this.#slots
        await this.#write(connection, slot, TTL_SECONDS)
        if (turn < this.#slots) this.#track(this.#stand(slot, clock))
        if (turn === this.#slots - 1) ready.resolve()
      }
    }
    for (const connection of [...this.#connections]) this.#track(renew(connection))
    await Promise.race([ready.promise, this.failure])
  }

  #track(work: Promise<void>): void {
    work.catch(error => {
      if (!this.#isStopped) this.#failure.reject(error)
    })
  }

  #openAll(): Promise<HttpConnection[]> {
    const count = Math.min(RENEWING_CONNECTIONS, this.#slots)
    return Promise.all(Array.from({ length: count }, () => this.#open()))
  }

  async #open(): Promise<HttpConnection> {
    const connection = await HttpConnection.open(this.service.port)
    this.#connections.push(connection)
    return connection
  }

  async #write(connection: HttpConnection, slot: number, ttlSeconds: number): Promise<void> {
    const generation = this.#generations[slot] ?? 0
    const body = JSON.stringify({ holder: HOLDER, ttlSeconds, op: generation === 0 ? 'acquire' : 'renew' })
    const response = await connection.send(
      `PUT /lease/cost-${slot} HTTP/1.1\r\nHost: bench\r\n${AUTHORIZATION}If-Match: ${generation}\r\n` +
        `Content-Length: ${body.length}\r\n\r\n${body}`,
      { timeoutMs: RESPONSE_TIMEOUT_MS },
    )
    this.#expect(response, [200])
    this.#generations[slot] = Number(/"generation":(\d+)/.exec(response.text)?.[1])
  }

  async #stand(slot: number, clock: Clock): Promise<void> {
    const connection = await this.#open()
    const wait = async (seconds: number) => {
      const request =
        `GET /lease/cost-${slot}?until=vacant HTTP/1.1\r\nHost: bench\r\n${AUTHORIZATION}If-None-Match: *\r\n` +
        `Prefer: wait=${seconds}\r\n\r\n`
      const timeoutMs = clock.toRealMs(seconds) + RESPONSE_TIMEOUT_MS
      this.#expect(await connection.send(request, { timeoutMs }), [304])
    }
    // The first waits differ, so that the waits of many slots do not end at the same time.
    await wait(1 + (slot % WAIT_SECONDS))
    while (!this.#isStopped) await wait(WAIT_SECONDS)
  }

  #expect({ status, text }: HttpResponse, statuses: readonly number[]): void {
    if (!statuses.includes(status)) throw new Error(`status ${status}: ${text.slice(0, 200)}`)
  }

  [Symbol.dispose](): void {
    this.#isStopped = true
    for (const connection of this.#connections) connection.socket.resetAndDestroy()
  }
}

interface RunPlan {
  readonly slots: number
  /** Of the clock; absent: real time, or slower if the machine cannot keep up with as many slots. */
  readonly speed?: number
  /** On the clock. */
  readonly warmUpSeconds?: number
  readonly seconds: number
}

interface CountedRun {
  readonly counts: Counts
  readonly speed: number
  readonly seconds: number
  readonly maxLagSeconds: number
}

/** The fastest clock, up to real time, on which the machine keeps up with the renewals and waits of so many slots. */
const fitSpeed = async (controllers: readonly Controllers[], slots: number): Promise<number> => {
  const startedAt = performance.now()
  await Promise.all(controllers.map(each => each.writeAll()))
  const renewalsPerSecond = (slots / (performance.now() - startedAt)) * 1_000
  return Math.min(1, (renewalsPerSecond * MAX_USE) / (slots * RENEWALS_PER_SLOT_SECOND))
}

const runCounted = async (
  environment: Environment,
  { slots, speed: wantedSpeed, warmUpSeconds = 0, seconds }: RunPlan,
): Promise<CountedRun> => {
  await using stack = new AsyncDisposableStack()
  const processes = Math.ceil(slots / MAX_SLOTS_PER_PROCESS)
  const services: Service[] = []
  for (let n = 0; n < processes; n += 1) services.push(stack.use(await environment.startCountedWitness()))
  const controllers = services.map(service => stack.use(new Controllers(service, slots / processes)))
  progress(`lease-cost: acquiring ${slots} slots`)
  await Promise.all(controllers.map(each => each.writeAll()))
  const speed = wantedSpeed ?? (slots > MAX_SLOTS_IN_REAL_TIME ? await fitSpeed(controllers, slots) : 1)
  progress(`lease-cost: ${slots} slots, ${seconds} s on a clock of speed ${toFigure(speed)}`)
  for (const service of services) await readCounts(service, speed)
  const clock = new Clock(speed)
  await Promise.all(controllers.map(each => each.start(clock)))
  const failures = controllers.map(({ failure }) => failure)
  await Promise.race([clock.until(clock.seconds() + warmUpSeconds), ...failures])
  const before = addCounts(await Promise.all(services.map(service => readCounts(service))))
  const startedAt = clock.seconds()
  await Promise.race([clock.until(startedAt + seconds), ...failures])
  const after = addCounts(await Promise.all(services.map(service => readCounts(service))))
  const counted = clock.seconds() - startedAt
  const counts = Object.fromEntries(COUNTERS.map(name => [name, after[name] - before[name]]))
  return {
    counts: counts as Record<Counter, number>,
    speed,
    seconds: counted,
    maxLagSeconds: Math.max(...controllers.map(each => each.maxLagSeconds)),
  }
}

const NOTE = [
  `Slots with a TTL of ${TTL_SECONDS} s that their holders renew every ${RENEWAL_SECONDS} s, one by one, and one standby each, which waits with`,
  `?until=vacant and Prefer: wait=${WAIT_SECONDS}. Everything is counted in a running workerd, by functions of the runtime that the`,
  'bench replaces; the witness itself is unchanged. Duration: the real time in which an object handled an event (until the',
  'storage had confirmed its writes); an object without events and timers is not billed. Copies in KV are due every ten',
  `minutes, so they are counted on a clock ${FAST_SPEED} times as fast, with at most ${FAST_SLOTS} slots: the objects of slots are`,
  'independent. More than a thousand slots run on a clock as slow as the machine needs. CPU: all of workerd on this machine,',
  'with the objects and the runtime, as an upper bound. Rows: one for each put and each setAlarm, as the documentation bills',
  `them. Dollars: the prices of the Workers Paid plan on ${PRICES_READ}, without its fee and the included amounts. From`,
  '2026-12-01, logs cost $0.25 per GB instead of per line.',
].join('\n')

const costTable = (costs: readonly SlotCost[]): Table => ({
  columns: [
    left('per slot and month'),
    right('$ per million'),
    ...costs.flatMap(({ slots }) => [right(slots === 1 ? '1 slot' : `${slots} slots`), right('$')]),
    left('price'),
  ],
  rows: [
    ...RESOURCES.map(({ name, perMillion, source }, index) => [
      name,
      String(perMillion),
      ...costs.flatMap(({ resources }) => {
        const { units = 0, dollars = 0 } = resources[index] ?? {}
        return [units.toFixed(0), dollars.toFixed(4)]
      }),
      source,
    ]),
    ['total', '', ...costs.flatMap(({ dollars }) => ['', dollars.toFixed(3)]), ''],
  ],
})

export const leaseCostSection: Section = {
  name: 'lease-cost',
  title: 'what Cloudflare bills for a slot with a holder and a waiting standby',
  needs: 'workerd',
  async run({ environment, options }): Promise<SectionResult> {
    const runs: object[] = []
    const errors: string[] = []
    const count = async (plan: RunPlan): Promise<Counts> => {
      const { slots } = plan
      const run = await runCounted(environment, plan)
      runs.push({ slots, ...run })
      if (run.maxLagSeconds > RENEWAL_SECONDS)
        errors.push(`${slots} slots: a renewal was ${toFigure(run.maxLagSeconds)} s late; use fewer --slots`)
      return toMonth(run.counts, slots, run.seconds)
    }
    // The defaults of --seconds and --slots give 10,000 slots and 50 s, which are two waits and five renewals of a slot.
    const seconds = options.seconds * 62.5
    const fastSeconds = Math.min(FAST_SECONDS, (options.seconds / 0.8) * FAST_SECONDS)
    const fast = { slots: FAST_SLOTS, speed: FAST_SPEED, warmUpSeconds: WARM_UP_SECONDS, seconds: fastSeconds }
    const most = options.slots * 10
    // The small runs leave the machine idle, so they can run at the same time.
    const [copies, one, hundred] = await Promise.all([
      count(fast),
      count({ slots: 1, seconds }),
      count({ slots: 100, seconds }),
    ])
    // Many slots renew and wait at evenly distributed times, so the time of one renewal is enough.
    const large = await count({ slots: most, seconds: seconds / 5 })
    const costs = [
      toSlotCost(1, withCopies(one, copies)),
      toSlotCost(100, withCopies(hundred, copies)),
      toSlotCost(most, withCopies(large, copies)),
    ]
    const many = costs.at(-1)
    const dollars = many?.dollars ?? Number.NaN
    const goals = [
      toGoal(`${many?.slots} slots`, '$ per slot and month', 'at most', COST_PER_SLOT, {
        median: dollars,
        min: dollars,
        max: dollars,
      }),
    ]
    return {
      notes: [NOTE],
      tables: [costTable(costs), goalTable('goal', goals)],
      figures: { costs, runs, goals, pricesRead: PRICES_READ },
      errors,
    }
  },
}
