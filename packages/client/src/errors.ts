import type { DeploymentProblem, ErrorCode, LeaseErrorCode, Problem } from '@pool/contract'

/** What every error of a call has. */
export interface CallFailure {
  /** The id of the operation, such as `reserveName`. */
  readonly operation: string
  /** The number of requests that were sent for the call. */
  readonly attempts: number
  /** The `X-Request-Id` of the last request: the log of the service has it. */
  readonly requestId: string
  /** True: a request that changes something may have taken effect. A read always has false. */
  readonly isOutcomeUnknown: boolean
}

/**
 * A call failed. The subclasses say why. No error has a token, a key or another secret of the call in any of its fields.
 * A call that its AbortSignal ended rejects with the reason of the signal, not with a ClientError. Its outcome is unknown.
 */
export abstract class ClientError extends Error implements CallFailure {
  readonly operation: string
  readonly attempts: number
  readonly requestId: string
  readonly isOutcomeUnknown: boolean

  constructor(text: string, { operation, attempts, requestId, isOutcomeUnknown }: CallFailure) {
    super(`${operation}: ${text}`)
    this.operation = operation
    this.attempts = attempts
    this.requestId = requestId
    this.isOutcomeUnknown = isOutcomeUnknown
  }
}

/** The error body of a service. `faults`, `field` and `availableAt` only with the codes that have them. */
export type ErrorBody = Omit<Problem & Partial<DeploymentProblem>, 'error'> & {
  readonly error: ErrorCode | LeaseErrorCode
  readonly availableAt?: string
}

/** The service sent a documented error. */
export class ProblemError extends ClientError {
  override readonly name = 'ProblemError'
  readonly status: number
  readonly code: ErrorCode | LeaseErrorCode
  /** One sentence that helps a person to fix the request. */
  readonly detail: string | undefined
  /** Seconds after which the service permits a repetition. */
  readonly retryAfter: number | undefined
  /** The whole error body. */
  readonly body: ErrorBody

  constructor(failure: CallFailure, response: { status: number; body: ErrorBody; retryAfter: number | undefined }) {
    const { status, body, retryAfter } = response
    super(`${status} ${body.error}${body.detail ? `: ${body.detail}` : ''}`, failure)
    this.status = status
    this.code = body.error
    this.detail = body.detail
    this.retryAfter = retryAfter
    this.body = body
  }
}

/** A response that the contract does not describe: of a later version of the service, or of a proxy in between. */
export class UnexpectedResponseError extends ClientError {
  override readonly name = 'UnexpectedResponseError'
  readonly status: number
  /** The error code of the body, if it has one. */
  readonly code: string | undefined
  readonly detail: string | undefined
  /** Seconds after which the sender permits a repetition. */
  readonly retryAfter: number | undefined
  /** What is unexpected. It quotes nothing of the body. */
  readonly reason: string

  constructor(
    failure: CallFailure,
    response: {
      status: number
      code: string | undefined
      detail: string | undefined
      retryAfter: number | undefined
      reason: string
    },
  ) {
    const { status, code, detail, retryAfter, reason } = response
    const error = code === undefined ? '' : ` ${code}${detail ? `: ${detail}` : ''}`
    super(`${status}${error} (${reason})`, failure)
    this.status = status
    this.code = code
    this.detail = detail
    this.retryAfter = retryAfter
    this.reason = reason
  }
}

/** No response arrived, or it ended early: no connection, a reset, an error of TLS or of a name lookup. */
export class NoResponseError extends ClientError {
  override readonly name = 'NoResponseError'
  /** The code of the runtime, such as `ECONNREFUSED`, if it has one. */
  readonly reasonCode: string | undefined

  constructor(failure: CallFailure, { text, reasonCode }: { text: string; reasonCode: string | undefined }) {
    super(`no response: ${text}`, failure)
    this.reasonCode = reasonCode
  }
}

/** The deadline of the call passed before a response arrived, or the next retry would be after it. */
export class DeadlineError extends ClientError {
  override readonly name = 'DeadlineError'
  readonly deadlineMs: number

  constructor(failure: CallFailure, deadlineMs: number) {
    super(`no response within ${deadlineMs} ms. Increase deadlineMs, or find out why the service is slow`, failure)
    this.deadlineMs = deadlineMs
  }
}
