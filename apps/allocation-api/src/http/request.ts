import type { IncomingMessage, ServerResponse } from 'node:http'
import { zValidator } from '@hono/zod-validator'
import {
  canonicalDomain,
  type DeploymentProblem,
  type ErrorCode,
  errors,
  type FieldFault,
  firstViolation,
  idempotencyKey,
  isRecordsPath,
  MAX_RECORDS_BODY_BYTES,
  type Operation,
  type OperationId,
  operationList,
  toErrorStatus,
} from '@pool/contract'
import { BodyError } from '@pool/runtime/service/body-error'
import type { ReceivedRequest } from '@pool/runtime/service/received-request'
import { explainUnknownParameter } from '@pool/runtime/spelling'
import type { Context, Hono } from 'hono'
import type { H } from 'hono/types'
import { getPath } from 'hono/utils/url'
import * as z from 'zod'
import type { Caller } from '../naming/naming.ts'
import { toRoute } from '../observability/domain/observer.ts'
import type { LiveSession } from '../operator/domain/session.ts'

/** The listeners of the API. The history records which one received a request. */
export type Listener = 'in-cluster' | 'operator'

/**
 * Node's request and response; absent if no server received the request, as in tests. The server sends `requestId` as
 * `X-Request-Id`.
 */
export interface NodeExchange {
  readonly incoming?: ReceivedRequest | undefined
  readonly outgoing?: (ServerResponse & { requestId: string | null }) | undefined
}

/** What the handlers can read of a request apart from its content, and what they report of it. */
export class RequestContext implements NodeExchange {
  readonly request: Request
  readonly incoming: ReceivedRequest | undefined
  readonly outgoing: NodeExchange['outgoing']
  readonly listener: Listener
  /** The client's if it is safe. */
  requestId = ''
  /** Of the client; of the peer that is not a trusted proxy. Null: the connection has closed. */
  address: string | null = null
  /** The pattern of the route; `none`: the path has no route. */
  route = 'none'
  /** An operation's outcome or an error code, for the log and the metrics. */
  outcome = ''
  /** Why the database was not available, for the log. */
  cause: string | undefined
  /** Whether the Idempotency-Key can be guessed. */
  hasShortKey = false
  /** The id of the deployment that the request created. */
  deployment: string | undefined

  constructor(request: Request, listener: Listener, { incoming, outgoing }: NodeExchange) {
    this.request = request
    this.listener = listener
    this.incoming = incoming
    this.outgoing = outgoing
  }

  /**
   * A header of the request. Several fields of one name are joined by commas. Node has parsed them already; the `Headers` of
   * the `Request` would be created for it, which costs as much CPU as the rest of a small request.
   */
  header(name: Lowercase<string>): string | undefined {
    return this.incoming ? getHeader(this.incoming, name) : (this.request.headers.get(name) ?? undefined)
  }
}

/** Several fields of one name are joined by commas. */
export const getHeader = ({ headers }: IncomingMessage, name: Lowercase<string>): string | undefined => {
  const value = headers[name]
  return typeof value === 'string' ? value : value?.join(', ')
}

/** Receives an error that occurred after the response headers were sent. */
export type OnStreamError = (error: unknown, requestId: string) => void

/** What the routes receive. */
export interface HttpEnv {
  Bindings: RequestContext
  /** Of the middleware of the operator listener. */
  Variables: {
    /** The session of the request; absent: it has a token, or needs none. `id` is a secret of the browser. */
    session: (LiveSession & { readonly id: string }) | undefined
    /** Whether the session has not ended since; absent as above. */
    isStillAuthorized: (() => Promise<boolean>) | undefined
  }
}

/** An error outcome of an operation. Its kind is the error code, which has a text for an outcome without `detail`. */
export interface ErrorOutcome {
  readonly kind: ErrorCode
  readonly detail?: string
  /** Every invalid field of a request. The first one provides the detail. */
  readonly faults?: readonly FieldFault[]
  /** RFC 3339. When any client can reserve a name that is in its cool-off. */
  readonly availableAt?: string
  /** Retry-After (RFC 9110 section 10.2.3). */
  readonly retryAfterSeconds?: number
}

