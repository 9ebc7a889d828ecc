import type * as z from 'zod'
import type { ErrorStatus, ErrorTable } from './problem.ts'

/** How a later request uses this response (OpenAPI 3.1, Link Object). */
export interface LinkSpec {
  /** The later operation, of the same service. */
  readonly operationId: string
  readonly description?: string
  /** Runtime expressions by parameter, prefixed with its place: `path.id`. */
  readonly parameters?: Readonly<Record<string, string>>
  /** Runtime expressions by field of the body; in the document, the extension `x-request-body`. */
  readonly requestBody?: Readonly<Record<string, unknown>>
}

export interface ResponseSpec {
  readonly description: string
  /** The error codes of the body; absent: the response is a result. */
  readonly codes?: readonly string[]
  /** Absent: the response has no body. */
  readonly schema?: z.ZodType
  /** `application/json` by default. */
  readonly mediaType?: string
  /** Descriptions of headers, in addition to those of every response of the service. */
  readonly headers?: Readonly<Record<string, string>>
  /** By name. */
  readonly links?: Readonly<Record<string, LinkSpec>>
}

/** An error of an operation: its code, with a text of its own if that of the service does not fit. */
export type ErrorUse<Code extends string> = Code | readonly [code: Code, text: string]

/** What is written down of an operation. */
export interface OperationSpec<Code extends string = string> {
  readonly method: 'get' | 'post' | 'put' | 'delete' | 'options'
  /** With `{name}` for path parameters, as in OpenAPI. */
  readonly path: string
  readonly tag:
    | 'Allocation'
    | 'Records'
    | 'Credentials'
    | 'Deployments'
    | 'Operator'
    | 'Console'
    | 'Health'
    | 'Description'
    | 'Lease'
    | 'Copies'
  readonly summary: string
  readonly description?: string
  readonly pathParams?: z.ZodObject
  readonly query?: z.ZodObject
  /** True: parameters that are not in `query` are ignored, for probes and clients that add some. Else they are 422. */
  readonly ignoresUnknownQuery?: true
  readonly headers?: z.ZodObject
  readonly body?: {
    readonly schema: z.ZodType
    readonly required: boolean
    /** `application/json` by default. */
    readonly mediaType?: string
  }
  /** The responses that are results, by status. */
  readonly results: Readonly<Record<number, ResponseSpec>>
  /** The errors in addition to those that follow from the rest. */
  readonly errors?: readonly ErrorUse<Code>[]
  /** Headers and schemas of errors with this status that only this operation has. */
  readonly errorResponses?: Readonly<Partial<Record<number, Pick<ResponseSpec, 'schema' | 'headers'>>>>
  /** True: no token is needed. */
  readonly isPublic?: boolean
  /** The security schemes of the document that the operation has instead of those of the service; one of them is needed. */
  readonly security?: readonly string[]
  /** True: a request other than GET changes nothing. */
  readonly isRead?: boolean
  /** True: a second request other than GET does no more than the first. */
  readonly isRepeatable?: boolean
}

/** One operation of a service, from which its OpenAPI document, its client and its handler follow. */
export interface Operation extends OperationSpec {
  readonly id: string
  /** Results and errors by status. */
  readonly responses: Readonly<Record<number, ResponseSpec>>
}

/** The operations by id, with everything that follows from what is written down. */
export type Operations<Specs extends Readonly<Record<string, OperationSpec>>> = {
  readonly [Id in keyof Specs]: Specs[Id] & Pick<Operation, 'responses'> & { readonly id: Id }
}

/** Adds the method and the path to the rest of an operation. */
const withMethod =
  <const Method extends OperationSpec['method']>(method: Method) =>
  <const Rest extends Omit<OperationSpec, 'method' | 'path'>>(path: string, rest: Rest) => ({ method, path, ...rest })

export const get = withMethod('get')
export const post = withMethod('post')
export const put = withMethod('put')
export const del = withMethod('delete')
export const options = withMethod('options')

/**
 * The segment of a base URL's path with which a path of these operations begins. Such a URL would repeat it, and that can be
 * a request for something else: with `/lease`, the slot `a` would be `lease/a`. Proxies may decode a path.
 */
export const findOwnSegment = (
  basePath: string,
  operations: Readonly<Record<string, Pick<OperationSpec, 'path'>>>,
): string | undefined => {
  const own = new Set(Object.values(operations).map(({ path }) => path.split('/')[1]))
  const decoded = basePath.replace(/%([2-7][0-9a-f])/gi, (_, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  )
  return decoded.split('/').find(segment => own.has(segment))
}

/** How the errors of a service look. */
export interface ErrorForm<Code extends string> {
  readonly errors: ErrorTable<Code>
  /** If it depends on the operation. */
  readonly toStatus?: (code: Code) => ErrorStatus
  readonly problem: z.ZodType
  /** The bodies of codes that have more fields. */
  readonly bodies: Readonly<Partial<Record<Code, z.ZodType>>>
  /** Descriptions of the headers of errors, by status. */
  readonly headers: Readonly<Record<number, NonNullable<ResponseSpec['headers']>>>
}

/** The responses for errors, by status: every code with its text. */
export const toErrorResponses = <Code extends string>(
  uses: readonly ErrorUse<Code>[],
  { errors, toStatus = code => errors[code][0], problem, bodies, headers }: ErrorForm<Code>,
  own: OperationSpec['errorResponses'] = {},
): Readonly<Record<number, ResponseSpec>> => {
  const texts = uses.map(use => (typeof use === 'string' ? ([use, errors[use][1]] as const) : use))
  const toResponse = (status: ErrorStatus): ResponseSpec => {
    const found = texts.filter(([code]) => toStatus(code) === status)
    const codes = [...new Set(found.map(([code]) => code))]
    const body = codes.map(code => bodies[code]).find(schema => schema !== undefined)
    return {
      description: found.map(([code, text]) => `\`${code}\`: ${text}`).join(' '),
      codes,
      schema: body ?? problem,
      ...(headers[status] ? { headers: headers[status] } : {}),
      ...own[status],
    }
  }
  const statuses = new Set(texts.map(([code]) => toStatus(code)))
  return Object.fromEntries([...statuses].map(status => [status, toResponse(status)]))
}
