import { firstViolation, idempotencyKey, poolDomain } from '@pool/contract'
import type { Context } from 'hono'
import type { z } from 'zod'
import type { Caller } from '../allocation/domain/types.ts'
import type { Refused } from './errors.ts'
import type { HttpEnv } from './types.ts'

export type Parsed<Value> =
  | { readonly ok: true; readonly value: Value }
  | { readonly ok: false; readonly refused: Refused }

const accept = <Value>(value: Value): Parsed<Value> => ({ ok: true, value })
const refuse = (refused: Refused): Parsed<never> => ({ ok: false, refused })

/** The value in its canonical form, or the first fault in the order in which the contract decides. */
export const parse = <Schema extends z.ZodType>(schema: Schema, value: unknown): Parsed<z.infer<Schema>> => {
  const result = schema.safeParse(value)
  if (result.success) return accept(result.data)
  const { code, detail } = firstViolation(result.error)
  return refuse({ kind: code, detail })
}

/** Whether the client went away before all of the body was here. Nobody reads the answer; the log must tell the truth. */
export const isBrokenOff = (c: Context<HttpEnv>): boolean =>
  c.env?.incoming?.destroyed === true && !c.env.incoming.complete

/** How the body limit ends the reading of a body that turns out to be too large. */
export const isTooLarge = (error: unknown): boolean => error instanceof Error && error.name === 'BodyLimitError'

const utf8 = new TextDecoder('utf-8', { fatal: true })

/** The body as JSON, whatever its Content-Type; undefined when it is empty. */
export const readJson = async (c: Context<HttpEnv>): Promise<Parsed<unknown>> => {
  const bytes = await c.req.arrayBuffer()
  if (bytes.byteLength === 0) return accept(undefined)
  try {
    return accept(JSON.parse(utf8.decode(bytes)))
  } catch {
    return refuse({ kind: 'invalid-json' })
  }
}

/** The body as JSON; an empty one is refused. */
export const readRequiredJson = async (c: Context<HttpEnv>): Promise<Parsed<unknown>> => {
  const json = await readJson(c)
  const isEmpty = json.ok && json.value === undefined
  return isEmpty ? refuse({ kind: 'invalid-json', detail: 'A JSON body is required.' }) : json
}

/** The pool domain of the path, trimmed and lower-cased. Whether it is managed is for the verb to say. */
export const poolOf = (c: Context<HttpEnv>): string => poolDomain.parse(c.req.param('domain'))

export const callerOf = (c: Context<HttpEnv>): Caller => ({
  actor: c.get('listener'),
  // An IPv4 caller of a socket that takes both is shown as IPv4 (RFC 4291 section 2.5.5.2).
  address: c.env?.incoming?.socket.remoteAddress?.replace(/^::ffff:/, '') ?? null,
  requestId: c.get('requestId'),
})

export interface WriteRequest<Body> {
  readonly command: Body & { readonly poolDomain: string }
  readonly caller: Caller
  readonly key: string | undefined
}

export interface KeyedJson {
  readonly json: unknown
  readonly caller: Caller
  readonly key: string | undefined
}

/** A body that must be there, and who sends it; `json` when it has been read already. */
export const readKeyedJson = async (c: Context<HttpEnv>, json?: unknown): Promise<Parsed<KeyedJson>> => {
  const key = parse(idempotencyKey.optional(), c.req.header('Idempotency-Key'))
  if (!key.ok) return key
  const raw = json === undefined ? await readRequiredJson(c) : accept(json)
  if (!raw.ok) return raw
  return accept({ json: raw.value, caller: callerOf(c), key: key.value })
}

/** All that a write comes with; `json` when the body has been read already. */
export const readWrite = async <Schema extends z.ZodType<object>>(
  c: Context<HttpEnv>,
  schema: Schema,
  json?: unknown,
): Promise<Parsed<WriteRequest<z.infer<Schema>>>> => {
  const request = await readKeyedJson(c, json)
  if (!request.ok) return request
  const { caller, key } = request.value
  const body = parse(schema, request.value.json)
  if (!body.ok) return body
  return accept({ command: { ...body.value, poolDomain: poolOf(c) }, caller, key })
}
