import {
  ClientError,
  DeadlineError,
  LeadershipLostError,
  NoResponseError,
  NotPublishedError,
  ProblemError,
  UnexpectedResponseError,
} from '@pool/client'
import { callOperations, NO_ROUTE, operationList } from '@pool/contract'
import { CommandError, EXIT, toSignalExit } from './exit-codes.ts'
import { toPlainLine } from './text.ts'

export interface Failure {
  /** Lines for standard error. */
  readonly text: string
  readonly exitCode: number
}

const toFailure = (exitCode: number, ...lines: readonly string[]): Failure => ({
  text: lines.map((line, i) => `${i === 0 ? 'error: ' : '  '}${toPlainLine(line)}\n`).join(''),
  exitCode,
})

/** Too many requests, or a service that does not serve: the same request can succeed later. */
const toStatusExit = (status: number): number => (status === 429 || status >= 500 ? EXIT.unavailable : EXIT.rejected)

const ADVICE: Readonly<Record<string, string>> = {
  unauthorized: 'The token is missing, unknown or expired; check it with: poolctl contexts show',
  'method-not-allowed': 'This listener does not have the command; use the operator listener in the context.',
}

const OPERATOR_CALLS: ReadonlySet<string> = new Set(
  operationList.filter(({ listener }) => listener === 'operator').map(({ id }) => id),
)

/** Whether the address can be that of the in-cluster listener, which lacks the operation. */
export const isOtherListener = (error: unknown): boolean =>
  error instanceof UnexpectedResponseError &&
  OPERATOR_CALLS.has(error.operation) &&
  error.detail?.startsWith(NO_ROUTE) === true

/** What to do about a response that is not of the service. A status of a proxy in front of it can pass. */
const toAddressAdvice = (error: UnexpectedResponseError, context: string): readonly string[] => {
  if (isOtherListener(error))
    return [`This command needs the operator listener: set its address with poolctl contexts set ${context} --api URL`]
  if (error.status === 429 || error.status >= 500) return ['Check the address with: poolctl doctor']
  const [flag, what] = error.operation in callOperations ? ['api', 'allocation API'] : ['witness', 'lease witness']
  return [undefined, 'not-found', 'unauthorized'].includes(error.code)
    ? [
        `This is not the address of the ${what}, or its path is wrong: set it with poolctl contexts set ${context} --${flag} URL`,
      ]
    : []
}

const UNKNOWN_OUTCOME = 'The request may have taken effect: read the current state before you repeat it.'
/** Operations whose Idempotency-Key poolctl keeps. */
const REPEATABLE: ReadonlySet<string> = new Set(['reserveName', 'createDeployment'])
const REPEAT = 'The request may have taken effect: repeat the command; it gets the result of the first request.'

const adviseUnknown = ({ isOutcomeUnknown, operation }: ClientError): readonly string[] => {
  if (!isOutcomeUnknown) return []
  return [REPEATABLE.has(operation) ? REPEAT : UNKNOWN_OUTCOME]
}

const describeProblem = (error: ProblemError): Failure => {
  const { status, code, detail, retryAfter, requestId, body, isOutcomeUnknown } = error
  const faults = body.faults ?? []
  // The detail is only about the last request: that one may have changed nothing, and an earlier one something.
  const ofAll = isOutcomeUnknown && code === 'database-unavailable' ? 'the database did not respond' : detail
  const lines = [
    `${ofAll ?? ADVICE[code] ?? 'the service rejected the request'} (${status} ${code})`,
    ...(status === 401 && detail !== undefined ? ['Check where its token comes from: poolctl contexts show'] : []),
    ...faults.map(fault => (fault.field === '' ? fault.detail : `${fault.field}: ${fault.detail}`)),
    ...(body.availableAt === undefined ? [] : [`Available at ${body.availableAt}.`]),
    ...(retryAfter === undefined ? [] : [`Repeat it after ${Math.ceil(retryAfter)} s.`]),
    ...(status >= 500 ? [`The log of the service has it under request ${requestId}.`] : []),
    ...adviseUnknown(error),
  ]
  return toFailure(toStatusExit(status), ...lines)
}

const describeClientError = (error: ClientError, context: string): Failure => {
  const unknown = adviseUnknown(error)
  if (error instanceof ProblemError) return describeProblem(error)
  if (error instanceof UnexpectedResponseError) {
    const { status, code, detail, reason } = error
    const text = detail ?? `the response is not one of the service: ${reason}`
    const line = `${text} (${status}${code ? ` ${code}` : ''})`
    return toFailure(toStatusExit(status), line, ...toAddressAdvice(error, context), ...unknown)
  }
  if (error instanceof DeadlineError) {
    return toFailure(
      EXIT.unavailable,
      `no response within ${error.deadlineMs} ms; increase --timeout, or run: poolctl doctor`,
      ...unknown,
    )
  }
  if (error instanceof NoResponseError) {
    const reason = error.reasonCode ?? 'the connection failed'
    return toFailure(EXIT.unavailable, `no response (${reason}); check the address with: poolctl doctor`, ...unknown)
  }
  return toFailure(EXIT.unavailable, error.message, ...unknown)
}

/** What to print for an error in a context, and the exit code. Nothing in it is a secret. */
export const describeFailure = (error: unknown, interrupted: AbortSignal, context = 'NAME'): Failure => {
  if (error instanceof CommandError) return toFailure(error.exitCode, error.message, ...error.details)
  if (error instanceof ClientError) return describeClientError(error, context)
  if (error instanceof NotPublishedError) return toFailure(EXIT.unavailable, error.message)
  if (error instanceof LeadershipLostError) return toFailure(EXIT.unavailable, error.message)
  // The reason of the signal is thrown by whatever it ended.
  if (interrupted.aborted) return toFailure(toSignalExit(String(interrupted.reason)), 'interrupted')
  const what = error instanceof Error ? `${error.name}: ${error.message}` : 'unknown error'
  return toFailure(EXIT.internal, `${what}. This is a defect of poolctl; report it with the command.`)
}

/** Whether an error says that a request had no effect, so that its Idempotency-Key has no further use. */
export const hadNoEffect = (error: unknown): boolean =>
  error instanceof ClientError && !error.isOutcomeUnknown && !(error instanceof NoResponseError)
