import { setTimeout as sleep } from 'node:timers/promises'
import type { Api, ApiResponse } from '@pool/test-kit/services.ts'
import { check, commit, pool, reserve } from './operations.ts'
import { tokenDigest } from './token-repository.ts'

export interface LoadGenerator {
  /** Names with an acknowledged reservation (201), and their tokens. */
  readonly reserved: ReadonlyMap<string, string>
  /** Names with an acknowledged commit (200 or 202). */
  readonly committed: ReadonlySet<string>
  /** Number of responses per outcome: `<operation> <status> <error code>`. */
  readonly outcomes: ReadonlyMap<string, number>
  /** Number of successful requests so far. */
  successCount(): number
  /** Sends no new request and waits for those in flight. */
  stop(): Promise<void>
}

/** After a failed reserve, so that an outage with immediate responses does not use all CPU time. */
const PAUSE_AFTER_FAILURE_MS = 10

/** Starts callers that reserve, check and, every second time, commit. Every third iteration uses Idempotency-Keys. */
export const startLoad = (api: Api, callers: number, prefix = 'load'): LoadGenerator => {
  const reserved = new Map<string, string>()
  const committed = new Set<string>()
  const outcomes = new Map<string, number>()
  let isStopping = false
  let successCount = 0

  const count = (outcome: string) => outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1)

  /** A response about another name belongs to another request. */
  const isAbout = ({ status, body }: ApiResponse, name: string) =>
    status >= 300 || (body.fqdn ?? `${body.subdomain}.${pool}`) === `${name}.${pool}`

  const record = async (operation: string, name: string, call: Promise<ApiResponse>): Promise<ApiResponse | null> => {
    const response = await call.catch(() => null)
    const about = response && (isAbout(response, name) ? 'ok' : 'for another name')
    const outcome = response
      ? `${operation} ${response.status} ${response.body?.error ?? about}`
      : `${operation} aborted`
    count(outcome)
    if (response && response.status < 300) successCount += 1
    return response
  }

  const runCaller = async (caller: number): Promise<void> => {
    for (let iteration = 0; !isStopping; iteration += 1) {
      const name = `${prefix}-${caller}-${iteration}`
      const headers = (operation: string) =>
        iteration % 3 === 0 ? { 'Idempotency-Key': `${operation}-${name}` } : undefined
      const response = await record('reserve', name, reserve(api, name, headers('reserve')))
      const checkResponse = await record('check', name, check(api, name))
      if (response?.status !== 201) {
        await sleep(PAUSE_AFTER_FAILURE_MS)
        continue
      }
      if (checkResponse?.status === 200 && checkResponse.body.available)
        count('check 200 available, after the reservation')
      const token: string = response.body.reservationToken
      reserved.set(name, token)
      if (iteration % 2 === 0) continue
      const commitResponse = await record('commit', name, commit(api, name, token, '192.0.2.1', headers('commit')))
      if (commitResponse && commitResponse.status < 300) committed.add(name)
    }
  }
  const ended = Promise.all(Array.from({ length: callers }, (_, caller) => runCaller(caller)))

  return {
    reserved,
    committed,
    outcomes,
    successCount: () => successCount,
    async stop() {
      isStopping = true
      await ended
    },
  }
}

/** The FQDNs of acknowledged writes that the database lost. */
export const lostWrites = async (
  load: LoadGenerator,
  rows: Promise<readonly { subdomain: string; state: string; digest: string }[]>,
): Promise<string[]> => {
  const found = new Map((await rows).map(row => [row.subdomain, row]))
  return [...load.reserved].flatMap(([name, token]) => {
    const row = found.get(name)
    const isStored = row?.digest === tokenDigest(token) && (row.state === 'active' || !load.committed.has(name))
    return isStored ? [] : [`${name}.${pool}`]
  })
}
