import { zValidator } from '@hono/zod-validator'
import { type Operation, type OperationId, operationList } from '@pool/contract'
import type { Context, Hono } from 'hono'
import type { H } from 'hono/types'
import * as z from 'zod'
import { toRoute } from '../observability/domain/request-log.ts'
import { sendError } from './errors.ts'
import type { HttpEnv } from './types.ts'
import { toErrorOutcome } from './validate.ts'

/** Responds to an operation: one handler, or validators and then a handler. */
export type Handler = ((c: Context<HttpEnv>) => Response | Promise<Response>) | readonly H<HttpEnv>[]

export type Handlers = Readonly<Record<OperationId, Handler>>

/** The handlers of an operation, in order. */
export const toSteps = (handler: Handler): H<HttpEnv>[] => (typeof handler === 'function' ? [handler] : [...handler])

/** Adds the route of each operation that this listener has, in the order of the contract. */
export const addRoutes = (
  app: Hono<HttpEnv>,
  handlers: Handlers,
  has: { readonly operator: boolean; readonly list: boolean },
): void => {
  for (const { id, method, path, listener } of operationList) {
    if (listener !== undefined && !has[listener]) continue
    app.on([method.toUpperCase()], [toRoute(path)], ...toSteps(handlers[id as OperationId]))
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
