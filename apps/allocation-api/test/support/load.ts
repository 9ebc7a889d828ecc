import type { Api, ApiResponse } from './api.ts'
import { check, commit, pool, reserve } from './operations.ts'

export interface LoadGenerator {
  /** Names whose reservation (201) was acknowledged, with their tokens. */
  readonly reserved: ReadonlyMap<string, string>
  /** Names whose commit (200 or 202) was acknowledged. */
  readonly committed: ReadonlySet<string>
  /** How often each outcome was seen: `<verb> <status> <error code>`. */
  readonly outcomes: ReadonlyMap<string, number>
  /** The longest time until an answer since the last `forgetTimes`, in milliseconds. */
  maxLatencyMs(): number
  resetMaxLatency(): void
  /** Successes so far: what grows when the service serves. */
  successCount(): number
  /** Sends nothing more and waits for what is under way. */
  stop(): Promise<void>
}

/** Steady callers, each: reserve, check, every second time commit, every third call with an Idempotency-Key. */
export const startLoad = (api: Api, callers: number, prefix = 'load'): LoadGenerator => {
  const reserved = new Map<string, string>()
  const committed = new Set<string>()
  const outcomes = new Map<string, number>()
  let stopping = false
  let maxLatency = 0
  let successCount = 0

  const count = (outcome: string) => outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1)

  /** An answer that is about another name belongs to another request. */
  const isAbout = ({ status, body }: ApiResponse, name: string) =>
    status >= 300 || (body.fqdn ?? `${body.subdomain}.${pool}`) === `${name}.${pool}`

  const record = async (verb: string, name: string, call: Promise<ApiResponse>): Promise<ApiResponse | null> => {
    const started = performance.now()
    const answer = await call.catch(() => null)
    maxLatency = Math.max(maxLatency, performance.now() - started)
    const about = answer && (isAbout(answer, name) ? 'ok' : 'of another name')
    const outcome = answer ? `${verb} ${answer.status} ${answer.body?.error ?? about}` : `${verb} broken`
    count(outcome)
    if (answer && answer.status < 300) successCount += 1
    return answer
  }

  const runCaller = async (caller: number): Promise<void> => {
    for (let turn = 0; !stopping; turn += 1) {
      const name = `${prefix}-${caller}-${turn}`
      const headers = (verb: string) => (turn % 3 === 0 ? { 'Idempotency-Key': `${verb}-${name}` } : undefined)
      const answer = await record('reserve', name, reserve(api, name, headers('reserve')))
      const checked = await record('check', name, check(api, name))
      if (answer?.status !== 201) continue
      if (checked?.status === 200 && checked.body.available) count('check 200 available, but reserved before')
      const token: string = answer.body.reservationToken
      reserved.set(name, token)
      if (turn % 2 === 0) continue
      const done = await record('commit', name, commit(api, name, token, '192.0.2.1', headers('commit')))
      if (done && done.status < 300) committed.add(name)
    }
  }
  const ended = Promise.all(Array.from({ length: callers }, (_, caller) => runCaller(caller)))

  return {
    reserved,
    committed,
    outcomes,
    maxLatencyMs: () => maxLatency,
    resetMaxLatency() {
      maxLatency = 0
    },
    successCount: () => successCount,
    async stop() {
      stopping = true
      await ended
    },
  }
}

/** What a caller may see, besides success, while the database is away. */
export const unexpectedOutcomes = (load: LoadGenerator): string[] =>
  [...load.outcomes.keys()].filter(
    outcome =>
      !/^(?:reserve 201 ok|check 200 ok|commit 20[02] ok|(?:reserve|check|commit) 503 database-unavailable)$/.test(
        outcome,
      ),
  )

/** Of the acknowledged writes, those that the database does not have. Pool: every name of the load is in it. */
export const lostWrites = async (
  load: LoadGenerator,
  rows: Promise<readonly { subdomain: string; state: string; token: string }[]>,
): Promise<string[]> => {
  const found = new Map((await rows).map(row => [row.subdomain, row]))
  return [...load.reserved].flatMap(([name, token]) => {
    const row = found.get(name)
    const kept = row?.token === token && (row.state === 'active' || !load.committed.has(name))
    return kept ? [] : [`${name}.${pool}`]
  })
}
