import type { Operation } from '@pool/contract'
import type * as z from 'zod'

// The types of a call, derived from the entry of its operation in the contract.

/** Spells out the fields of a type, so that an editor shows them. */
export type Flat<Type> = { [Key in keyof Type]: Type[Key] } & {}

type SchemaOfResponse<Response> = Response extends { readonly schema: infer Schema extends z.ZodType } ? Schema : never

/** Media types whose body is read piece by piece. */
export type StreamMediaType = 'text/event-stream' | 'application/x-ndjson'

type BodyOfResponse<Response> = Response extends { readonly mediaType: StreamMediaType }
  ? AsyncGenerator<Uint8Array, void>
  : [SchemaOfResponse<Response>] extends [never]
    ? undefined
    : z.output<SchemaOfResponse<Response>>

/** A response that is a result: its status determines the type of its body. */
export type OperationResult<Op extends Operation> = {
  [Status in keyof Op['results'] & number]: {
    readonly status: Status
    readonly headers: Headers
    readonly body: BodyOfResponse<Op['results'][Status]>
  }
}[keyof Op['results'] & number]

/** What a client sends for a schema. Of a preprocessed schema, the inner one: absence needs no second spelling. */
type InputOf<Schema> =
  Schema extends z.ZodOptional<infer Inner>
    ? InputOf<Inner> | undefined
    : Schema extends z.ZodPipe<z.core.$ZodTransform, infer Inner>
      ? InputOf<Inner>
      : Schema extends z.ZodObject<infer Shape>
        ? InputOfShape<Shape>
        : Schema extends z.core.$ZodType
          ? z.input<Schema>
          : never

type OptionalKey<Shape> = { [Key in keyof Shape]: undefined extends InputOf<Shape[Key]> ? Key : never }[keyof Shape]

type InputOfShape<Shape> = Flat<
  { [Key in Exclude<keyof Shape, OptionalKey<Shape>>]: InputOf<Shape[Key]> } & {
    [Key in OptionalKey<Shape>]?: InputOf<Shape[Key]> | undefined
  }
>

/** Text in a query whose meaning is a number or a boolean is given as such. */
type QueryValue<Schema, Input = InputOf<Schema>, Output = z.output<Schema & z.core.$ZodType>> =
  | (undefined extends Input ? undefined : never)
  | (Exclude<Output, undefined> extends number
      ? number
      : Exclude<Input, undefined> extends 'true' | 'false'
        ? boolean
        : Exclude<Input, undefined>)

type QueryOfShape<Shape> = Flat<
  { [Key in Exclude<keyof Shape, OptionalKey<Shape>>]: QueryValue<Shape[Key]> } & {
    [Key in OptionalKey<Shape>]?: QueryValue<Shape[Key]> | undefined
  }
>

type ShapeOf<Schema> = Schema extends z.ZodObject<infer Shape> ? Shape : Record<never, never>

/** The fields of the path of an operation. */
export type PathOf<Op extends Operation> = InputOfShape<ShapeOf<Op['pathParams']>>
/** The fields of the query of an operation. */
export type QueryOf<Op extends Operation> = QueryOfShape<ShapeOf<Op['query']>>
/** The JSON body of an operation. */
export type BodyOf<Op extends Operation> = Op extends { readonly body: { readonly schema: infer Schema } }
  ? InputOf<Schema>
  : Record<never, never>
