import { setTimeout as sleep } from 'node:timers/promises'
import type { Prng } from '@pool/test-kit/prng.ts'
import * as z from 'zod'
import type { Replica } from '../environment/replica.ts'
import type { Recorder } from './recorder.ts'

export interface ApiRequest {
  readonly operation: string
  /** The name that it is about. */
  readonly name?: string
  readonly method: string
  readonly path: string
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
  /** Sent to the operator listener. */
  readonly isOperator?: boolean
  /** Default: REQUEST_TIMEOUT_MS. */
  readonly timeoutMs?: number
  /** 503 `dns-unavailable` is no failure: another replica has the lock of the zone. */
  readonly canBeBusy?: boolean
}

export interface ApiResponse {
  readonly status: number
  readonly body: unknown
  readonly start: number
  readonly end: number
}

/** The response to a request that was retried with one idempotency key. */
export interface RetriedResponse extends ApiResponse {
  readonly idempotencyKey: string
  readonly attempts: number
}

/** Longer than the timeouts of the service for the database and the provider. */
export const REQUEST_TIMEOUT_MS = 8_000
/** A client avoids a replica for this time after an error, as a load balancer does. */
const EJECTION_MS = 1_000
const MAX_RETRY_MS = 60_000

export interface ApiClient {
  /** Sends one request to one replica. Undefined: no response. */
  readonly send: (replica: Replica, request: ApiRequest, requestId?: string) => Promise<ApiResponse | undefined>
  /** Sends one request to a random replica. */
  readonly sendToAny: (request: ApiRequest) => Promise<ApiResponse | undefined>
  /**
   * Retries with one Idempotency-Key until a response arrives: a client cannot know whether an attempt without a response
   * succeeded. Undefined: no response within MAX_RETRY_MS.
   */
  readonly sendUntilAnswered: (request: ApiRequest) => Promise<RetriedResponse | undefined>
}

export interface ApiClientOptions {
  readonly name: string
  readonly replicas: readonly Replica[]
  readonly operatorToken: string
  readonly prng: Prng
  readonly recorder: Recorder
}

export const createApiClient = ({ name, replicas, operatorToken, prng, recorder }: ApiClientOptions): ApiClient => {
  const ejectedUntil = new Map<Replica, number>()
  let requestCount = 0

  const fetchJson = async (replica: Replica, request: ApiRequest, requestId?: string) => {
    const { method, path, body, headers, isOperator, timeoutMs = REQUEST_TIMEOUT_MS } = request
    const response = await fetch((isOperator ? replica.operatorUrl : replica.url) + path, {
      method,
      headers: {
        ...(requestId && { 'X-Request-Id': requestId }),
        ...(isOperator && { Authorization: `Bearer ${operatorToken}` }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(timeoutMs),
    })
    const text = await response.text()
    return { status: response.status, body: text === '' ? undefined : (JSON.parse(text) as unknown) }
  }
  const send: ApiClient['send'] = async (replica, request, requestId) => {
    const start = Date.now()
    const response = await fetchJson(replica, request, requestId).catch(() => undefined)
    const end = Date.now()
    const status = response?.status ?? null
    recorder.count(request.operation, status)
    const { error } = z.object({ error: z.string() }).safeParse(response?.body).data ?? {}
    const isBusy = request.canBeBusy && status === 503 && error === 'dns-unavailable'
    if (status === 503 && requestId)
      recorder.unavailableWrites.push({ requestId, name: request.name, error, start, end })
    if (status === null || (status >= 500 && !isBusy)) {
      recorder.failedCalls.push({
        target: replica.number,
        operation: `${request.operation} (${requestId ?? name})`,
        ...(request.name && { name: request.name }),
        status,
        ...(error && { error }),
        start,
        end,
      })
      ejectedUntil.set(replica, performance.now() + EJECTION_MS)
    }
    return response && { ...response, start, end }
  }
  const pickReplica = () => {
    const now = performance.now()
    const available = replicas.filter(replica => (ejectedUntil.get(replica) ?? 0) < now)
    return prng.pick(available.length > 0 ? available : replicas)
  }
  return {
    send,
    sendToAny: request => send(pickReplica(), request),
    async sendUntilAnswered(request) {
      requestCount += 1
      const idempotencyKey = `${name}-${requestCount}`
      const keyed = { ...request, headers: { 'Idempotency-Key': idempotencyKey, ...request.headers } }
      const start = Date.now()
      for (let attempts = 1; Date.now() < start + MAX_RETRY_MS; attempts += 1) {
        const response = await send(pickReplica(), keyed, `${idempotencyKey}.${attempts}`)
        if (response && response.status < 500) return { ...response, start, idempotencyKey, attempts }
        await sleep(100 + prng.below(300))
      }
      return undefined
    },
  }
}
