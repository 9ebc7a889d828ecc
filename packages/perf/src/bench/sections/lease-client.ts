import { setTimeout as sleep } from 'node:timers/promises'
import type { HttpResponse } from '@pool/test-kit/http1.ts'
import { LEASE_TOKEN } from '../environment/environment.ts'
import {
  type BenchRequest,
  expectStatus,
  openHttpUsers,
  type ResponseError,
  sendAll,
  sendOne,
  type Target,
} from '../load/target.ts'

const AUTHORIZATION = `Authorization: Bearer ${LEASE_TOKEN}\r\n`
const HOLDER = 'region-a/controller-0'
/** Longer than any run: a renewed lease has not expired. */
const TTL_SECONDS = 86_400

/** The requests of a client to a store that compares a version before it writes a slot. */
export interface SlotClient {
  readonly slots: number
  /** What is wrong with the response to a `get`: it must have the version of the last `update`. */
  readonly checkRead: (slot: number, response: HttpResponse) => ResponseError
  readonly get: (slot: number) => BenchRequest
  /** A write with the version of the last `update`. */
  readonly put: (slot: number) => BenchRequest
  /** Whether a `put` was applied. */
  readonly isGranted: (response: HttpResponse) => boolean
  /** Whether the response to a `put` shows that another version is stored. */
  readonly isRejected: (response: HttpResponse) => boolean
  /** Stores the version in a response, and returns it. */
  readonly update: (slot: number, response: HttpResponse) => number
}

const expectOk = expectStatus(200)

/** What a client knows of its slots: the generation of each in the last response. */
export class LeaseClient implements SlotClient {
  readonly slots: number
  readonly #name: string
  readonly #generations: number[]

  constructor(name: string, slots: number) {
    this.slots = slots
    this.#name = name
    this.#generations = Array.from({ length: slots }, () => 0)
  }

  get(slot: number): BenchRequest {
    return { method: 'GET', path: this.#path(slot), headers: AUTHORIZATION }
  }

  /** Acquires a lease, or renews it. */
  put(slot: number): BenchRequest {
    return {
      method: 'PUT',
      path: this.#path(slot),
      headers: `${AUTHORIZATION}If-Match: "${this.#generations[slot]}"\r\n`,
      body: JSON.stringify({ holder: HOLDER, ttlSeconds: TTL_SECONDS }),
    }
  }

  /** Stores the generation in a response, and returns it. */
  update(slot: number, { text }: Pick<HttpResponse, 'text'>): number {
    const generation = Number(/"generation":(\d+)/.exec(text)?.[1] ?? 0)
    this.#generations[slot] = generation
    return generation
  }

  checkRead(slot: number, response: HttpResponse): ResponseError {
    const isExpected = response.text.endsWith(`"generation":${this.#generations[slot]}}`)
    return expectOk(response) ?? (isExpected ? null : `an unexpected lease: ${response.text}`)
  }

  isGranted({ status }: HttpResponse): boolean {
    return status === 200
  }

  isRejected({ status }: HttpResponse): boolean {
    return status === 412
  }

  #path(slot: number): string {
    return `/lease/${this.#name}-${slot}`
  }
}

/** Divides the slots among virtual users. Each visits its own slots in order, so it knows their generations. */
export const createSlotPicker = (slots: number): ((user: number, users: number) => number) => {
  const visits: number[] = []
  return (user, users) => {
    const visit = visits[user] ?? 0
    visits[user] = visit + 1
    const own = Math.ceil((slots - user) / users)
    return user + (visit % own) * users
  }
}

const MAX_COPY_MS = 60_000
const POLL_MS = 100

const checkGranted = (client: SlotClient, response: HttpResponse): ResponseError =>
  client.isGranted(response) ? null : `status ${response.status}: ${response.text.slice(0, 120)}`

/** The first write of each slot. */
export const acquireAll = async (port: number, client: SlotClient): Promise<void> => {
  let next = 0
  await sendAll(port, () => {
    if (next >= client.slots) return undefined
    const slot = next++
    return {
      request: client.put(slot),
      check(response) {
        client.update(slot, response)
        return checkGranted(client, response)
      },
    }
  })
}

/** Waits until the first writes of a witness are listed: the cost of their copies must not be part of the next measurement. */
export const waitForCopies = async (port: number, { slots }: SlotClient): Promise<void> => {
  const until = performance.now() + MAX_COPY_MS
  for (;;) {
    const { text } = await sendOne(port, { method: 'GET', path: '/leases', headers: AUTHORIZATION })
    const { length } = JSON.parse(text).leases
    if (length === slots) return
    if (performance.now() > until)
      throw new Error(`only ${length} of ${slots} leases were copied to KV within ${MAX_COPY_MS} ms`)
    await sleep(POLL_MS)
  }
}

/** Each response has the status and the generation of the last write. */
export const createGetTarget = (name: string, port: number, client: SlotClient): Target => {
  const pick = createSlotPicker(client.slots)
  return {
    name,
    open: users =>
      openHttpUsers(port, users, user => {
        // All virtual users read a single slot.
        const slot = client.slots === 1 ? 0 : pick(user, users)
        return {
          request: client.get(slot),
          check: response => client.checkRead(slot, response),
        }
      }),
  }
}

/** Each virtual user renews its own slots in order: every write is granted. */
export const createRenewTarget = (name: string, port: number, client: SlotClient): Target => {
  const pick = createSlotPicker(client.slots)
  return {
    name,
    open: users =>
      openHttpUsers(port, users, user => {
        const slot = pick(user, users)
        return {
          request: client.put(slot),
          check(response) {
            // A rejection shows the version that a failed response left out.
            if (client.isGranted(response) || client.isRejected(response)) client.update(slot, response)
            return checkGranted(client, response)
          },
        }
      }),
  }
}

/** All clients write the same slot, each with the version in its last response. A store grants each version once. */
export const createContendedTarget = (name: string, port: number, createClient: () => SlotClient): Target => {
  const granted = new Set<number>()
  return {
    name,
    open: users => {
      const clients = Array.from({ length: users }, createClient)
      return openHttpUsers(port, users, user => {
        const client = clients[user] ?? createClient()
        return {
          request: client.put(0),
          check(response) {
            const version = client.update(0, response)
            if (!client.isGranted(response)) return client.isRejected(response) ? null : checkGranted(client, response)
            if (granted.has(version)) return 'a version was granted twice'
            granted.add(version)
            return null
          },
        }
      })
    },
  }
}
