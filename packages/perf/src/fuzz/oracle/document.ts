import type { ValidateFunction } from 'ajv'
import { Ajv2020 } from 'ajv/dist/2020.js'
import type { Schema } from '../generate/from-schema.ts'

interface Parameter {
  readonly name: string
  readonly in: 'path' | 'query' | 'header'
  readonly schema: Schema
}

interface Content {
  readonly [mediaType: string]: { readonly schema: object }
}

interface DescribedOperation {
  readonly operationId: string
  readonly parameters?: readonly Parameter[]
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: Schema }>> }
  readonly responses: Readonly<Record<string, { readonly description: string; readonly content?: Content }>>
}

interface OpenApi {
  readonly paths: Readonly<Record<string, Readonly<Record<string, DescribedOperation>>>>
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> }
}

export interface DocumentedResponse {
  readonly description: string
  /** Null: no body. */
  readonly mediaType: string | null
  /** Null: the body has no JSON schema. */
  readonly validate: ValidateFunction | null
}

export interface DocumentedOperation {
  readonly id: string
  readonly method: string
  readonly path: string
  /** Matches its paths. */
  readonly pattern: RegExp
  readonly parameters: readonly Parameter[]
  readonly body: Schema | null
  readonly responses: ReadonlyMap<number, DocumentedResponse>
}

export interface ServiceDocument {
  readonly operations: readonly DocumentedOperation[]
  readonly schema: (ref: string) => Schema
  /** Whether the body has the service's common error shape. */
  readonly isProblem: (body: unknown) => boolean
}

export interface DocumentOptions {
  readonly problem: string
  /** Path parameters that may contain slashes. */
  readonly greedy?: readonly string[]
}

const toPattern = (path: string, greedy: readonly string[]): RegExp =>
  new RegExp(
    `^${path.replaceAll('.', '\\.').replace(/\{([^}]+)\}/g, (_, name: string) => (greedy.includes(name) ? '.+' : '[^/]+'))}$`,
    's',
  )

/** Reads an OpenAPI 3.1 document and compiles its schemas, which are JSON Schema 2020-12. */
export const readDocument = (document: object, { problem, greedy = [] }: DocumentOptions): ServiceDocument => {
  // Another test checks that the document is valid OpenAPI.
  const { paths, components } = JSON.parse(JSON.stringify(document)) as OpenApi
  // Every format has a pattern too. Unknown keywords are OpenAPI's.
  const ajv = new Ajv2020({ strict: false, validateFormats: false })
  ajv.addSchema({ $id: 'document', components })
  const compile = (schema: object): ValidateFunction =>
    ajv.compile(JSON.parse(JSON.stringify(schema).replaceAll('"#/components/', '"document#/components/')))
  const readResponse = ({ description, content }: DescribedOperation['responses'][string]): DocumentedResponse => {
    const [mediaType, body] = Object.entries(content ?? {})[0] ?? []
    const isJson = mediaType === 'application/json'
    return { description, mediaType: mediaType ?? null, validate: isJson && body ? compile(body.schema) : null }
  }
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, described]) => ({
      id: described.operationId,
      method: method.toUpperCase(),
      path,
      pattern: toPattern(path, greedy),
      parameters: described.parameters ?? [],
      body: described.requestBody?.content['application/json']?.schema ?? null,
      responses: new Map(
        Object.entries(described.responses).map(([status, response]) => [Number(status), readResponse(response)]),
      ),
    })),
  )
  const isProblem = compile({ $ref: `#/components/schemas/${problem}` })
  return {
    operations,
    schema: ref => components.schemas[ref.slice(ref.lastIndexOf('/') + 1)] ?? {},
    isProblem: body => isProblem(body),
  }
}
