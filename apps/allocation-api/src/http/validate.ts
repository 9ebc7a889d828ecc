import { zValidator } from '@hono/zod-validator'
import { firstViolation, idempotencyKey, poolDomain } from '@pool/contract'
import type { Context, MiddlewareHandler, ValidationTargets } from 'hono'
import { z } from 'zod'
import type { Caller } from '../allocation/domain/types.ts'
import { type ApiError, sendError } from './errors.ts'
import type { HttpEnv } from './types.ts'

type SendError = (c: Context<HttpEnv>, error: ApiError) => Response

export const toApiError = (error: z.core.$ZodError): ApiError => {
  const { code, detail } = firstViolation(error)
  return { kind: code, detail }
}

/** The first value of a repeated query parameter, as `c.req.query()` returns it. */
const toFirstValues = (query: object): object =>
  Object.fromEntries(Object.entries(query).map(([name, value]) => [name, Array.isArray(value) ? value[0] : value]))

type Validator<Target extends keyof ValidationTargets, Schema extends z.ZodType> = MiddlewareHandler<
  HttpEnv,
  string,
  { in: Record<Target, z.input<Schema>>; out: Record<Target, z.output<Schema>> }
>

/** Validates one part of the request. The handler reads the canonical value with `c.req.valid(target)`. */
export const validate = <Target extends keyof ValidationTargets, Schema extends z.ZodType>(
  target: Target,
  schema: Schema,
  send: SendError = sendError,
): Validator<Target, Schema> =>
  zValidator(
    target,
    schema as z.ZodType,
    (result, c: Context): Response | undefined => (result.success ? undefined : send(c, toApiError(result.error))),
    { validationFunction: (known, value) => known.safeParse(target === 'query' ? toFirstValues(value) : value) },
  ) as unknown as Validator<Target, Schema>

/** How Hono's body limit stops reading a body of unknown length. */
export const isBodyLimitError = (error: unknown): boolean => error instanceof Error && error.name === 'BodyLimitError'

/** Whether the client disconnected before it sent the whole body. It gets no response, but the log needs the reason. */
export const isBodyTruncated = (c: Context<HttpEnv>): boolean =>
  c.env?.incoming?.destroyed === true && !c.env.incoming.complete

const utf8 = new TextDecoder('utf-8', { fatal: true })

export type JsonResult = { readonly ok: true; readonly text: string; readonly value: unknown } | JsonError
interface JsonError {
  readonly ok: false
  readonly error: ApiError
}

/** Reads the body as JSON, whatever its Content-Type. An empty body has the value undefined. */
export const readJson = async (c: Context<HttpEnv>): Promise<JsonResult> => {
  const bytes = await c.req.arrayBuffer()
  if (bytes.byteLength === 0) return { ok: true, text: '', value: undefined }
  try {
    const text = utf8.decode(bytes)
    return { ok: true, text, value: JSON.parse(text) }
  } catch {
    return { ok: false, error: { kind: 'invalid-json' } }
  }
}

/** Reads the body as JSON and rejects an empty one. */
export const readRequiredJson = async (c: Context<HttpEnv>): Promise<JsonResult> => {
  const json = await readJson(c)
  const isEmpty = json.ok && json.value === undefined
  return isEmpty ? { ok: false, error: { kind: 'invalid-json', detail: 'A JSON body is required.' } } : json
}

/**
 * Validates the JSON body. The contract ignores Content-Type and requires UTF-8, so the body is read here. The validator
 * gets it from Hono's body cache.
 */
export const validateJson = <Schema extends z.ZodType>(
  schema: Schema,
  send: SendError = sendError,
): Validator<'json', Schema> => {
  const validateBody = validate('json', schema, send)
  return async (c, next) => {
    const json = await readRequiredJson(c)
    if (!json.ok) return send(c, json.error)
    Object.assign(c.req.bodyCache, { text: Promise.resolve(json.text) })
    c.req.raw.headers.set('Content-Type', 'application/json')
    return validateBody(c, next)
  }
}

/** Validates the header Idempotency-Key. */
export const validateIdempotencyKey = validate('header', z.object({ 'Idempotency-Key': idempotencyKey.optional() }))

/** The pool domain of the path, trimmed and lower-cased. It needs no validator: the operation decides if it is managed. */
export const getPoolDomain = (c: Context<HttpEnv>): string => poolDomain.parse(c.req.param('domain'))

export const getCaller = (c: Context<HttpEnv>): Caller => ({
  actor: c.get('listener'),
  // A dual-stack socket shows an IPv4 client as an IPv4-mapped IPv6 address (RFC 4291 section 2.5.5.2).
  address: c.env?.incoming?.socket.remoteAddress?.replace(/^::ffff:/, '') ?? null,
  requestId: c.get('requestId'),
})
