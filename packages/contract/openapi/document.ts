import type * as z from 'zod'
import { createDocument, type ZodOpenApiComponentsObject } from 'zod-openapi'
import type { Operation, ResponseSpec } from '../src/index.ts'

export interface ServiceDescription {
  readonly title: string
  readonly description: string
  readonly operations: Readonly<Record<string, Operation>>
  /** The groups of operations, in their order, with who uses them. */
  readonly tags?: Readonly<Partial<Record<Operation['tag'], string>>>
  /** Descriptions of the headers of every response. */
  readonly headers: Readonly<Record<string, string>>
  /** Additional schemas, which are not bodies. */
  readonly schemas?: Readonly<Record<string, z.ZodType>>
  /** The security scheme of bearer tokens. `isOptional`: one listener requires no token. */
  readonly bearer: { readonly name: string; readonly description: string; readonly isOptional: boolean }
  /** The other security schemes, by name. */
  readonly securitySchemes?: Readonly<
    Record<string, NonNullable<ZodOpenApiComponentsObject['securitySchemes']>[string]>
  >
}

const toHeaders = (headers: Readonly<Record<string, string>>) =>
  Object.fromEntries(
    Object.entries(headers).map(([name, description]) => [name, { description, schema: { type: 'string' as const } }]),
  )

/** The body of a link is an extension: openapi-generator rejects documents whose links have a `requestBody` that is an object. */
const toLinks = (links: NonNullable<ResponseSpec['links']>) =>
  Object.fromEntries(
    Object.entries(links).map(([name, { requestBody, ...link }]) => [
      name,
      { ...link, ...(requestBody ? { 'x-request-body': requestBody } : {}) },
    ]),
  )

const toResponse = (
  { description, headers, schema, mediaType, links }: ResponseSpec,
  commonHeaders: ServiceDescription['headers'],
) => ({
  description,
  headers: toHeaders({ ...commonHeaders, ...headers }),
  ...(schema ? { content: { [mediaType ?? 'application/json']: { schema } } } : {}),
  ...(links ? { links: toLinks(links) } : {}),
})

type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json }

const isObject = (value: Json): value is { readonly [key: string]: Json } =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Replaces the mark `nullable` of a schema, which OpenAPI 3.1 does not have, with the type `null`. */
const acceptNull = (schema: { readonly [key: string]: Json }): Json => {
  const { nullable, ...rest } = schema
  if (nullable !== true) return rest
  const { type } = rest
  return type === undefined || rest.enum
    ? { anyOf: [rest, { type: 'null' }] }
    : { ...rest, type: [...[type].flat(), 'null'] }
}

/** zod has one type of numbers. Generators make decimals of it, and some of them then make invalid code of whole values. */
const toIntegers = (schema: { readonly [key: string]: Json }): { readonly [key: string]: Json } => {
  const values = Array.isArray(schema.enum) ? schema.enum : [schema.const]
  return schema.type === 'number' && values.every(Number.isInteger) ? { ...schema, type: 'integer' } : schema
}

const completeSchemas = (value: Json): Json => {
  if (Array.isArray(value)) return value.map(completeSchemas)
  if (!isObject(value)) return value
  const inner = Object.entries(value).map(([key, member]) => [key, completeSchemas(member)])
  return acceptNull(toIntegers(Object.fromEntries(inner)))
}

const toOperationObject = (operation: Operation, commonHeaders: ServiceDescription['headers']) => {
  const { id, tag, summary, description, pathParams, query, headers, body, responses, isPublic, security } = operation
  return {
    operationId: id,
    tags: [tag],
    summary,
    ...(description ? { description } : {}),
    ...(isPublic ? { security: [] } : security ? { security: security.map(name => ({ [name]: [] })) } : {}),
    requestParams: {
      ...(pathParams ? { path: pathParams } : {}),
      ...(query ? { query } : {}),
      ...(headers ? { header: headers } : {}),
    },
    ...(body
      ? {
          requestBody: {
            required: body.required,
            content: { [body.mediaType ?? 'application/json']: { schema: body.schema } },
          },
        }
      : {}),
    responses: Object.fromEntries(
      Object.entries(responses).map(([status, response]) => [status, toResponse(response, commonHeaders)]),
    ),
  }
}

/** Generates the OpenAPI 3.1 document of a service. */
export const createOpenApiDocument = ({
  title,
  description,
  operations,
  tags = {},
  headers,
  schemas,
  bearer,
  securitySchemes,
}: ServiceDescription): object => {
  const paths: Record<string, Record<string, ReturnType<typeof toOperationObject>>> = {}
  for (const operation of Object.values(operations)) {
    paths[operation.path] = { ...paths[operation.path], [operation.method]: toOperationObject(operation, headers) }
  }
  const document = createDocument({
    openapi: '3.1.0',
    info: { title, version: '1.0.0', description },
    tags: Object.entries(tags).map(([name, description]) => ({ name, description })),
    components: {
      ...(schemas ? { schemas } : {}),
      securitySchemes: {
        [bearer.name]: { type: 'http', scheme: 'bearer', description: bearer.description },
        ...securitySchemes,
      },
    },
    security: [...(bearer.isOptional ? [{}] : []), { [bearer.name]: [] }],
    paths: paths as never,
  })
  return completeSchemas(JSON.parse(JSON.stringify(document))) as object
}
