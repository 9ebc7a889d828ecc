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

export interface DocumentedAnswer {
  readonly description: string
  /** Null: no body. */
  readonly mediaType: string | null
  /** Null: nothing to compare the body with. */
  readonly validate: ValidateFunction | null
}

export interface DocumentedOperation {
  readonly id: string
  readonly method: string
  readonly path: string
  /** A path of it, as it comes. */
  readonly pattern: RegExp
  readonly parameters: readonly Parameter[]
  readonly body: Schema | null
  readonly answers: ReadonlyMap<number, DocumentedAnswer>
}

export interface ServiceDocument {
  readonly operations: readonly DocumentedOperation[]
  readonly schema: (ref: string) => Schema
  /** Whether this is the error body of the service. */
  readonly isProblem: (body: unknown) => boolean
}

export interface DocumentOptions {
  readonly problem: string
  /** Path parameters that hold slashes. */
  readonly greedy?: readonly string[]
}

const patternOf = (path: string, greedy: readonly string[]): RegExp =>
  new RegExp(
    `^${path.replaceAll('.', '\\.').replace(/\{([^}]+)\}/g, (_, name: string) => (greedy.includes(name) ? '.+' : '[^/]+'))}$`,
    's',
  )

/** An OpenAPI 3.1 document, its schemas compiled as what they are: JSON Schema 2020-12. */
export const readDocument = (document: object, { problem, greedy = [] }: DocumentOptions): ServiceDocument => {
  // A document that is not as it should be is told by its own test, with zod's types.
  const { paths, components } = JSON.parse(JSON.stringify(document)) as OpenApi
  // Formats come with a pattern of their own; unknown keywords are OpenAPI's.
  const ajv = new Ajv2020({ strict: false, validateFormats: false })
  ajv.addSchema({ $id: 'document', components })
  const compiled = (schema: object): ValidateFunction =>
    ajv.compile(JSON.parse(JSON.stringify(schema).replaceAll('"#/components/', '"document#/components/')))
  const answerOf = ({ description, content }: DescribedOperation['responses'][string]): DocumentedAnswer => {
    const [mediaType, body] = Object.entries(content ?? {})[0] ?? []
    const isJson = mediaType === 'application/json'
    return { description, mediaType: mediaType ?? null, validate: isJson && body ? compiled(body.schema) : null }
  }
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, described]) => ({
      id: described.operationId,
      method: method.toUpperCase(),
      path,
      pattern: patternOf(path, greedy),
      parameters: described.parameters ?? [],
      body: described.requestBody?.content['application/json']?.schema ?? null,
      answers: new Map(Object.entries(described.responses).map(([status, one]) => [Number(status), answerOf(one)])),
    })),
  )
  const isProblem = compiled({ $ref: `#/components/schemas/${problem}` })
  return {
    operations,
    schema: ref => components.schemas[ref.slice(ref.lastIndexOf('/') + 1)] ?? {},
    isProblem: body => isProblem(body),
  }
}
