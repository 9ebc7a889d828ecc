import { setTimeout as sleep } from 'node:timers/promises'
import { allocationApiDocument } from '@pool/contract/openapi/allocation-api'
import { type Exchange, TRUNCATED } from './connection.ts'
import { type Client, drive } from './drive.ts'
import { ALLOWED_ORIGIN, type ApiEnvironment } from './environment/api.ts'
import { createApiWorkload } from './generate/api-workload.ts'
import { readDocument } from './oracle/document.ts'
import { findLogStreamViolations, LOG_STREAM_LIMITS } from './oracle/log-stream.ts'
import { createTenantLedger } from './oracle/tenants.ts'
import { findDuplicateNames, type NameEvent } from './oracle/uniqueness.ts'
import type { FuzzStats } from './report/stats.ts'

export interface ApiRunOptions {
  readonly environment: ApiEnvironment
  readonly requests: number
  readonly seed: string
  readonly mark: string
  readonly markPattern: RegExp
  /** Every token that the API issued. */
  readonly tokens: Set<string>
  readonly stats: FuzzStats
  readonly say: (line: string) => void
}

const CLIENTS = 64
/** Longer than the sum of a statement timeout and a credential check. */
const DEADLINE_MS = 25_000
/** The share of all requests that is sent during each fault, if they are fast enough: they are slow then. */
const FAULT_SHARE = 0.02
const MAX_FAULT_MS = 30_000
/** Statements that started without a database may fail until then. */
const AFTER_FAULT_MS = 6_000

/** In this environment these services do not exist in any phase. */
const ALWAYS_UNAVAILABLE = ['object-storage-unavailable', 'provider-unavailable']

/** The limits of waiting runs and plans. The other causes of this code do not occur. */
const QUEUE_FULL = /Deployment queue is full|Too many plans/

const isReady = async (port: number): Promise<boolean> => {
  const response = await fetch(`http://127.0.0.1:${port}/readyz`).catch(() => undefined)
  await response?.body?.cancel()
  return response?.status === 200
}

const parseBody = ({ outcome }: Exchange): Readonly<Record<string, unknown>> => {
  try {
    return outcome.kind === 'response' ? Object(JSON.parse(outcome.response.text)) : {}
  } catch {
    return {}
  }
}

/** The name that an exchange granted or released. One that ended without a response may have released any name. */
const toNameEvent = (exchange: Exchange): Omit<NameEvent, 'sentAt' | 'answeredAt'> | null => {
  const { outcome, request } = exchange
  const { reservationToken, subdomain, freed } = parseBody(exchange)
  if (typeof reservationToken === 'string') return { kind: 'granted', name: String(subdomain), token: reservationToken }
  if (freed) return { kind: 'released', name: String(Object(freed).subdomain), token: '' }
  const isUnclear = outcome.kind !== 'response' || outcome.response.status >= 500
  return isUnclear && (request.raw || request.method === 'DELETE') ? { kind: 'released', name: null, token: '' } : null
}

/** Both listeners of the API: at the start and the end without faults, in between without its database, then without DNS. */
export const fuzzApi = async (options: ApiRunOptions): Promise<void> => {
  const { environment, requests, seed, mark, markPattern, tokens, stats, say } = options
  const document = readDocument(allocationApiDocument(), { problem: 'Problem' })
  const clients = Array.from({ length: CLIENTS }, (_, number): Client => {
    const isOperator = number % 4 === 0
    const token = isOperator ? environment.operatorToken : null
    return {
      workload: createApiWorkload({ document, number, mark, token }),
      port: isOperator ? environment.operatorPort : environment.port,
      name: `api client ${number} of seed ${seed}`,
    }
  })
  let phase = 'up'
  let databaseFaultUntil = 0
  const events: NameEvent[] = []
  const tenants = createTenantLedger()
  const run = drive({
    service: 'api',
    clients,
    requests,
    stats,
    deadlineMs: DEADLINE_MS,
    stream: LOG_STREAM_LIMITS,
    phase: () => phase,
    rules: {
      document,
      mark: markPattern,
      isToken: uuid => tokens.has(uuid),
      isFromPlatform: () => false,
      allowedOrigins: [ALLOWED_ORIGIN],
    },
    isExplained(code, { sentAt, request, outcome }) {
      if (ALWAYS_UNAVAILABLE.includes(code)) return true
      if (code === 'provisioning-unavailable')
        return outcome.kind === 'response' && QUEUE_FULL.test(outcome.response.text)
      if (code === 'database-unavailable' || code === 'unhealthy' || code === TRUNCATED)
        return sentAt < databaseFaultUntil
      // Only one of several concurrent calls for a zone runs.
      return (
        code === 'dns-unavailable' &&
        ['convergeZone', 'republishZone', 'adoptOrphans', 'removeOrphans'].includes(request.row)
      )
    },
    onExchange(exchange) {
      const event = toNameEvent(exchange)
      if (event) events.push({ ...event, sentAt: exchange.sentAt, answeredAt: exchange.answeredAt })
      if (event?.kind === 'granted') tokens.add(event.token.toLowerCase())
      const { deploymentToken } = parseBody(exchange)
      if (typeof deploymentToken === 'string') tokens.add(deploymentToken.toLowerCase())
      return [...findLogStreamViolations(exchange), ...tenants.check(exchange)]
    },
  })
  let isDone = false
  void run.done.then(() => {
    isDone = true
  })
  const untilSent = async (count: number, end = Number.POSITIVE_INFINITY) => {
    while (!isDone && run.sent() < count && performance.now() < end) await sleep(20)
  }
  const untilFaultEnds = () => untilSent(run.sent() + requests * FAULT_SHARE, performance.now() + MAX_FAULT_MS)

  await untilSent(requests * 0.4)
  say('api: stopping the database')
  phase = 'database down'
  databaseFaultUntil = Number.POSITIVE_INFINITY
  await environment.stopDatabase()
  await untilFaultEnds()
  await environment.startDatabase()
  say('api: the database runs again')
  while (!(await isReady(environment.port))) await sleep(50)
  say('api: ready again')
  databaseFaultUntil = performance.now() + AFTER_FAULT_MS
  phase = 'up'
  await untilSent(requests * 0.7)
  say('api: freezing the connections to the DNS provider')
  phase = 'DNS down'
  environment.stopDns()
  await untilFaultEnds()
  environment.startDns()
  phase = 'up'
  await run.done
  say(`api: ${tenants.successions()} deployments followed one of another client under their FQDN`)
  for (const violation of findDuplicateNames(events)) stats.addViolation('api', violation)
  if (!(await isReady(environment.port))) stats.addViolation('api', 'not ready at the end')
}
