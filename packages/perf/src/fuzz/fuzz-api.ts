import { setTimeout as sleep } from 'node:timers/promises'
import { openApiDocument } from 'allocation-api/src/http/routes/docs.ts'
import { type Client, drive, type Exchange } from './drive.ts'
import type { ApiStage } from './environment/api.ts'
import { createApiLane } from './generate/api-workload.ts'
import { randomOf } from './generate/random.ts'
import { readDocument } from './oracle/document.ts'
import { type NameEvent, namesGrantedTwice } from './oracle/uniqueness.ts'
import type { Tally } from './report/stats.ts'
import { brokenOff } from './wire/answer.ts'

export interface ApiRun {
  readonly stage: ApiStage
  readonly requests: number
  readonly seed: string
  readonly mark: string
  readonly pattern: RegExp
  readonly tokens: Set<string>
  readonly tally: Tally
  readonly say: (line: string) => void
}

const CLIENTS = 64
/** Longer than a statement may take, than a check of keys, and than both. */
const DEADLINE_MS = 25_000
/** Of all requests, those that are sent while something is taken away, if they come in time: they are slow then. */
const DOWN_SHARE = 0.02
const DOWN_AT_MOST_MS = 30_000
/** Statements that began while the database was away may end so much later. */
const AFTER_MS = 6_000

/** Without the services that stand behind them, these cannot be answered otherwise in any phase. */
const neverThere = ['object-storage-unavailable', 'provider-unavailable']

const isUp = async (port: number): Promise<boolean> => {
  const answer = await fetch(`http://127.0.0.1:${port}/readyz`).catch(() => undefined)
  await answer?.body?.cancel()
  return answer?.status === 200
}

const bodyOf = ({ outcome }: Exchange): Readonly<Record<string, unknown>> => {
  try {
    return outcome.kind === 'answered' ? Object(JSON.parse(outcome.answer.body.toString('utf8'))) : {}
  } catch {
    return {}
  }
}

/** What an exchange says of names. One that ended without an answer may have freed any. */
const nameEventOf = (exchange: Exchange): Omit<NameEvent, 'sentAt' | 'answeredAt'> | null => {
  const { outcome, request } = exchange
  const { reservationToken, subdomain, freed } = bodyOf(exchange)
  if (typeof reservationToken === 'string') return { kind: 'granted', name: String(subdomain), token: reservationToken }
  if (freed) return { kind: 'freed', name: String(Object(freed).subdomain), token: '' }
  const isUnclear = outcome.kind !== 'answered' || outcome.answer.status >= 500
  return isUnclear && (request.raw || request.method === 'DELETE') ? { kind: 'freed', name: null, token: '' } : null
}

/** Both addresses of the API, first and last with everything up, in between without its database, then without DNS. */
export const fuzzApi = async ({ stage, requests, seed, mark, pattern, tokens, tally, say }: ApiRun): Promise<void> => {
  const document = readDocument(openApiDocument(), { problem: 'Problem' })
  const clients = Array.from({ length: CLIENTS }, (_, number): Client => {
    const isOperator = number % 4 === 0
    const name = `api client ${number} of seed ${seed}`
    const options = { document, random: randomOf(name), number, mark, token: isOperator ? stage.operatorToken : null }
    return { lane: createApiLane(options), port: isOperator ? stage.operatorPort : stage.port, name }
  })
  let phase = 'up'
  const downUntil = { database: 0, dns: 0 }
  const events: NameEvent[] = []
  const driving = drive({
    service: 'api',
    clients,
    requests,
    tally,
    deadlineMs: DEADLINE_MS,
    phase: () => phase,
    rules: {
      document,
      mark: pattern,
      isToken: uuid => tokens.has(uuid),
      isPlatforms: () => false,
    },
    isExplained: (code, { sentAt, request }) => {
      if (neverThere.includes(code)) return true
      if (code === 'database-unavailable' || code === 'unhealthy' || code === brokenOff)
        return sentAt < downUntil.database
      // Of those who compare a zone at the same time all but one are told to come later.
      return code === 'dns-unavailable' && request.row === 'convergeZone'
    },
    onExchange(exchange) {
      const event = nameEventOf(exchange)
      if (event) events.push({ ...event, sentAt: exchange.sentAt, answeredAt: exchange.answeredAt })
      if (event?.kind === 'granted') tokens.add(event.token.toLowerCase())
      return []
    },
  })
  let isDone = false
  void driving.done.then(() => {
    isDone = true
  })
  const untilSent = async (count: number, end = Number.POSITIVE_INFINITY) => {
    while (!isDone && driving.sent() < count && performance.now() < end) await sleep(20)
  }
  const stayDown = () => untilSent(driving.sent() + requests * DOWN_SHARE, performance.now() + DOWN_AT_MOST_MS)

  await untilSent(requests * 0.4)
  say('api: the database goes')
  phase = 'database down'
  downUntil.database = Number.POSITIVE_INFINITY
  await stage.stopDatabase()
  await stayDown()
  await stage.startDatabase()
  say('api: the database is back')
  while (!(await isUp(stage.port))) await sleep(50)
  say('api: ready again')
  downUntil.database = performance.now() + AFTER_MS
  phase = 'up'
  await untilSent(requests * 0.7)
  say('api: the DNS provider goes')
  phase = 'DNS down'
  stage.stopDns()
  await stayDown()
  stage.startDns()
  phase = 'up'
  await driving.done
  for (const fault of namesGrantedTwice(events)) tally.fault('api', fault)
  if (!(await isUp(stage.port))) tally.fault('api', 'not ready at the end')
}
