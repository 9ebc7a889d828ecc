import { type Operation, type OperationId, operationList } from '@pool/contract'
import type { Context, Hono } from 'hono'
import * as z from 'zod'
import { toRoute } from '../observability/domain/request-log.ts'
import { sendError } from './errors.ts'
import type { HttpEnv } from './types.ts'
import { parse } from './validate.ts'

/** Responds to an operation. */
export type Handler = (c: Context<HttpEnv>) => Response | Promise<Response>

export type Handlers = Readonly<Record<OperationId, Handler>>

/** Adds the route of each operation that this listener has, in the order of the contract. */
export const addRoutes = (
  app: Hono<HttpEnv>,
  handlers: Handlers,
  has: { readonly operator: boolean; readonly list: boolean },
): void => {
  for (const { id, method, path, listener } of operationList) {
    if (listener === undefined || has[listener])
      app.on(method.toUpperCase(), toRoute(path), handlers[id as OperationId])
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
const readQuery = (c: Context<HttpEnv>, { shape }: z.ZodObject): object =>
  Object.fromEntries(
    Object.entries(c.req.queries()).map(([name, values]) => [name, isList(shape[name]) ? values : values[0]]),
  )

const nothing = z.object({})

/** Validates the path, then the query, with the schemas of the contract. */
export const validated =
  <const Op extends Pick<Operation, 'pathParams' | 'query'>>(
    { pathParams = nothing, query = nothing }: Op,
    handle: (c: Context<HttpEnv>, input: Input<Op>) => Response | Promise<Response>,
  ): Handler =>
  c => {
    const inPath = parse(pathParams, c.req.param())
    if (!inPath.ok) return sendError(c, inPath.error)
    const inQuery = parse(query, readQuery(c, query))
    if (!inQuery.ok) return sendError(c, inQuery.error)
    return handle(c, { path: inPath.value, query: inQuery.value } as Input<Op>)
  }