/** Retry-After if no better value is known. */
export const RETRY_AFTER_S = 5

/** A browser asks for no password with this scheme (RFC 6750 section 3). */
export const OPERATOR_CHALLENGE = 'Bearer realm="operator"'

const toHeaders = ({ kind, retryAfterSeconds }: ErrorOutcome, path: string): Record<string, string> => ({
  // RFC 9110 section 11.6.1.
  ...(kind === 'unauthorized' && { 'WWW-Authenticate': isRecordsPath(path) ? 'Bearer' : OPERATOR_CHALLENGE }),
  ...(retryAfterSeconds !== undefined && { 'Retry-After': String(retryAfterSeconds) }),
})

/** The body of an error response. */
export const toProblem = (
  { kind, detail, faults, availableAt }: ErrorOutcome,
  { requestId }: RequestContext,
): DeploymentProblem => {
  const [firstFault] = faults ?? []
  return {
    error: kind,
    detail: detail ?? firstFault?.detail ?? errors[kind][1],
    ...(faults && firstFault && { field: firstFault.field, faults: [...faults] }),
    ...(availableAt !== undefined && { availableAt }),
    ...(kind === 'internal-error' && { requestId }),
  }
}

/** The response to a request that does not reach the routes; also sets its outcome. */
export const createErrorResponse = (context: RequestContext, error: ErrorOutcome): Response => {
  context.outcome = error.kind
  const path = getPath(context.request)
  const status = toErrorStatus(error.kind, path)
  return Response.json(toProblem(error, context), { status, headers: toHeaders(error, path) })
}

/** Sends the error response. `toExtraFields` adds fields for operations whose clients read another error shape too. */
export const sendError = (
  c: Context<HttpEnv>,
  error: ErrorOutcome,
  toExtraFields: (detail: string) => object = () => ({}),
) => {
  c.env.outcome = error.kind
  const { path } = c.req
  for (const [name, value] of Object.entries(toHeaders(error, path))) c.header(name, value)
  const body = toProblem(error, c.env)
  return c.json({ ...body, ...toExtraFields(body.detail ?? '') }, toErrorStatus(error.kind, path))
}

export type Parsed<Value> =
  | { readonly ok: true; readonly value: Value }
  | { readonly ok: false; readonly error: ErrorOutcome }

const toErrorOutcome = (error: z.core.$ZodError): ErrorOutcome => {
  const { code, detail } = firstViolation(error)
  return { kind: code, detail }
}

export const parse = <Schema extends z.ZodType>(schema: Schema, value: unknown): Parsed<z.output<Schema>> => {
  const result = schema.safeParse(value)
  return result.success ? { ok: true, value: result.data } : { ok: false, error: toErrorOutcome(result.error) }
}

/**
 * Whether the client disconnected before it sent the whole body. It gets no response, but the log needs the reason. Not
 * `destroyed`: a request without a body is destroyed from the start.
 */
const isTruncated = ({ incoming }: RequestContext): boolean => incoming?.readableAborted === true && !incoming.complete

/** The outcome of a request whose body was not read; null: the error has another cause. */
export const toBodyOutcome = (context: RequestContext, error: Error): ErrorOutcome | null => {
  const failure = isTruncated(context) ? 'body-aborted' : error instanceof BodyError ? error.kind : null
  if (failure === 'body-aborted') return { kind: 'invalid-json', detail: 'The request body was truncated.' }
  if (failure === 'body-too-large' && isRecordsPath(getPath(context.request)))
    return { kind: failure, detail: 'The body must not be larger than 1 MiB.' }
  return failure && { kind: failure, ...(failure === 'overloaded' && { retryAfterSeconds: RETRY_AFTER_S }) }
}

const utf8 = new TextDecoder('utf-8', { fatal: true })

const MAX_BODY_BYTES = 64 * 1_024

