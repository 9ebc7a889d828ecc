import { ADDRESS } from './environment/direct-sql.ts'
import { POOL, type Reservation, type Reserve, toLabel } from './environment/seed.ts'
import type { Server } from './load/connection.ts'
import { FLOOR } from './load/cost.ts'
import { type BenchRequest, expectStatus, openHttpUsers, sendAll, type Target, type Task } from './load/target.ts'

/** A load on the API. A target over HTTP and one on the bare statements make the same requests. */
export interface Workload<Item> {
  readonly prepare?: () => Promise<void>
  /** The next item; undefined: none is left. */
  readonly next: () => Item | undefined
  readonly toTask: (item: Item) => Task
}

/** Where a server has the names of a load. */
export interface Site {
  readonly pool: string
  /** Whole lines, each with CRLF. */
  readonly headers?: string
}

/** Of the services that this process starts. */
const OWN_SITE: Site = { pool: POOL }

const post = (operation: string, body: object, { pool, headers = '' }: Site = OWN_SITE): BenchRequest => ({
  method: 'POST',
  path: `/api/v1/pool/${pool}/${operation}`,
  headers,
  body: JSON.stringify(body),
})

const toReserveTask = (subdomain: string, site?: Site): Task => ({
  request: post('reserve', { subdomain, createdBy: 'bench' }, site),
  check: expectStatus(201),
})

/** Names from number `from` on, which must be unused: every reserve succeeds. */
export const createReserveWorkload = (from = 0, site?: Site): Workload<string> => {
  let names = from
  return { next: () => toLabel(names++), toTask: subdomain => toReserveTask(subdomain, site) }
}

/** Reserves over HTTP, for a service whose tables are unknown. */
export const reserveOverHttp =
  (server: number | Server, site?: Site): Reserve =>
  async (from, count) => {
    const reservations: Reservation[] = []
    let next = from
    await sendAll(server, () => {
      if (next >= from + count) return undefined
      const subdomain = toLabel(next++)
      const { request, check } = toReserveTask(subdomain, site)
      return {
        request,
        check(response) {
          const { reservationToken } = JSON.parse(response.text)
          reservations.push({ subdomain, reservationToken })
          return check(response)
        },
      }
    })
    return reservations
  }

const CHECKED_NAMES = 20_000
const RESERVED_NAMES = CHECKED_NAMES / 2

export interface CheckedName {
  readonly subdomain: string
  readonly isReserved: boolean
}

const toCheckTask = ({ subdomain, isReserved }: CheckedName, { pool, headers = '' }: Site = OWN_SITE): Task => ({
  request: { method: 'GET', path: `/api/v1/pool/${pool}/check?sub=${subdomain}`, headers },
  check(response) {
    const problem = expectStatus(200)(response)
    if (problem !== null) return problem
    const isExpected =
      response.text.startsWith(`{"available":${!isReserved}`) &&
      (!isReserved || response.text.includes('"reserved-state"'))
    return isExpected ? null : `unexpected: ${response.text.slice(0, 120)}`
  },
})

/** Alternates between reserved and available names, from number `from` on. */
export const createCheckWorkload = async (reserve: Reserve, from = 0, site?: Site): Promise<Workload<CheckedName>> => {
  await reserve(from, RESERVED_NAMES)
  let requests = 0
  return {
    next() {
      const index = requests++ % CHECKED_NAMES
      const isReserved = index % 2 === 0
      return { isReserved, subdomain: toLabel(from + (isReserved ? index / 2 : RESERVED_NAMES + (index - 1) / 2)) }
    },
    toTask: name => toCheckTask(name, site),
  }
}

/** A path that no route has. */
export const createNotFoundWorkload = (): Workload<string> => {
  let requests = 0
  return {
    next: () => toLabel(requests++),
    toTask: label => ({ request: { method: 'GET', path: `/api/v1/${label}` }, check: expectStatus(404) }),
  }
}

/** Commits per second that are prepared for. A run that uses them up ends early, and its rate is over that time. */
const COMMITS_PER_SECOND = 6_000

export const toCommitTask = ({ subdomain, reservationToken }: Reservation): Task => ({
  request: post('commit', {
    subdomain,
    reservationToken,
    sovereignFQDN: `${subdomain}.${POOL}`,
    loadBalancerIP: ADDRESS,
  }),
  // 202: the records are not published yet.
  check: expectStatus(200, 202),
})

/** Each commit is of another reservation. They are made before each run, of the names from number `from` on. */
export const createCommitWorkload = (reserve: Reserve, seconds: number, from = 0): Workload<Reservation> => {
  const waiting: Reservation[] = []
  let reserved = from
  return {
    async prepare() {
      const missing = Math.ceil(seconds * COMMITS_PER_SECOND) - waiting.length
      if (missing <= 0) return
      waiting.push(...(await reserve(reserved, missing)))
      reserved += missing
    },
    next: () => waiting.pop(),
    toTask: toCommitTask,
  }
}

/** Makes reservations active, not timed. */
export type Activate = (reservations: readonly Reservation[]) => Promise<void>

/** Commits over HTTP, so that the records of the names are published as in production. */
export const commitOverHttp =
  (port: number): Activate =>
  async reservations => {
    const waiting = [...reservations]
    // As many as commit fastest.
    await sendAll(
      port,
      () => {
        const reservation = waiting.pop()
        return reservation && toCommitTask(reservation)
      },
      64,
    )
  }

/** Releases per second that are prepared for, as above. */
const RELEASES_PER_SECOND = 3_000

/** Each release is of another active name. They are committed before each run. */
export const createReleaseWorkload = (reserve: Reserve, activate: Activate, seconds: number): Workload<string> => {
  const active: string[] = []
  let reserved = 0
  return {
    async prepare() {
      const missing = Math.ceil(seconds * RELEASES_PER_SECOND) - active.length
      if (missing <= 0) return
      const reservations = await reserve(reserved, missing)
      reserved += missing
      await activate(reservations)
      active.push(...reservations.map(({ subdomain }) => subdomain))
    },
    next: () => active.pop(),
    toTask: subdomain => ({
      request: { method: 'DELETE', path: `/api/v1/pool/${POOL}/release`, body: JSON.stringify({ subdomain }) },
      // 202: the records are not removed yet.
      check: expectStatus(200, 202),
    }),
  }
}

/** The route of the floor. */
export const createFloorTarget = ({ port, pid }: { readonly port: number; readonly pid: number }): Target =>
  createHttpTarget(
    FLOOR,
    port,
    { next: () => ({}), toTask: () => ({ request: { method: 'GET', path: '/' }, check: expectStatus(200) }) },
    { pid },
  )

export const createHttpTarget = <Item>(
  name: string,
  server: number | Server,
  { prepare, next, toTask }: Workload<Item>,
  changes: Pick<Target, 'counters' | 'pid'> & { readonly check?: Task['check'] } = {},
): Target => {
  const { check, ...rest } = changes
  return {
    name,
    ...(prepare ? { prepare } : {}),
    ...rest,
    open: users =>
      openHttpUsers(server, users, () => {
        const item = next()
        if (item === undefined) return undefined
        const task = toTask(item)
        return check ? { ...task, check } : task
      }),
  }
}
