import { setTimeout as sleep } from 'node:timers/promises'
import { AllocationClient, ClientError, ProblemError, UnexpectedResponseError } from '@pool/client/allocation'
import type { Prng } from '@pool/test-kit/prng.ts'
import type { Replica } from '../environment/replica.ts'
import type { InvariantChecker } from '../invariants.ts'
import type { Recorder } from './recorder.ts'
import { type ApiCall, type CallRecord, RecordingFetch } from './recording-fetch.ts'

/** How a call ended. The client validates both kinds of response against the contract. */
export type Outcome<Result> =
  | { readonly kind: 'success'; readonly body: Result }
  | { readonly kind: 'rejection'; readonly status: number; readonly body: unknown }

export interface CallFacts {
  readonly callId: string
  readonly attempts: number
  readonly start: number
  readonly end: number
}

export type ApiResponse<Result> = Outcome<Result> & CallFacts

/** Limits of one call, which take precedence over those of its operation. */
export interface CallLimits {
  readonly deadlineMs: number
  readonly attemptTimeoutMs: number
}

/** Longer than the timeouts of the service for the database and the provider. */
const ATTEMPT_TIMEOUT_MS = 8_000
const MAX_CALL_MS = 60_000
/** A pause between 100 and 400 ms, without Retry-After. */
const REPETITION_PAUSE_MS = [100, 300] as const
/** Effectively unlimited: the deadline ends a call. */
const MAX_ATTEMPTS = 10_000

export interface ApiClientOptions {
  readonly name: string
  readonly replicas: readonly Replica[]
  readonly operatorToken: string
  readonly prng: Prng
  readonly recorder: Recorder
  readonly invariants: InvariantChecker
}

type Send<Result> = (client: AllocationClient, limits: CallLimits) => Promise<Result>

/** The calls of one client of the soak. Each is sent by an AllocationClient and recorded. */
export class ApiClient {
  readonly #options: ApiClientOptions
  readonly #recording: RecordingFetch
  readonly #clients: Readonly<Record<'once' | 'repeated', Readonly<Record<'public' | 'operator', AllocationClient>>>>
  #callCount = 0

  constructor(options: ApiClientOptions) {
    this.#options = options
    this.#recording = new RecordingFetch(options)
    // The host of a load balancer, which the recording fetch replaces.
    const shared = { baseUrl: 'http://replicas.invalid', fetch: this.#recording.fetch }
    const operator = { ...shared, token: options.operatorToken }
    const retry = { maxAttempts: MAX_ATTEMPTS, minBackoffMs: 200, maxBackoffMs: 400 }
    const once = { maxAttempts: 1 }
    this.#clients = {
      once: {
        public: new AllocationClient({ ...shared, retry: once }),
        operator: new AllocationClient({ ...operator, retry: once }),
      },
      repeated: {
        public: new AllocationClient({ ...shared, retry }),
        operator: new AllocationClient({ ...operator, retry }),
      },
    }
  }

  /** Sends one request. Undefined: no response, or a 5xx. */
  sendOnce<Result>(call: ApiCall, send: Send<Result>): Promise<ApiResponse<Result> | undefined> {
    return this.#call('once', call, { deadlineMs: ATTEMPT_TIMEOUT_MS, attemptTimeoutMs: ATTEMPT_TIMEOUT_MS }, send)
  }

  /**
   * The client repeats the request where that is safe, until a response arrives. Undefined: there was none, so the outcome is
   * unknown.
   */
  send<Result>(
    call: ApiCall,
    send: Send<Result>,
    attemptTimeoutMs = ATTEMPT_TIMEOUT_MS,
  ): Promise<ApiResponse<Result> | undefined> {
    return this.#call('repeated', call, { deadlineMs: MAX_CALL_MS, attemptTimeoutMs }, send)
  }

  /**
   * As `send`, for an operation that the client does not repeat because a repetition may do more than the first request. Here,
   * the caller knows what that can be, and calls again.
   */
  async sendAgain<Result>(
    call: ApiCall,
    send: Send<Result>,
    attemptTimeoutMs = ATTEMPT_TIMEOUT_MS,
  ): Promise<ApiResponse<Result> | undefined> {
    const record = this.#createRecord()
    const start = Date.now()
    const remaining = () => start + MAX_CALL_MS - Date.now()
    while (remaining() > 0) {
      const limits = { deadlineMs: remaining(), attemptTimeoutMs }
      const outcome = await this.#run('repeated', call, record, limits, send)
      if (outcome) return { ...outcome, callId: record.id, attempts: record.attempts, start, end: record.end }
      const [min, range] = REPETITION_PAUSE_MS
      await sleep(min + this.#options.prng.below(range))
    }
    return undefined
  }

  /** Runs a call that is recorded but not judged, such as one whose response is a stream. */
  run<Result>(call: ApiCall, send: (client: AllocationClient) => Promise<Result>): Promise<Result> {
    const client = this.#clients.repeated[call.isOperator ? 'operator' : 'public']
    return this.#recording.run(call, this.#createRecord(), () => send(client))
  }

  #createRecord(): CallRecord {
    this.#callCount += 1
    return { id: `${this.#options.name}-${this.#callCount}`, attempts: 0, start: 0, end: 0 }
  }

  async #call<Result>(
    kind: 'once' | 'repeated',
    call: ApiCall,
    limits: CallLimits,
    send: Send<Result>,
  ): Promise<ApiResponse<Result> | undefined> {
    const record = this.#createRecord()
    const start = Date.now()
    const outcome = await this.#run(kind, call, record, limits, send)
    const { id, attempts, end } = record
    return outcome && { ...outcome, callId: id, attempts, start, end }
  }

  async #run<Result>(
    kind: 'once' | 'repeated',
    call: ApiCall,
    record: CallRecord,
    limits: CallLimits,
    send: Send<Result>,
  ): Promise<Outcome<Result> | undefined> {
    const client = this.#clients[kind][call.isOperator ? 'operator' : 'public']
    try {
      const body = await this.#recording.run(call, record, () => send(client, limits))
      return { kind: 'success', body }
    } catch (error) {
      if (!(error instanceof ClientError)) throw error
      if (error instanceof ProblemError && error.status < 500)
        return { kind: 'rejection', status: error.status, body: error.body }
      if (error instanceof UnexpectedResponseError)
        this.#options.invariants.reportAnomaly(`${call.operation} (${record.id}): ${error.message}`)
      return undefined
    }
  }
}