/** The body of an operation without a limit. Throws a `BodyError`. */
export const streamBody = (c: Context<HttpEnv>): ReadableStream<Uint8Array> => {
  c.env.incoming?.streamBody()
  return c.req.raw.body ?? new Blob([]).stream()
}

/** Reads the body as JSON, whatever its Content-Type. An empty body has the value undefined. Rejects with a `BodyError`. */
export const readJson = async (c: Context<HttpEnv>): Promise<Parsed<unknown>> => {
  const maxBytes = isRecordsPath(c.req.path) ? MAX_RECORDS_BODY_BYTES : MAX_BODY_BYTES
  const bytes = (await c.env.incoming?.readBody(maxBytes)) ?? new Uint8Array(await c.req.arrayBuffer())
  if (bytes.byteLength === 0) return { ok: true, value: undefined }
  try {
    return { ok: true, value: JSON.parse(utf8.decode(bytes)) }
  } catch {
    return { ok: false, error: { kind: 'invalid-json' } }
  }
}

/** Reads the body as JSON and rejects an empty one. */
export const readRequiredJson = async (c: Context<HttpEnv>): Promise<Parsed<unknown>> => {
  const json = await readJson(c)
  const isEmpty = json.ok && json.value === undefined
  return isEmpty ? { ok: false, error: { kind: 'invalid-json', detail: 'A JSON body is required.' } } : json
}

/** Reads the JSON body and validates it. */
export const parseBody = async <Schema extends z.ZodType>(
  c: Context<HttpEnv>,
  schema: Schema,
): Promise<Parsed<z.output<Schema>>> => {
  const json = await readRequiredJson(c)
  return json.ok ? parse(schema, json.value) : json
}

/** A key of 128 random bits is longer in every usual encoding. Who guesses a key gets the token of its result. */
const MIN_KEY_LENGTH = 16

/** Each listener has its own keys. A key of a client contains no space. */
export const parseIdempotencyKey = (c: Context<HttpEnv>): Parsed<string | undefined> => {
  const header = c.env.header('idempotency-key')
  if (header === undefined) return { ok: true, value: undefined }
  c.env.hasShortKey = header.length < MIN_KEY_LENGTH
  const key = parse(idempotencyKey, header)
  return key.ok && c.env.listener === 'operator' ? { ok: true, value: `operator ${key.value}` } : key
}

export interface WriteRequest<Body> {
  readonly command: Body & { readonly poolDomain: string }
  readonly caller: Caller
  readonly key: string | undefined
}

/** Validates a write to an allocation: the Idempotency-Key, then the body. `body`: if it has already been read. */
export const parseWrite = async <Schema extends z.ZodType<object>>(
  c: Context<HttpEnv>,
  schema: Schema,
  body?: unknown,
): Promise<Parsed<WriteRequest<z.output<Schema>>>> => {
  const key = parseIdempotencyKey(c)
  if (!key.ok) return key
  const json: Parsed<unknown> = body === undefined ? await readRequiredJson(c) : { ok: true, value: body }
  if (!json.ok) return json
  const parsed = parse(schema, json.value)
  if (!parsed.ok) return parsed
  const command = { ...parsed.value, poolDomain: getPoolDomain(c) }
  return { ok: true, value: { command, caller: getCaller(c), key: key.value } }
}

/** The pool domain of the path in canonical form. It needs no validator: the operation decides if it is managed. */
export const getPoolDomain = (c: Context<HttpEnv>): string => canonicalDomain(c.req.param('domain') ?? '')

export const getCaller = (c: Context<HttpEnv>): Caller => ({
  actor: c.env.listener,
  address: c.env.address,
  requestId: c.env.requestId,
})

export const getDeploymentToken = (c: Context<HttpEnv>): string | undefined => c.req.header('X-Deployment-Token')

/** Responds to an operation: one handler, or validators and then a handler. */
export type Handler = ((c: Context<HttpEnv>) => Response | Promise<Response>) | readonly H<HttpEnv>[]

export type Handlers = Readonly<Record<OperationId, Handler>>

/** The handlers of an operation, in order. */
export const toSteps = (handler: Handler): H<HttpEnv>[] => (typeof handler === 'function' ? [handler] : [...handler])

