import type { Outcome } from '../wire/connection.ts'
import { type FuzzRequest, shown } from '../wire/request.ts'

export interface Row {
  readonly service: string
  readonly phase: string
  readonly row: string
  requests: number
  /** Milliseconds of all of them together. */
  ms: number
  /** Answers by the first digit of their status; at 0: connections that were closed without one. */
  readonly classes: number[]
  violations: number
}

/** A kind of violation, with the first request that showed it. */
export interface Fault {
  readonly service: string
  readonly row: string
  readonly what: string
  /** Which request of which client: with the seed it is made again. */
  readonly where: string
  readonly request: string
  count: number
}

/** An exchange, and what was wrong with it. */
export interface Judged {
  readonly service: string
  readonly phase: string
  readonly request: FuzzRequest
  readonly outcome: Outcome
  readonly ms: number
  readonly found: readonly string[]
  /** Which request of which client. */
  readonly where: string
}

export interface Tally {
  readonly rows: readonly Row[]
  readonly faults: readonly Fault[]
  readonly count: (judged: Judged) => void
  /** What is wrong with no single request. */
  readonly fault: (service: string, what: string) => void
}

export const createTally = (): Tally => {
  const rows = new Map<string, Row>()
  const faults = new Map<string, Fault>()
  const add = (service: string, row: string, what: string, where: string, request: () => string) => {
    const key = `${service} ${row} ${what}`
    const known = faults.get(key)
    if (known) known.count += 1
    else faults.set(key, { service, row, what, where, request: request(), count: 1 })
  }
  return {
    get rows() {
      return [...rows.values()]
    },
    get faults() {
      return [...faults.values()]
    },
    count({ service, phase, request, outcome, found, where, ms }) {
      const key = `${service} ${phase} ${request.row}`
      const row = rows.get(key) ?? {
        service,
        phase,
        row: request.row,
        requests: 0,
        ms: 0,
        classes: [0, 0, 0, 0, 0, 0],
        violations: 0,
      }
      rows.set(key, row)
      row.requests += 1
      row.ms += ms
      const of = outcome.kind === 'answered' ? Math.floor(outcome.answer.status / 100) : 0
      row.classes[of] = (row.classes[of] ?? 0) + 1
      row.violations += found.length
      for (const what of found) add(service, request.row, what, where, () => shown(request))
    },
    fault: (service, what) => add(service, '', what, '', () => ''),
  }
}
