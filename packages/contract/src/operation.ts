import type * as z from 'zod'

/** How a later request uses this response (OpenAPI 3.1, Link Object). */
export interface LinkSpec {
  /** The later operation, of the same service. */
  readonly operationId: string
  readonly description?: string
  /** Runtime expressions by parameter, prefixed with its place: `path.id`. */
  readonly parameters?: Readonly<Record<string, string>>
  /** Runtime expressions by field of the body; in the document, the extension `x-request-body`. */
  readonly requestBody?: Readonly<Record<string, unknown>>
}

export interface ResponseSpec {
  readonly description: string
  /** Absent: the response has no body. */
  readonly schema?: z.ZodType
  /** `application/json` by default. */
  readonly mediaType?: string
  /** Descriptions of headers, in addition to those of every response of the service. */
  readonly headers?: Readonly<Record<string, string>>
  /** By name. */
  readonly links?: Readonly<Record<string, LinkSpec>>
}

/** One operation of a service, from which its OpenAPI document is generated. */
export interface Operation {
  readonly id: string
  readonly method: 'get' | 'post' | 'put' | 'delete' | 'options'
  /** With `{name}` for path parameters, as in OpenAPI. */
  readonly path: string
  readonly tag:
    | 'Allocation'
    | 'Credentials'
    | 'Deployments'
    | 'Operator'
    | 'Health'
    | 'Description'
    | 'Lease'
    | 'Copies'
  readonly summary: string
  readonly description?: string
  readonly pathParams?: z.ZodObject
  readonly query?: z.ZodObject
  readonly headers?: z.ZodObject
  readonly body?: {
    readonly schema: z.ZodType
    readonly required: boolean
    /** `application/json` by default. */
    readonly mediaType?: string
  }
  readonly responses: Readonly<Record<number, ResponseSpec>>
  /** True: no token is needed. */
  readonly isPublic?: boolean
}