/** Before anything else, so that a misspelt parameter changes nothing. Not a step of its own, which each request would pay for. */
const rejectUnknownParameters = ([first, ...rest]: H<HttpEnv>[], query: z.ZodObject | undefined): H<HttpEnv>[] => {
  const known = Object.keys(query?.shape ?? {})
  const check: H<HttpEnv> = (c, next) => {
    const detail = explainUnknownParameter(c.req.url, known)
    return detail === undefined ? first?.(c, next) : sendError(c, { kind: 'unknown-parameter', detail })
  }
  return [check, ...rest]
}

/** The paths without parameters that `pattern` matches, and that do not have the method: they are not its own. */
const listExceptions = (pattern: string, method: string): ReadonlySet<string> => {
  const matcher = new RegExp(`^${pattern.replace(/\{\w+\}/g, '[^/]+')}$`)
  const others = operationList.filter(({ path }) => path !== pattern && !path.includes('{') && matcher.test(path))
  const own = new Set(others.filter(other => other.method === method).map(({ path }) => path))
  return new Set(others.map(({ path }) => path).filter(path => !own.has(path)))
}

/** Not a route for all methods of the paths: with one, Hono needs its slower router. */
const exceptAt = (paths: ReadonlySet<string>, steps: H<HttpEnv>[]): H<HttpEnv>[] => {
  if (paths.size === 0) return steps
  const [first, ...rest] = steps
  return [(c, next) => (paths.has(c.req.path) ? c.notFound() : first?.(c, next)), ...rest]
}

/** Adds the route of each operation that this listener has, in the order of the contract. */
export const addRoutes = (
  app: Hono<HttpEnv>,
  handlers: Handlers,
  has: { readonly operator: boolean; readonly list: boolean },
): void => {
  for (const { id, method, path, listener, query, ignoresUnknownQuery } of operationList) {
    if (listener !== undefined && !has[listener]) continue
    const steps = toSteps(handlers[id as OperationId])
    const checked = ignoresUnknownQuery ? steps : rejectUnknownParameters(steps, query)
    app.on([method.toUpperCase()], [toRoute(path)], ...exceptAt(listExceptions(path, method), checked))
  }
}

type OutputOf<Schema> = Schema extends z.ZodType ? z.output<Schema> : Record<never, never>

/** The path and the query of a request, in canonical form. */
export interface Input<Op extends Pick<Operation, 'pathParams' | 'query'>> {
  readonly path: OutputOf<Op['pathParams']>
  readonly query: OutputOf<Op['query']>
}

const isList = (schema: unknown): boolean =>
  schema instanceof z.ZodOptional ? isList(schema.unwrap()) : schema instanceof z.ZodArray

/** The first value of a repeated parameter, or every value of a list. */
const toQueryValues = (query: object, { shape }: z.ZodObject): object =>
  Object.fromEntries(
    Object.entries(query).map(([name, value]) => {
      const values = [value].flat()
      return [name, isList(shape[name]) ? values : values[0]]
    }),
  )

const nothing = z.object({})

/** Validates the path, then the query, with the schemas of the contract. */
export const validated = <const Op extends Pick<Operation, 'pathParams' | 'query'>>(
  { pathParams = nothing, query = nothing }: Op,
  handle: (c: Context<HttpEnv>, input: Input<Op>) => Response | Promise<Response>,
): Handler => {
  type Result = { readonly success: true } | { readonly success: false; readonly error: z.core.$ZodError }
  const reject = (result: Result, c: Context): Response | undefined =>
    result.success ? undefined : sendError(c, toErrorOutcome(result.error))
  const inQuery = zValidator('query', query, reject, {
    validationFunction: (schema, value) => schema.safeParse(toQueryValues(value, query)),
  })
  const respond = (c: Context) =>
    handle(c, { path: c.req.valid('param' as never), query: c.req.valid('query' as never) } as Input<Op>)
  return [zValidator('param', pathParams, reject), inQuery, respond] as H<HttpEnv>[]
}
