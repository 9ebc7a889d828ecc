import { ADDRESS, createDirectSql } from '../environment/direct-sql.ts'
import { POOL, toLabel } from '../environment/names.ts'
import {
  type BenchRequest,
  createHttpTarget,
  createLocalTarget,
  expectStatus,
  sendAll,
  type Target,
  type Task,
  type Workload,
} from '../load/target.ts'
import type { Peer } from '../options.ts'
import { type Load, loadSection, type Section, type Side } from '../section.ts'

/** One client, a busy replica, and more than the database connections can carry concurrently. */
const VIRTUAL_USERS = [1, 16, 64]

const NOTE = [
  'Closed loop: each virtual user sends its next request when it has its response. Medians over the rounds (min–max); ratios are',
  'geometric means over the rounds, with their 95 % interval. SQL alone: the same statements through the driver, one request',
  'each, without a key or HTTP, with as many callers and an equal connection pool; the API batches concurrent requests. Hono',
  'floor: a three-line Hono app on the same adapter, which answers a GET. CPU: of the process, per response.',
].join('\n')

interface Reservation {
  readonly subdomain: string
  readonly token: string
}

/** How a target makes the names that a load needs, not timed. */
interface Names {
  readonly reserve: (subdomains: readonly string[]) => Promise<readonly Reservation[]>
  readonly commit: (reservations: readonly Reservation[]) => Promise<void>
}

/** Where the API has the names, and what its requests carry. */
type Site = Pick<Peer, 'pool' | 'headers'>

/** The API's default reservation is in the pool of the bench. */
const OWN_SITE: Site = { pool: POOL, headers: '' }

const post = ({ pool, headers }: Site, operation: string, body: object): BenchRequest => ({
  method: 'POST',
  path: `/api/v1/pool/${pool}/${operation}`,
  headers,
  body: JSON.stringify(body),
})

const toReserveTask = (subdomain: string, site: Site): Task => ({
  request: post(site, 'reserve', { subdomain, createdBy: 'bench' }),
  check: expectStatus(201),
})

const toCommitTask = ({ subdomain, token }: Reservation, site: Site): Task => {
  const records = { sovereignFQDN: `${subdomain}.${site.pool}`, loadBalancerIP: ADDRESS }
  return {
    request: post(site, 'commit', { subdomain, reservationToken: token, ...records }),
    // 202: the records are not published yet.
    check: expectStatus(200, 202),
  }
}

const createHttpNames = (to: Parameters<typeof sendAll>[0], site: Site): Names => ({
  async reserve(subdomains) {
    const waiting = [...subdomains]
    const reservations: Reservation[] = []
    await sendAll(to, () => {
      const subdomain = waiting.pop()
      if (subdomain === undefined) return undefined
      const task = toReserveTask(subdomain, site)
      return {
        ...task,
        check(response) {
          reservations.push({ subdomain, token: JSON.parse(response.text).reservationToken })
          return task.check(response)
        },
      }
    })
    return reservations
  },
  async commit(reservations) {
    const waiting = [...reservations]
    await sendAll(to, () => {
      const reservation = waiting.pop()
      return reservation && toCommitTask(reservation, site)
    })
  },
})

/** Calls `work` for each item, as many at a time as there are connections to the API. */
const forEach = async <Item>(items: readonly Item[], work: (item: Item) => Promise<void>): Promise<void> => {
  const waiting = [...items]
  const workers = Array.from({ length: 16 }, async () => {
    for (let item = waiting.pop(); item !== undefined; item = waiting.pop()) await work(item)
  })
  await Promise.all(workers)
}

type DirectSql = ReturnType<typeof createDirectSql>

const createSqlNames = (direct: DirectSql): Names => ({
  async reserve(subdomains) {
    const reservations: Reservation[] = []
    await forEach(subdomains, async subdomain => {
      reservations.push({ subdomain, token: await direct.reserve(subdomain) })
    })
    return reservations
  },
  commit: reservations => forEach(reservations, ({ subdomain, token }) => direct.commit(subdomain, token)),
})

/** Names that an earlier run has probably not used: another server keeps them. */
const toFirstName = (): number => (Math.floor(Date.now() / 1_000) % 4_000) * 1_000_000

const createLabels = () => {
  let next = toFirstName()
  return (count: number): string[] => Array.from({ length: count }, () => toLabel(next++))
}

/** What a load does: the items of its operations, each as a request and as a statement. */
interface Subject<Item> {
  readonly name: string
  readonly createItems: (names: Names, seconds: number) => Promise<Pick<Workload<Item>, 'prepare' | 'next'>>
  readonly toTask: (item: Item, site: Site) => Task
  /** Absent: it executes none. */
  readonly operate?: (direct: DirectSql, item: Item) => Promise<unknown>
}

