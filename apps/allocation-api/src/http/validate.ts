import { firstViolation, idempotencyKey, poolDomain } from '@pool/contract'
import type { Context } from 'hono'
import { bodyLimit } from 'hono/body-limit'
import type * as z from 'zod'
import type { Caller } from '../naming/caller.ts'
import type { ErrorOutcome } from './errors.ts'
import type { HttpEnv } from './types.ts'

export type Parsed<Value> =
  | { readonly ok: true; readonly value: Value }
  | { readonly ok: false; readonly error: ErrorOutcome }

export const toErrorOutcome = (error: z.core.$ZodError): ErrorOutcome => {
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
export const isBodyTruncated = (c: Context<HttpEnv>): boolean =>
  c.env.incoming?.readableAborted === true && !c.env.incoming.complete

const utf8 = new TextDecoder('utf-8', { fatal: true })

const MAX_BODY_BYTES = 64 * 1_024

/** A body of more than 64 KiB. Every operation that reads a body responds to it in the same way. */
export class BodyTooLargeError extends Error {
  override readonly name = 'BodyTooLargeError'
}

const throwTooLarge = (): never => {
  throw new BodyTooLargeError()
}

const limitStream = bodyLimit({ maxSize: MAX_BODY_BYTES, onError: throwTooLarge })

/**
 * Reads the body as JSON, whatever its Content-Type. An empty body has the value undefined. Rejects with a
 * `BodyTooLargeError`.
 */
export const readJson = async (c: Context<HttpEnv>): Promise<Parsed<unknown>> => {
  // Counting the bytes of a stream is slow, so a declared length is compared instead.
  if (c.env.header('transfer-encoding') !== undefined) await limitStream(c, async () => {})
  else if (Number(c.env.header('content-length') ?? 0) > MAX_BODY_BYTES) throwTooLarge()
  const bytes = await c.req.arrayBuffer()
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

export const parseIdempotencyKey = (c: Context<HttpEnv>): Parsed<string | undefined> => {
  const key = c.req.header('Idempotency-Key')
  return key === undefined ? { ok: true, value: undefined } : parse(idempotencyKey, key)
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

/** The pool domain of the path, trimmed and lower-cased. It needs no validator: the operation decides if it is managed. */
export const getPoolDomain = (c: Context<HttpEnv>): string => poolDomain.parse(c.req.param('domain'))

export const getCaller = (c: Context<HttpEnv>): Caller => ({
  actor: c.env.listener,
  address: c.env.address,
  requestId: c.env.requestId,
})
