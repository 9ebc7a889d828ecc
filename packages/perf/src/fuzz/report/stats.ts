import type { Exchange } from '../connection.ts'

/** The counts of one operation or mutation in one phase. */
export interface StatsRow {
  readonly service: string
  readonly phase: string
  readonly row: string
  requests: number
  /** Sum over all requests. */
  ms: number
  /** Responses by status class; at 0: connections that ended without a response. */
  readonly classes: number[]
  /** Responses by status and error code, such as "409 conflict". */
  readonly codes: Record<string, number>
  violations: number
}

/** The smallest sequence of requests that showed a violation. */
export interface Counterexample {
  /** The client, its sequence, and the seed and path of fast-check. */
  readonly where: string
  /** Each as a shell command. */
  readonly requests: readonly string[]
}

export interface Violation {
  readonly service: string
  readonly row: string
  readonly what: string
  count: number
  counterexample: Counterexample | null
}

export interface CountedExchange {
  readonly service: string
  readonly phase: string
  readonly exchange: Exchange
  readonly found: readonly string[]
}

export const toKind = (service: string, row: string, what: string): string => `${service} ${row} ${what}`

const codeText = ({ outcome }: Exchange): string => {
  if (outcome.kind !== 'response') return outcome.kind
  const { status, body } = outcome.response
  const [, code] = /"error":"([a-z-]+)"/.exec(body.toString('latin1', 0, 500)) ?? []
  return code === undefined ? String(status) : `${status} ${code}`
}

export class FuzzStats {
  readonly #rows = new Map<string, StatsRow>()
  readonly #violations = new Map<string, Violation>()
  readonly #claimed = new Set<string>()

  get rows(): readonly StatsRow[] {
    return [...this.#rows.values()]
  }

  get violations(): readonly Violation[] {
    return [...this.#violations.values()]
  }

  count({ service, phase, exchange, found }: CountedExchange): void {
    const { request, outcome, sentAt, answeredAt } = exchange
    const key = `${service} ${phase} ${request.row}`
    const row = this.#rows.get(key) ?? {
      service,
      phase,
      row: request.row,
      requests: 0,
      ms: 0,
      classes: [0, 0, 0, 0, 0, 0],
      codes: {},
      violations: 0,
    }
    this.#rows.set(key, row)
    row.requests += 1
    row.ms += answeredAt - sentAt
    const statusClass = outcome.kind === 'response' ? Math.floor(outcome.response.status / 100) : 0
    row.classes[statusClass] = (row.classes[statusClass] ?? 0) + 1
    const code = codeText(exchange)
    row.codes[code] = (row.codes[code] ?? 0) + 1
    row.violations += found.length
    for (const what of found) this.#add(service, request.row, what)
  }

  /** A violation that belongs to no single request. */
  addViolation(service: string, what: string): void {
    this.#add(service, '', what)
  }

  /** True for the first caller: it shrinks this kind of violation. */
  claim(kind: string): boolean {
    const isFirst = !this.#claimed.has(kind)
    this.#claimed.add(kind)
    return isFirst
  }

  addCounterexample(kind: string, counterexample: Counterexample): void {
    const violation = this.#violations.get(kind)
    if (violation) violation.counterexample = counterexample
  }

  #add(service: string, row: string, what: string): void {
    const kind = toKind(service, row, what)
    const known = this.#violations.get(kind)
    if (known) known.count += 1
    else this.#violations.set(kind, { service, row, what, count: 1, counterexample: null })
  }
}