const createLoad = <Item>({ name, createItems, toTask, operate }: Subject<Item>): Load => ({
  name,
  users: VIRTUAL_USERS,
  async createTarget({ name: target, environment, options, checkout, peer, stack }): Promise<Target> {
    const start = async () => stack.use(await environment.startApi(await environment.createDatabase(), checkout))
    const { server, site, pid } = peer
      ? { server: peer, site: peer, pid: undefined }
      : await start().then(({ port, pid }) => ({ server: port, site: OWN_SITE, pid }))
    const items = await createItems(createHttpNames(server, site), options.seconds)
    return createHttpTarget(target, server, { ...items, toTask: item => toTask(item, site) }, pid)
  },
  async createBaselines({ environment, options, stack }: Side) {
    if (!operate) return []
    const direct = createDirectSql(stack.use(await environment.createSchema()).sql)
    const items = await createItems(createSqlNames(direct), options.seconds)
    return [createLocalTarget('SQL alone', items, item => operate(direct, item))]
  },
})

/** A load without an Idempotency-Key, and the same load with one, interleaved with itself without one. */
const createKeyLoads = <Item>(subject: Subject<Item>): readonly Load[] => {
  const keyless = createLoad(subject)
  const toTask: typeof subject.toTask = (item, { pool, headers }) =>
    subject.toTask(item, { pool, headers: `${headers}Idempotency-Key: ${crypto.randomUUID()}\r\n` })
  const keyed = createLoad({ ...subject, name: `${subject.name} with an Idempotency-Key`, toTask })
  const createKeyless = (side: Side) => keyless.createTarget({ ...side, name: 'without a key' })
  const createBaselines = async (side: Side) => [await createKeyless(side), ...(await keyed.createBaselines(side))]
  return [keyless, { ...keyed, createBaselines }]
}

const createUnusedNames = async () => {
  const toLabels = createLabels()
  return { next: () => toLabels(1)[0] }
}

/** Operations per second that a load is prepared for. A run that uses them up ends early, and its rate is over that time. */
const MAX_PER_SECOND = 4_000

/** Items that are used up: `make` makes those that are missing, before each run. */
const createStore =
  <Item>(make: (names: Names, subdomains: readonly string[]) => Promise<readonly Item[]>) =>
  async (names: Names, seconds: number) => {
    const toLabels = createLabels()
    const waiting: Item[] = []
    return {
      async prepare() {
        const missing = Math.ceil(seconds * MAX_PER_SECOND) - waiting.length
        if (missing > 0) waiting.push(...(await make(names, toLabels(missing))))
      },
      next: () => waiting.pop(),
    }
  }

const createReservations = createStore((names, subdomains) => names.reserve(subdomains))

const section = (fields: Pick<Section, 'name' | 'title'>, loads: readonly Load[]): Section =>
  loadSection({ ...fields, note: NOTE, comparesWith: 'server', target: 'API', loads: () => loads })

const CHECKED_NAMES = 20_000

export const apiSections: readonly Section[] = [
  section(
    { name: 'reserve', title: 'POST reserve of unused names' },
    createKeyLoads<string>({
      name: 'reserve',
      createItems: createUnusedNames,
      toTask: toReserveTask,
      operate: (direct, subdomain) => direct.reserve(subdomain),
    }),
  ),
  section({ name: 'not-found', title: 'GET of a path that no route has: what every request costs' }, [
    createLoad<string>({
      name: 'not-found',
      createItems: createUnusedNames,
      toTask: (label, { headers }) => ({
        request: { method: 'GET', path: `/api/v1/${label}`, headers },
        check: expectStatus(404),
      }),
    }),
  ]),
  section({ name: 'check', title: 'GET check of names, half of them reserved' }, [
    createLoad<{ readonly subdomain: string; readonly isReserved: boolean }>({
      name: 'check',
      async createItems(names) {
        const labels = createLabels()(CHECKED_NAMES)
        await names.reserve(labels.filter((_, index) => index % 2 === 0))
        let checks = 0
        return {
          next() {
            const index = checks++ % CHECKED_NAMES
            return { subdomain: labels[index] ?? '', isReserved: index % 2 === 0 }
          },
        }
      },
      toTask: ({ subdomain, isReserved }, { pool, headers }) => ({
        request: { method: 'GET', path: `/api/v1/pool/${pool}/check?sub=${subdomain}`, headers },
        check: response => {
          const isExpected =
            response.text.startsWith(`{"available":${!isReserved}`) &&
            (!isReserved || response.text.includes('"reserved-state"'))
          return expectStatus(200)(response) ?? (isExpected ? null : `unexpected: ${response.text.slice(0, 120)}`)
        },
      }),
      operate: (direct, { subdomain, isReserved }) => direct.check(subdomain, isReserved),
    }),
  ]),
  section(
    { name: 'commit', title: 'POST commit, each of another reservation' },
    createKeyLoads<Reservation>({
      name: 'commit',
      createItems: createReservations,
      toTask: toCommitTask,
      operate: (direct, { subdomain, token }) => direct.commit(subdomain, token),
    }),
  ),
  section({ name: 'release', title: 'DELETE release of active names' }, [
    createLoad<string>({
      name: 'release',
      createItems: createStore(async (names, subdomains) => {
        await names.commit(await names.reserve(subdomains))
        return subdomains
      }),
      toTask: (subdomain, { pool, headers }) => ({
        request: {
          method: 'DELETE',
          path: `/api/v1/pool/${pool}/release`,
          headers,
          body: JSON.stringify({ subdomain }),
        },
        // 202: the records are not removed yet.
        check: expectStatus(200, 202),
      }),
      operate: (direct, subdomain) => direct.release(subdomain),
    }),
  ]),
]
