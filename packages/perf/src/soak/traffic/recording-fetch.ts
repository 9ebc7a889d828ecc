import { AsyncLocalStorage } from 'node:async_hooks'
import type { Prng } from '@pool/test-kit/prng.ts'
import * as z from 'zod'
import type { Replica } from '../environment/replica.ts'
import type { Recorder } from './recorder.ts'

/** What the recorder needs to know about a call, which may send several requests. */
export interface ApiCall {
  /** Its name in the report. */
  readonly operation: string
  /** The name that it is about. */
  readonly name?: string
  /** Sent to the operator listener. */
  readonly isOperator?: boolean
  /** 503 `dns-unavailable` is not a failure: another replica has the lock of the zone. */
  readonly canBeBusy?: boolean
  /** The response is a stream, which may end at any time. */
  readonly isStream?: boolean
  /** Instead of a random replica: the one of each attempt. */
  readonly chooseReplica?: (attempt: number) => Replica
}

/** The requests of a call so far. */
export interface CallRecord {
  readonly id: string
  attempts: number
  /** Of the last attempt. */
  start: number
  /** Of the last attempt: after its response. */
  end: number
}

export interface RecordingFetchOptions {
  readonly replicas: readonly Replica[]
  readonly prng: Prng
  readonly recorder: Recorder
}

/** A client avoids a replica for this time after an error, as a load balancer does. */
const EJECTION_MS = 1_000
/** Statuses whose response has no body. */
const WITHOUT_BODY: ReadonlySet<number> = new Set([204, 304])

const errorBody = z.object({ error: z.string() })

/**
 * A load balancer in front of the replicas: a `fetch` that sends each request to one of them, under a request id that
 * begins with the id of its call. It records what is on the wire, independently of the client.
 */
export class RecordingFetch {
  readonly #options: RecordingFetchOptions
  readonly #ejectedUntil = new Map<Replica, number>()
  readonly #calls = new AsyncLocalStorage<{ readonly call: ApiCall; readonly record: CallRecord }>()

  constructor(options: RecordingFetchOptions) {
    this.#options = options
  }

  /** Runs a call. Its requests belong to the record. */
  run<Result>(call: ApiCall, record: CallRecord, send: () => Promise<Result>): Promise<Result> {
    return this.#calls.run({ call, record }, send)
  }

  readonly fetch: typeof fetch = async (input, init = {}) => {
    const current = this.#calls.getStore()
    if (!current) throw new Error('a request without a call: use RecordingFetch.run')
    const { call, record } = current
    record.attempts += 1
    const replica = call.chooseReplica?.(record.attempts) ?? this.#pickReplica()
    const requestId = `${record.id}.${record.attempts}`
    const { pathname, search } = new URL(String(input))
    const headers = new Headers(init.headers)
    headers.set('X-Request-Id', requestId)
    const url = (call.isOperator ? replica.operatorUrl : replica.url) + pathname + search
    const start = Date.now()
    record.start = start
    const end = (status: number | null, text = '') => {
      record.end = Date.now()
      this.#record(call, { requestId, replica, method: init.method, start, end: record.end }, status, text)
    }
    try {
      const response = await fetch(url, { ...init, headers })
      const { status } = response
      if (call.isStream && status < 400) {
        end(status)
        return response
      }
      const text = await response.text()
      end(status, text)
      return new Response(WITHOUT_BODY.has(status) ? null : text, { status, headers: response.headers })
    } catch (error) {
      end(null)
      throw error
    }
  }

  #pickReplica(): Replica {
    const { replicas, prng } = this.#options
    const now = performance.now()
    const available = replicas.filter(replica => (this.#ejectedUntil.get(replica) ?? 0) < now)
    return prng.pick(available.length > 0 ? available : replicas)
  }

  #record(
    { operation, name, canBeBusy, isStream }: ApiCall,
    request: { requestId: string; replica: Replica; method: string | undefined; start: number; end: number },
    status: number | null,
    text: string,
  ): void {
    const { recorder } = this.#options
    const { requestId, replica, method, start, end } = request
    recorder.count(operation, status)
    const { error } = (status !== null && status >= 500 && errorBody.safeParse(parseJson(text)).data) || {}
    if (status === 503 && method !== 'GET') recorder.unavailableWrites.push({ requestId, name, error, start, end })
    const isBusy = canBeBusy && status === 503 && error === 'dns-unavailable'
    // A connection to a stream may end at any time.
    const isFailure = status === null ? !isStream : status >= 500 && !isBusy
    if (!isFailure) return
    this.#ejectedUntil.set(replica, performance.now() + EJECTION_MS)
    recorder.failedCalls.push({
      target: replica.number,
      operation: `${operation} (${requestId})`,
      requestId,
      ...(name && { name }),
      status,
      ...(error && { error }),
      start,
      end,
    })
  }
}

const parseJson = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
