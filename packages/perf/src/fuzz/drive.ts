import { setTimeout as sleep } from 'node:timers/promises'
import type { Lane } from './generate/step.ts'
import { type Rules, violations } from './oracle/oracle.ts'
import type { Tally } from './report/stats.ts'
import type { Outcome } from './wire/connection.ts'
import { openWire } from './wire/connection.ts'
import type { FuzzRequest } from './wire/request.ts'

export interface Client {
  readonly lane: Lane
  readonly port: number
  /** How a request of it is found again. */
  readonly name: string
}

export interface Exchange {
  readonly request: FuzzRequest
  readonly outcome: Outcome
  /** Milliseconds. */
  readonly sentAt: number
  readonly answeredAt: number
}

export interface Drive {
  readonly service: string
  readonly clients: readonly Client[]
  readonly requests: number
  readonly rules: Omit<Rules, 'isExplained'>
  readonly tally: Tally
  /** Under which a request is counted, when it is sent. */
  readonly phase: () => string
  /** Whether a code of a 503 is explained by what was down at some time from `sentAt` on. */
  readonly isExplained: (code: string, exchange: Exchange) => boolean
  /** Further faults, of what the answer means. */
  readonly onExchange: (exchange: Exchange) => readonly string[]
  readonly deadlineMs: number
}

export interface Driving {
  readonly done: Promise<void>
  readonly sent: () => number
}

/** So many in a row are no accident: the service is gone, and the rest would say it once more each. */
const HOPELESS = 30

/** Every client sends its share, one request after the other, and each is judged. */
export const drive = ({
  service,
  clients,
  requests,
  rules,
  tally,
  phase,
  isExplained,
  onExchange,
  deadlineMs,
}: Drive): Driving => {
  let sent = 0
  const run = async ({ lane, port, name }: Client, share: number) => {
    using wire = openWire({ port, deadlineMs })
    let lost = 0
    for (let number = 1; number <= share && lost < HOPELESS; number += 1) {
      const { request, learn } = lane.next()
      const under = phase()
      const sentAt = performance.now()
      sent += 1
      const outcome = await wire.send(request)
      const exchange: Exchange = { request, outcome, sentAt, answeredAt: performance.now() }
      const found = violations({ ...rules, isExplained: code => isExplained(code, exchange) }, request, outcome)
      tally.count({
        service,
        phase: under,
        request,
        outcome,
        ms: exchange.answeredAt - sentAt,
        found: [...found, ...onExchange(exchange)],
        where: `${name}, request ${number}`,
      })
      if (outcome.kind === 'answered') learn(outcome.answer)
      lost = outcome.kind === 'answered' || request.raw ? 0 : lost + 1
      // A service that is gone answers at once.
      if (lost > 3) await sleep(100)
    }
  }
  const share = Math.ceil(requests / clients.length)
  return { done: Promise.all(clients.map(client => run(client, share))).then(() => {}), sent: () => sent }
}
