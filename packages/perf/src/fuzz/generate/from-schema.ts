import fc from 'fast-check'
import { naughtyText, naughtyValue } from './naughty-strings.ts'

/** The used part of JSON Schema 2020-12, the schema language of OpenAPI 3.1. */
export interface Schema {
  readonly $ref?: string
  readonly type?: string | readonly string[]
  readonly enum?: readonly unknown[]
  readonly const?: unknown
  readonly anyOf?: readonly Schema[]
  readonly oneOf?: readonly Schema[]
  readonly allOf?: readonly Schema[]
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  readonly items?: Schema
  readonly minimum?: number
  readonly maximum?: number
  readonly minLength?: number
  readonly maxLength?: number
  readonly example?: unknown
  readonly examples?: readonly unknown[]
  readonly default?: unknown
}

/** No schema of the project nests deeper. */
const MAX_DEPTH = 8

const toText = ({ minLength = 0, maxLength }: Schema): fc.Arbitrary<string> => {
  const lengths = [minLength, minLength - 1, ...(maxLength === undefined ? [] : [maxLength, maxLength + 1])]
  return fc.oneof(fc.constantFrom(...lengths.map(length => 'a'.repeat(Math.max(0, length)))), naughtyText)
}

const toNumber = ({ minimum = 0, maximum = 2 ** 31 }: Schema): fc.Arbitrary<number> =>
  fc.constantFrom(minimum, minimum - 1, maximum, maximum + 1, minimum + 1, minimum + 0.5, -maximum)

/**
 * Values that a schema describes, at its bounds, or one beyond them. `resolve` finds the schema of a `$ref`. Patterns are
 * not followed: the examples match them.
 */
export const schemaArbitrary = (schema: Schema, resolve: (ref: string) => Schema, depth = 0): fc.Arbitrary<unknown> => {
  if (depth > MAX_DEPTH) return fc.constant(null)
  const nested = (inner: Schema) => schemaArbitrary(inner, resolve, depth + 1)
  if (schema.$ref !== undefined) return nested(resolve(schema.$ref))
  const examples = [schema.example, schema.default, ...(schema.examples ?? [])].filter(value => value !== undefined)
  const described = describedValues(schema, nested)
  return examples.length === 0
    ? described
    : fc.oneof({ weight: 7, arbitrary: fc.constantFrom(...examples) }, { weight: 3, arbitrary: described })
}

const describedValues = (schema: Schema, nested: (inner: Schema) => fc.Arbitrary<unknown>): fc.Arbitrary<unknown> => {
  if (schema.const !== undefined) return fc.constant(schema.const)
  if (schema.enum)
    return fc.oneof({ weight: 9, arbitrary: fc.constantFrom(...schema.enum) }, { weight: 1, arbitrary: naughtyText })
  const alternatives = schema.anyOf ?? schema.oneOf ?? []
  if (alternatives.length > 0) return fc.oneof(...alternatives.map(nested))
  if (schema.allOf) return fc.tuple(...schema.allOf.map(nested)).map(parts => Object.assign({}, ...parts))
  const types = typeof schema.type === 'string' ? [schema.type] : (schema.type ?? ['any'])
  return fc.oneof(...types.map(type => valuesOfType(type, schema, nested)))
}

const valuesOfType = (
  type: string,
  schema: Schema,
  nested: (inner: Schema) => fc.Arbitrary<unknown>,
): fc.Arbitrary<unknown> => {
  switch (type) {
    case 'object': {
      const members = Object.entries(schema.properties ?? {}).map(([name, inner]) => [name, nested(inner)] as const)
      return fc.record(Object.fromEntries(members), {
        requiredKeys: [...(schema.required ?? [])],
        noNullPrototype: true,
      })
    }
    case 'array':
      return schema.items ? fc.array(nested(schema.items), { maxLength: 3 }) : fc.constant([])
    case 'string':
      return toText(schema)
    case 'integer':
    case 'number':
      return toNumber(schema)
    case 'boolean':
      return fc.boolean()
    default:
      return naughtyValue
  }
}
