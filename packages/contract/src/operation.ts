import type * as z from 'zod'

export interface Answer {
  readonly description: string
  /** Absent: an answer without a body. */
  readonly schema?: z.ZodType
  /** `application/json` unless said otherwise. */
  readonly mediaType?: string
  /** Headers beside those that every answer of the service has; each with what it means. */
  readonly headers?: Readonly<Record<string, string>>
}

/** One operation of a service. */
export interface Operation {
  readonly id: string
  readonly method: 'get' | 'post' | 'put' | 'delete' | 'options'
  /** With `{name}` for a path parameter, as in OpenAPI. */
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
  readonly body?: { readonly schema: z.ZodType; readonly required: boolean }
  readonly answers: Readonly<Record<number, Answer>>
  /** Of one that anybody may call. */
  readonly isOpen?: boolean
}
