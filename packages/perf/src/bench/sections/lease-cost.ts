import { setTimeout as sleep } from 'node:timers/promises'
import { HttpConnection, type HttpResponse } from '@pool/test-kit/http1.ts'
import { findWorkerd, readCpuUs } from '@pool/test-kit/processes.ts'
import { progress } from '../../shared/cli.ts'
import { left, right, toFigure } from '../../shared/figures.ts'
import { type Environment, LEASE_TOKEN, type Service } from '../environment/environment.ts'
import { sendOne } from '../load/target.ts'
import { DEFAULT_SECONDS } from '../options.ts'
import type { Section } from '../section.ts'

/** Counters of environment/lease-cost/counted.mjs, and the CPU time of workerd. */
export const COUNTERS = [
  'workerRequests',
  'objectRequests',
  'webSocketMessages',
  'objectMs',
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
const PRICES_READ = '2026-11-23'
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

/** What one slot costs. `perMonth`: the counts of one slot in a month. */
export const toSlotCost = (perMonth: Counts) =>
  RESOURCES.map(({ units, ...resource }) => {
    const amount = units(perMonth)
    return { ...resource, units: amount, dollars: (amount / MILLION) * resource.perMillion }
  })

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
const SLOTS = 100
/** Of the run in real time, for the default of --seconds: two waits and five renewals of a slot. */
const SECONDS = 50
/** The first copies are written before anything is counted. */
const WARM_UP_SECONDS = 15
/** Two renewal copies of each slot. */
const FAST_SECONDS = 1_140
const FAST_SPEED = 10
/** The TTL is 3 s of real time then, so a busy machine could not renew more slots in time. */
const FAST_SLOTS = 20
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
  return { ...JSON.parse(text), cpuMs: (readCpuUs(findWorkerd(pid) ?? 0) ?? 0) / 1_000 }
}

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
  /** Of the clock, relative to real time. */
  readonly speed: number
  /** On the clock. */
  readonly warmUpSeconds: number
  readonly seconds: number
}

interface CountedRun {
  /** Of one slot in a month. */
  readonly perMonth: Counts
  readonly maxLagSeconds: number
}

const runCounted = async (environment: Environment, plan: RunPlan): Promise<CountedRun> => {
  const { slots, speed, warmUpSeconds, seconds } = plan
  await using service = await environment.startCountedWitness()
  using controllers = new Controllers(service, slots)
  await controllers.writeAll()
  progress(`lease-cost: ${slots} slots, ${toFigure(seconds)} s on a clock of speed ${speed}`)
  await readCounts(service, speed)
  const clock = new Clock(speed)
  await controllers.start(clock)
  await Promise.race([clock.until(clock.seconds() + warmUpSeconds), controllers.failure])
  const before = await readCounts(service)
  const startedAt = clock.seconds()
  await Promise.race([clock.until(startedAt + seconds), controllers.failure])
  const after = await readCounts(service)
  const counted = clock.seconds() - startedAt
  const counts = Object.fromEntries(COUNTERS.map(name => [name, after[name] - before[name]])) as Record<Counter, number>
  return { perMonth: toMonth(counts, slots, counted), maxLagSeconds: controllers.maxLagSeconds }
}

const NOTE = [
  `${SLOTS} slots with a TTL of ${TTL_SECONDS} s that their holders renew every ${RENEWAL_SECONDS} s, one by one, and one standby each, which waits with`,
  `?until=vacant and Prefer: wait=${WAIT_SECONDS}. Everything is counted in a running workerd, by functions of the runtime that the`,
  'bench replaces; the witness itself is unchanged. Duration: the real time in which an object handled an event (until the',
  'storage had confirmed its writes); an object without events and timers is not billed. Copies in KV are due every ten',
  `minutes, so they are counted on a clock ${FAST_SPEED} times as fast, with ${FAST_SLOTS} slots: the objects of slots are independent. CPU: all`,
  'of workerd on this machine, with the objects and the runtime, as an upper bound. Rows: one for each put and each setAlarm, as',
  `the documentation bills them. Dollars: the prices of the Workers Paid plan on ${PRICES_READ}, without its fee and the included`,
  'amounts. From 2026-12-01, logs cost $0.25 per GB instead of per line.',
].join('\n')

export const leaseCostSection: Section = {
  name: 'lease-cost',
  title: 'what Cloudflare bills for a slot with a holder and a waiting standby',
  note: NOTE,
  comparesWith: 'nothing',
  async run({ environment, options }) {
    const scale = options.seconds / DEFAULT_SECONDS
    const fastSeconds = FAST_SECONDS * Math.min(1, scale)
    // The runs leave the machine idle, so they can run at the same time.
    const [copies, timed] = await Promise.all([
      runCounted(environment, {
        slots: FAST_SLOTS,
        speed: FAST_SPEED,
        warmUpSeconds: WARM_UP_SECONDS,
        seconds: fastSeconds,
      }),
      runCounted(environment, { slots: SLOTS, speed: 1, warmUpSeconds: 0, seconds: SECONDS * scale }),
    ])
    const resources = toSlotCost(withCopies(timed.perMonth, copies.perMonth))
    const total = resources.reduce((sum, { dollars }) => sum + dollars, 0)
    const late = [copies, timed].filter(({ maxLagSeconds }) => maxLagSeconds > RENEWAL_SECONDS)
    return {
      tables: [
        {
          columns: [left('per slot and month'), right('$ per million'), right('units'), right('$'), left('price')],
          rows: [
            ...resources.map(({ name, perMillion, units, dollars, source }) => [
              name,
              String(perMillion),
              units.toFixed(0),
              dollars.toFixed(4),
              source,
            ]),
            ['total', '', '', total.toFixed(3), ''],
          ],
        },
      ],
      errors: late.map(({ maxLagSeconds }) => `a renewal was ${toFigure(maxLagSeconds)} s late`),
    }
  },
}
