import { setTimeout as sleep } from 'node:timers/promises'
import { createDatabaseClient } from '@pool/runtime/database/client'
import type { Api } from '@pool/test-kit/services.ts'
import { reserve } from './operations.ts'
import { tokenDigest } from './token-repository.ts'

const CALLERS = 8
/** Each name is requested by so many callers concurrently, at both replicas. */
const RIVALS = 2

/** Reserves names without an end. Records who holds which name according to the responses. */
export const startRivals = (targets: readonly Api[]) => {
  const holders = new Map<string, string[]>()
  const outcomes = new Map<string, number>()
  let isStopping = false
  let successes = 0
  const run = async (caller: number) => {
    for (let round = 0; !isStopping; round += 1) {
      const name = `rival-${Math.floor(caller / RIVALS)}-${round}`
      const api = targets[caller % targets.length] as Api
      const response = await reserve(api, name).catch(() => null)
      const outcome = response ? `${response.status} ${response.body?.error ?? 'ok'}` : 'aborted'
      outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1)
      if (response?.status === 201) {
        successes += 1
        holders.set(name, [...(holders.get(name) ?? []), response.body.reservationToken])
      } else if (response?.status !== 409) await sleep(10)
    }
  }
  const ended = Promise.all(Array.from({ length: CALLERS }, (_, caller) => run(caller)))
  return {
    holders,
    outcomes,
    successes: () => successes,
    async stop() {
      isStopping = true
      await ended
    },
  }
}

/** The acknowledged names that the database gave to another client, or lost. */
export const findLost = async (url: string, holders: ReadonlyMap<string, readonly string[]>): Promise<string[]> => {
  const sql = createDatabaseClient(url, { maxConnections: 1, applicationName: 'tests' })
  const rows = await sql<{ subdomain: string; digest: string }[]>`
    select subdomain, encode(token_hash, 'hex') as digest from pool_allocations`
  await sql.end({ timeout: 1 })
  const stored = new Map(rows.map(({ subdomain, digest }) => [subdomain, digest]))
  return [...holders].flatMap(([name, tokens]) =>
    tokens.some(token => tokenDigest(token) === stored.get(name)) ? [] : [name],
  )
}

export const countDoubles = (holders: ReadonlyMap<string, readonly string[]>): number =>
  [...holders.values()].filter(tokens => tokens.length > 1).length

/** The outcomes of reservations while a database is replaced. */
export const UNAVAILABLE = /^(?:201 ok|409 conflict|503 database-(?:unavailable|read-only))$/
