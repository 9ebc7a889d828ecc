import type { CallId, callOperations, Operation } from '@pool/contract'
import type { BodyOf, Flat, OperationResult, PathOf, QueryOf } from '../operation-types.ts'
import type { CallOptions } from '../options.ts'
import type { RawBody, RequestParts } from '../request.ts'

type OperationById<Id extends CallId> = (typeof callOperations)[Id]

type HasJsonBody<Op extends Operation> = Op extends { readonly body: { readonly mediaType: string } } ? false : true

type HeadersOf<Op> = Op extends { readonly headers: { readonly shape: infer Shape } } ? keyof Shape : never

type HeaderParams<Op> = ('X-Deployment-Token' extends HeadersOf<Op>
  ? { deploymentToken?: string | undefined }
  : Record<never, never>) &
  ('Last-Event-ID' extends HeadersOf<Op> ? { lastEventId?: string | undefined } : Record<never, never>)

/** The parameters of a call: the fields of the path, of the query and of the JSON body, and `deploymentToken`. */
export type Params<Id extends CallId> = Flat<
  PathOf<OperationById<Id>> &
    QueryOf<OperationById<Id>> &
    (HasJsonBody<OperationById<Id>> extends true ? BodyOf<OperationById<Id>> : { body: RawBody }) &
    HeaderParams<OperationById<Id>> &
    // The service says what is missing; a program that omits it has a mistake.
    (Id extends 'checkName' ? { sub: string } : unknown)
>

/** The body of a successful response. */
export type Result<Id extends CallId> = OperationResult<OperationById<Id>>['body']

/** The settings of a call with an Idempotency-Key. */
export interface WriteOptions extends CallOptions {
  /**
   * The Idempotency-Key: 1 to 255 visible ASCII characters, of at least 128 random bits. By default, every call has a new
   * one. With a key that you have stored, a call can be repeated after a restart of your process.
   */
  readonly idempotencyKey?: string | undefined
}

/** Parameters that are sent as headers. */
const HEADERS: Readonly<Record<string, string>> = {
  deploymentToken: 'X-Deployment-Token',
  lastEventId: 'Last-Event-ID',
}

/** Assigns each parameter to the part of the request that the operation names it in; the others belong to the body. */
export const toRequestParts = (operation: Operation, params: Readonly<Record<string, unknown>>): RequestParts => {
  const { pathParams, query, headers, body } = operation
  const path: Record<string, unknown> = {}
  const queryFields: Record<string, unknown> = {}
  const headerFields: Record<string, string> = {}
  const bodyFields: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(params)) {
    if (value === undefined) continue
    const header = HEADERS[name]
    if (pathParams && name in pathParams.shape) path[name] = value
    else if (query && name in query.shape) queryFields[name] = value
    else if (headers && header !== undefined && header in headers.shape) headerFields[header] = value as string
    else if (body) bodyFields[name] = value
    else throw new TypeError(`${operation.id}: there is no parameter ${name}.`)
  }
  const hasFields = Object.keys(bodyFields).length > 0
  const json = body && (hasFields || body.required) ? { body: bodyFields } : {}
  return {
    path,
    query: queryFields,
    headers: headerFields,
    ...(body?.mediaType === undefined ? json : { body: bodyFields.body }),
  }
}
