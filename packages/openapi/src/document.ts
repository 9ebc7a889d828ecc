import type { Answer, Operation } from '@pool/contract'
import type * as z from 'zod'
import { createDocument } from 'zod-openapi'

export interface Described {
  readonly title: string
  readonly description: string
  readonly operations: readonly Operation[]
  /** Headers of every answer; each with what it means. */
  readonly headers: Readonly<Record<string, string>>
  /** Schemas that are no body by themselves. */
  readonly schemas?: Readonly<Record<string, z.ZodType>>
  /** The bearer tokens, by the name of their scheme; `isOptional`: there is an address without. */
  readonly bearer: { readonly name: string; readonly description: string; readonly isOptional: boolean }
}

const headersOf = (headers: Readonly<Record<string, string>>) =>
  Object.fromEntries(
    Object.entries(headers).map(([name, description]) => [name, { description, schema: { type: 'string' as const } }]),
  )

const responseOf = ({ description, headers, schema, mediaType }: Answer, ofAll: Described['headers']) => ({
  description,
  headers: headersOf({ ...ofAll, ...headers }),
  ...(schema ? { content: { [mediaType ?? 'application/json']: { schema } } } : {}),
})

const operationOf = (operation: Operation, ofAll: Described['headers']) => {
  const { id, tag, summary, description, pathParams, query, headers, body, answers, isOpen } = operation
  return {
    operationId: id,
    tags: [tag],
    summary,
    ...(description ? { description } : {}),
    ...(isOpen ? { security: [] } : {}),
    requestParams: {
      ...(pathParams ? { path: pathParams } : {}),
      ...(query ? { query } : {}),
      ...(headers ? { header: headers } : {}),
    },
    ...(body
      ? { requestBody: { required: body.required, content: { 'application/json': { schema: body.schema } } } }
      : {}),
    responses: Object.fromEntries(
      Object.entries(answers).map(([status, answer]) => [status, responseOf(answer, ofAll)]),
    ),
  }
}

/** The operations of a service as an OpenAPI 3.1 document. */
export const documentOf = ({ title, description, operations, headers, schemas, bearer }: Described): object => {
  const paths: Record<string, Record<string, ReturnType<typeof operationOf>>> = {}
  for (const operation of operations) {
    paths[operation.path] = { ...paths[operation.path], [operation.method]: operationOf(operation, headers) }
  }
  return createDocument({
    openapi: '3.1.0',
    info: { title, version: '1.0.0', description },
    components: {
      ...(schemas ? { schemas } : {}),
      securitySchemes: { [bearer.name]: { type: 'http', scheme: 'bearer', description: bearer.description } },
    },
    security: [...(bearer.isOptional ? [{}] : []), { [bearer.name]: [] }],
    paths: paths as never,
  })
}
