import { nastyText, nastyValue } from './naughty-strings.ts'
import type { Random } from './random.ts'

/** What is used of JSON Schema 2020-12, in which OpenAPI 3.1 is written. */
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

/** Nobody's schema nests deeper. */
const DEEPEST = 8

const textOf = ({ minLength = 0, maxLength }: Schema, random: Random): string => {
  const edges = [minLength, minLength - 1, ...(maxLength === undefined ? [] : [maxLength, maxLength + 1])]
  return random.chance(0.5) ? 'a'.repeat(Math.max(0, random.pick(edges))) : nastyText(random)
}

const numberOf = ({ minimum = 0, maximum = 2 ** 31 }: Schema, random: Random): number =>
  random.pick([minimum, minimum - 1, maximum, maximum + 1, minimum + 1, minimum + 0.5, -maximum])

/**
 * A value that a schema describes, or nearly: at, and one beyond, its bounds. `named` finds the schema of a `$ref`.
 * Patterns are not followed: what is good under them the examples show.
 */
export const sampleOf = (schema: Schema, random: Random, named: (ref: string) => Schema, depth = 0): unknown => {
  if (depth > DEEPEST) return null
  const again = (inner: Schema) => sampleOf(inner, random, named, depth + 1)
  if (schema.$ref !== undefined) return again(named(schema.$ref))
  const shown = [schema.example, schema.default, ...(schema.examples ?? [])].filter(value => value !== undefined)
  if (shown.length > 0 && random.chance(0.7)) return random.pick(shown)
  if (schema.const !== undefined) return schema.const
  if (schema.enum) return random.chance(0.9) ? random.pick(schema.enum) : nastyText(random)
  const choices = schema.anyOf ?? schema.oneOf
  if (choices && choices.length > 0) return again(random.pick(choices))
  if (schema.allOf) return Object.assign({}, ...schema.allOf.map(again))
  const type = Array.isArray(schema.type) ? random.pick(schema.type) : schema.type
  switch (type) {
    case 'object': {
      const required = schema.required ?? []
      const members = Object.entries(schema.properties ?? {}).filter(
        ([name]) => required.includes(name) || random.chance(0.5),
      )
      return Object.fromEntries(members.map(([name, inner]) => [name, again(inner)]))
    }
    case 'array':
      return schema.items ? random.many(random.below(4), () => again(schema.items ?? {})) : []
    case 'string':
      return textOf(schema, random)
    case 'integer':
    case 'number':
      return numberOf(schema, random)
    case 'boolean':
      return random.chance(0.5)
    default:
      return nastyValue(random)
  }
}
