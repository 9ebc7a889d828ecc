import { DeadlineError, NoResponseError, ProblemError, UnexpectedResponseError } from '@pool/client'
import { expect, test } from 'vitest'
import { describeError } from './describe-error.ts'

const failure = { operation: 'releaseName', attempts: 1, requestId: 'r-1', isOutcomeUnknown: false }
const problem = (status: number, body: ProblemError['body'], retryAfter?: number) =>
  new ProblemError(failure, { status, body, retryAfter })

test.each([
  [problem(404, { error: 'not-found', detail: 'No such allocation.' }), 'No such allocation.', ''],
  [problem(409, { error: 'in-progress' }), 'The service rejected the request: 409 in-progress.', 'Wait for the run'],
  [problem(429, { error: 'too-many-attempts', detail: 'Too many.' }, 2.4), 'Too many.', 'Try again in 3 s.'],
  [
    problem(503, { error: 'database-unavailable', detail: 'Whether a write took effect is unknown.' }),
    'The database of the service does not respond.',
    'The runbook is',
  ],
  [problem(500, { error: 'internal-error' }), 'rejected the request: 500', 'This is a bug.'],
  [new NoResponseError(failure, { text: 'reset', reasonCode: undefined }), 'did not respond', 'Check that it runs'],
  [
    new NoResponseError({ ...failure, isOutcomeUnknown: true }, { text: 'reset', reasonCode: undefined }),
    'did not respond',
    'The change may have been made',
  ],
  [new DeadlineError(failure, 1_000), 'did not respond', 'Check that it runs'],
  [
    new UnexpectedResponseError(failure, {
      status: 502,
      code: undefined,
      detail: undefined,
      retryAfter: undefined,
      reason: 'not JSON',
    }),
    '(502)',
    'A proxy in between',
  ],
  [new Error('<b>x</b>'), '<b>x</b>', 'Reload the page.'],
])('describes %s', (error, title, advice) => {
  const text = describeError(error)
  expect(text.title).toContain(title)
  expect(text.advice).toContain(advice)
})
