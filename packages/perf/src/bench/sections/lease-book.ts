import { LEASE_TOKEN } from '../environment/service.ts'
import type { Answer } from '../load/answer.ts'
import type { Request } from '../load/connection.ts'

const AUTHORIZATION = `Authorization: Bearer ${LEASE_TOKEN}\r\n`
const HOLDER = 'region-a/controller-0'
/** Longer than any run: what is renewed has not expired. */
const LONG_SECONDS = 86_400

/** What a client knows of some slots: their generations, as the last answers told them. */
export interface Book {
  readonly slots: number
  readonly read: (slot: number) => Request
  /** Acquires, or renews where the holder is the same. */
  readonly write: (slot: number, as?: { readonly holder?: string; readonly ttlSeconds?: number }) => Request
  /** Takes over what the answer tells; gives the generation. */
  readonly learn: (slot: number, answer: Answer) => number
  readonly generation: (slot: number) => number
}

export const createBook = (name: string, slots: number): Book => {
  const generations = Array.from({ length: slots }, () => 0)
  const pathOf = (slot: number) => `/lease/${name}-${slot}`
  return {
    slots,
    read: slot => ({ method: 'GET', path: pathOf(slot), headers: AUTHORIZATION }),
    write: (slot, { holder = HOLDER, ttlSeconds = LONG_SECONDS } = {}) => ({
      method: 'PUT',
      path: pathOf(slot),
      headers: `${AUTHORIZATION}If-Match: "${generations[slot]}"\r\n`,
      body: JSON.stringify({ holder, ttlSeconds }),
    }),
    learn(slot, { body }) {
      const generation = Number(/"generation":(\d+)/.exec(body)?.[1] ?? 0)
      generations[slot] = generation
      return generation
    },
    generation: slot => generations[slot] ?? 0,
  }
}

/** How the callers of a crew divide the slots: each takes its own in turn, so that it knows their generations. */
export const createTurns = (slots: number): ((caller: number, callers: number) => number) => {
  const turns: number[] = []
  return (caller, callers) => {
    const turn = turns[caller] ?? 0
    turns[caller] = turn + 1
    const own = Math.ceil((slots - caller) / callers)
    return caller + (turn % own) * callers
  }
}

export const listRequest = (name: string): Request => ({
  method: 'GET',
  path: `/leases?prefix=${name}-`,
  headers: AUTHORIZATION,
})
