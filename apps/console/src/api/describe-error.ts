import { ClientError, DeadlineError, NoResponseError, ProblemError, UnexpectedResponseError } from '@pool/client'
import { toFieldText } from '../domain/text.ts'

/** An error for people: what is wrong, and what to do. */
export interface ErrorText {
  readonly title: string
  readonly advice: string
  /** Find it in the log of the service; empty if there is none. */
  readonly requestId: string
}

const UNKNOWN_OUTCOME = 'The change may have been made: look at the current state before you repeat it.'

/** Instead of a detail that is for programs. */
const titleByCode: Readonly<Record<string, string>> = {
  'database-unavailable': 'The database of the service does not respond.',
}

const retryAdvice = (seconds: number | undefined): string =>
  seconds === undefined ? 'Try again.' : `Try again in ${Math.ceil(seconds)} s.`

const adviceByCode: Readonly<Record<string, string>> = {
  'dns-unavailable':
    'The DNS provider did not respond, or another replica is writing the zone. The service retries automatically; see the zone for the reason.',
  'not-found': 'It may have been deleted: go back to the list.',
  'database-unavailable': 'The runbook is docs/runbooks/allocation-api-database-unavailable.md.',
  'database-read-only': 'The database accepts no writes: it may be a standby. Nothing was changed.',
  'witness-unavailable':
    'The witness does not respond, or rejects the token of this service: check PDM_WITNESS_URL and its token.',
  'provisioning-unavailable': 'Terraform cannot run on this replica at the moment; the log of the service says why.',
  'object-storage-unavailable': 'The keys could not be checked, so they may be valid.',
  'in-progress': 'Wait for the run to end, or cancel it.',
  'lease-changed': 'The lease has changed since it was read: look at it and decide again.',
  'internal-error': 'This is a bug. The log has details under the request ID.',
  forbidden: 'A proxy that changes Host can be the reason: see PDM_ALLOWED_ORIGINS in the configuration.',
}

const describeProblem = (error: ProblemError): ErrorText => {
  const { detail, code, status, retryAfter, requestId, isOutcomeUnknown } = error
  const text = detail !== undefined ? toFieldText(detail) : `The service rejected the request: ${status} ${code}.`
  const title = titleByCode[code] ?? text
  const advice = [
    adviceByCode[code] ?? '',
    isOutcomeUnknown ? UNKNOWN_OUTCOME : '',
    retryAfter === undefined ? '' : retryAdvice(retryAfter),
  ]
  return { title, advice: advice.filter(text => text !== '').join(' '), requestId }
}

/** Describes what a call of the client rejects with. */
export const describeError = (error: unknown): ErrorText => {
  if (error instanceof ProblemError) return describeProblem(error)
  const requestId = error instanceof ClientError ? error.requestId : ''
  const unknownOutcome = error instanceof ClientError && error.isOutcomeUnknown ? ` ${UNKNOWN_OUTCOME}` : ''
  if (error instanceof NoResponseError || error instanceof DeadlineError) {
    return {
      title: 'The service did not respond.',
      advice: `Check that it runs and that this machine can reach it.${unknownOutcome}`,
      requestId,
    }
  }
  if (error instanceof UnexpectedResponseError) {
    return {
      title: `The response is not one of this version of the service (${error.status}).`,
      advice: `Reload the page: the service may have been upgraded. A proxy in between can also be the reason.${unknownOutcome}`,
      requestId,
    }
  }
  return { title: error instanceof Error ? error.message : String(error), advice: 'Reload the page.', requestId }
}

/** Rejections whose cause is not that the change was made already. */
const standingCodes: readonly string[] = [
  ...['destroy-incomplete', 'still-up', 'plan-failed', 'lock-not-recorded', 'idempotency-key-reused'],
  ...['bucket-exists', 'bucket-conflict', 'fqdn-remains', 'fqdn-conflict', 'domain-not-proven'],
]

/**
 * Whether the service no longer has what the operator saw. It may have made the change itself: browsers repeat a request whose
 * connection ends before the response.
 */
export const isOutdated = (error: unknown): boolean =>
  error instanceof ProblemError && (error.status === 404 || error.status === 409) && !standingCodes.includes(error.code)
