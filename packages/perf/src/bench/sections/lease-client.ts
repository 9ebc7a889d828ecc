import { setTimeout as sleep } from 'node:timers/promises'
import type { HttpResponse } from '@pool/test-kit/http1.ts'
import { LEASE_TOKEN } from '../environment/environment.ts'
import { type BenchRequest, expectStatus, openHttpUsers, sendAll, sendOne, type Target } from '../load/target.ts'

const AUTHORIZATION = `Authorization: Bearer ${LEASE_TOKEN}\r\n`
const HOLDER = 'region-a/controller-0'
/** Longer than any run: a renewed lease has not expired. */
const TTL_SECONDS = 86_400

/** What a client knows of its slots: the generation of each in the last response. */
export class LeaseClient {
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

  list(): BenchRequest {
    return { method: 'GET', path: `/leases?prefix=${this.#name}-`, headers: AUTHORIZATION }
  }

  /** Stores the generation in a response, and returns it. */
  update(slot: number, { text }: Pick<HttpResponse, 'text'>): number {
    const generation = Number(/"generation":(\d+)/.exec(text)?.[1] ?? 0)
    this.#generations[slot] = generation
    return generation
  }

  generation(slot: number): number {
    return this.#generations[slot] ?? 0
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

/**
 * The first write of each slot. The witness copies it to KV. With `copied`, this waits for the copies, because their cost must not
 * be part of the next measurement.
 */
export const acquireAll = async (port: number, client: LeaseClient, copied: boolean): Promise<void> => {
  let next = 0
  await sendAll(port, () => {
    if (next >= client.slots) return undefined
    const slot = next++
    return {
      request: client.put(slot),
      check(response) {
        client.update(slot, response)
        return expectStatus(200)(response)
      },
    }
  })
  if (!copied) return
  const until = performance.now() + MAX_COPY_MS
  for (;;) {
    const { leases } = JSON.parse((await sendOne(port, client.list())).text)
    if (leases.length === client.slots) return
    if (performance.now() > until)
      throw new Error(`only ${leases.length} of ${client.slots} leases were copied to KV within ${MAX_COPY_MS} ms`)
    await sleep(POLL_MS)
  }
}

/** Each response has the status and the generation of the last write. */
export const createGetTarget = (name: string, port: number, client: LeaseClient): Target => {
  const pick = createSlotPicker(client.slots)
  const expectOk = expectStatus(200)
  return {
    name,
    open: users =>
      openHttpUsers(port, users, user => {
        // All virtual users read a single slot.
        const slot = client.slots === 1 ? 0 : pick(user, users)
        return {
          request: client.get(slot),
          check: response =>
            expectOk(response) ??
            (response.text.endsWith(`"generation":${client.generation(slot)}}`)
              ? null
              : `an unexpected lease: ${response.text}`),
        }
      }),
  }
}

/** Each virtual user renews its own slots in order: every response is a 200. */
export const createRenewTarget = (name: string, port: number, client: LeaseClient): Target => {
  const pick = createSlotPicker(client.slots)
  const expectOk = expectStatus(200)
  return {
    name,
    open: users =>
      openHttpUsers(port, users, user => {
        const slot = pick(user, users)
        return {
          request: client.put(slot),
          check(response) {
            // A 412 shows the generation that a failed response left out.
            if (response.status === 200 || response.status === 412) client.update(slot, response)
            return expectOk(response)
          },
        }
      }),
  }
}
