import { type Attributes, isObject, type Value } from './value.ts'

/**
 * What an attribute is to Terraform. `kept` and `replaces` are the plan modifiers of the real provider: the known value
 * of a computed attribute is kept through an update; a change of it makes a new resource.
 */
export interface Attribute {
  readonly type: 'string' | 'bool' | 'number' | readonly ['list' | 'set', 'string'] | Nested
  readonly required?: boolean
  readonly optional?: boolean
  readonly computed?: boolean
  readonly sensitive?: boolean
  readonly kept?: boolean
  readonly replaces?: boolean
  readonly fallback?: boolean | string
  /** Computed for elements of this `type` only; null in the others. */
  readonly computedFor?: string
}

export interface Nested {
  readonly nesting: 'single' | 'list'
  readonly attributes: Schema
}

export type Schema = { readonly [name: string]: Attribute }

export const isNested = (type: Attribute['type']): type is Nested => typeof type === 'object' && 'nesting' in type

/** Every attribute of the schema has to be on the wire, if only as null. */
export const complete = (schema: Schema, state: Attributes): Attributes =>
  Object.fromEntries(
    Object.entries(schema).map(([name, { type }]) => {
      const value = state[name] ?? null
      if (!isNested(type)) return [name, value]
      const inner = (element: Value): Value => (isObject(element) ? complete(type.attributes, element) : element)
      return [name, Array.isArray(value) ? value.map(inner) : inner(value)]
    }),
  )

const attributesToWire = (schema: Schema): object[] =>
  Object.entries(schema).map(([name, { type, required, optional, computed, sensitive }]) => ({
    name,
    required,
    optional,
    computed,
    sensitive,
    ...(isNested(type)
      ? { nested_type: { nesting: type.nesting === 'single' ? 1 : 2, attributes: attributesToWire(type.attributes) } }
      : { type: Buffer.from(JSON.stringify(type)) }),
  }))

export const schemaToWire = (schema: Schema): object => ({
  version: 0,
  block: { attributes: attributesToWire(schema) },
})
