import * as z from 'zod'

/** The statuses of errors. */
export type ErrorStatus = 400 | 401 | 403 | 404 | 405 | 408 | 409 | 410 | 413 | 415 | 422 | 429 | 500 | 503

/**
 * The errors of a service by code: the status of the response, and its `detail` unless the sender knows a better one. The
 * OpenAPI document and the API reference have these texts too.
 */
export type ErrorTable<Code extends string = string> = Readonly<
  Record<Code, readonly [status: ErrorStatus, text: string]>
>

export const defineErrors = <Code extends string>(errors: ErrorTable<Code>): ErrorTable<Code> => errors

export const listCodes = <Code extends string>(errors: ErrorTable<Code>): readonly Code[] =>
  Object.keys(errors) as Code[]

/** The shape of every error body. `detail` is one sentence that helps a person to fix the request. */
export const createProblemSchema = <Codes extends z.ZodEnum>(codes: Codes) =>
  z.object({
    error: codes,
    detail: z.string().optional(),
    requestId: z.string().optional().meta({ description: 'Only with `internal-error`: find it in the log.' }),
  })

/** Why a schema rejected a value: the code and the text of the error body. */
export interface RuleViolation<Code extends string> {
  readonly code: Code
  readonly detail: string
}

/** A field that is missing is called required; one that has a value is told what it must be. A blank text can be either. */
const toFieldDetail = (detail: string, value: unknown): string => {
  if (value === undefined || value === null) return detail.replace(/^(\w+) must be /, '$1 is required: ')
  if (typeof value === 'string' && value.trim() === '') return detail
  return detail
    .replace(/^(\w+) is required: /, '$1 must be ')
    .replace(/^(The [\w ]+) is required\.$/, '$1 must be text.')
}

/**
 * Error codes for schemas. `rule` attaches the code and the text to a schema or a check:
 * `z.string(rule('missing-token', '…'))`. The code travels in the `params` of the issue. A text that depends on the value
 * does not contain it, because it may be a secret.
 */
export const createRules = <Code extends string>(codes: readonly Code[], fallbackCode: Code) => {
  const isCode = (value: unknown): value is Code => codes.some(code => code === value)
  return {
    rule: (code: Code, detail: string | ((value: unknown) => string)) => ({
      error: (issue: z.core.$ZodRawIssue): string => {
        Object.assign(issue, { params: { code } })
        return toFieldDetail(typeof detail === 'string' ? detail : detail(issue.input), issue.input)
      },
    }),

    /** An issue for a check whose text depends on the value. It does not contain the value, which may be a secret. */
    violation: (code: Code, detail: string): z.core.$ZodRawIssue => ({
      code: 'custom',
      input: undefined,
      message: detail,
      params: { code },
    }),

    /** The first violation in the order of the schema's fields, which is the order of decisions in the contract. */
    firstViolation: (error: z.core.$ZodError): RuleViolation<Code> => {
      const [issue] = error.issues
      const code = issue && 'params' in issue ? issue.params?.code : undefined
      return issue && isCode(code)
        ? { code, detail: issue.message }
        : { code: fallbackCode, detail: 'The request does not have the documented shape.' }
    },
  }
}
