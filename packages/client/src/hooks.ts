/** One request of a call. It has no secret: neither headers nor bodies nor the values in a path or a query. */
export interface AttemptInfo {
  /** The id of the operation, such as `reserveName`. */
  readonly operation: string
  readonly method: string
  /** The path with the names of its fields: `/api/v1/pool/{domain}/reserve`. */
  readonly route: string
  /** Counts from 1. */
  readonly attempt: number
  /** The `X-Request-Id` that is sent. */
  readonly requestId: string
}

export interface AttemptEnd extends AttemptInfo {
  readonly durationMs: number
  /** Absent without a response. */
  readonly status?: number
  /** Absent if the call has its result. After an abort, the reason of the signal. */
  readonly error?: unknown
  /** Milliseconds until the next request; null: this was the last one. */
  readonly retryInMs: number | null
}

export interface CallInfo {
  readonly operation: string
  readonly method: string
  readonly route: string
}

export interface CallEnd extends CallInfo {
  /** Pauses between the requests included. Of a stream: until its first byte. */
  readonly durationMs: number
  readonly attempts: number
  /** Absent if the call succeeded. After an abort, the reason of the signal. */
  readonly error?: unknown
}

/** For logs, metrics and traces. What `onAttempt`, `onAttemptEnd` or `onCallEnd` throws is ignored. */
export interface ClientHooks {
  /** Before each request. What it returns is added to the headers: `traceparent`, for example. */
  readonly onAttempt?: (attempt: AttemptInfo) => Readonly<Record<string, string>> | undefined
  /** After each request. */
  readonly onAttemptEnd?: (end: AttemptEnd) => void
  /** After each call. */
  readonly onCallEnd?: (end: CallEnd) => void
  /** Runs a call, inside a span for example. It returns what `run` returns. */
  readonly traceCall?: <Result>(call: CallInfo, run: () => Promise<Result>) => Promise<Result>
}

/** Calls a hook. The failure of a hook must not become the failure of a call. */
export const notify = <Arguments extends readonly unknown[], Result>(
  hook: ((...values: Arguments) => Result) | undefined,
  ...values: Arguments
): Result | undefined => {
  try {
    return hook?.(...values)
  } catch {
    return undefined
  }
}
