import { decode, ExtensionCodec, encode } from '@msgpack/msgpack'

/** A value that is unknown until apply. */
export class Unknown {}
export const unknown = new Unknown()

export type Value = null | boolean | number | string | Unknown | Value[] | { [name: string]: Value }
export type Attributes = { [name: string]: Value }

export const isObject = (value: Value | undefined): value is Attributes =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Unknown)

export const isText = (value: Value | undefined): value is string => typeof value === 'string'

const codec = new ExtensionCodec()
codec.register({
  type: 0,
  encode: value => (value instanceof Unknown ? new Uint8Array([0]) : null),
  decode: () => unknown,
})
// An unknown value with refinements, for example that it is not null.
codec.register({ type: 12, encode: () => null, decode: () => unknown })

export const toWire = (value: Value): { msgpack: Uint8Array } => ({ msgpack: encode(value, { extensionCodec: codec }) })

export const fromWire = (wire: { msgpack: Uint8Array } | null): Value =>
  wire === null || wire.msgpack.length === 0 ? null : (decode(wire.msgpack, { extensionCodec: codec }) as Value)

export function isEqual(left: Value | undefined, right: Value | undefined): boolean {
  if (left instanceof Unknown || right instanceof Unknown) return false
  if (Array.isArray(left) && Array.isArray(right)) {
    return left.length === right.length && left.every((element, index) => isEqual(element, right[index]))
  }
  if (isObject(left) && isObject(right)) {
    return [...new Set([...Object.keys(left), ...Object.keys(right)])].every(name => isEqual(left[name], right[name]))
  }
  return left === right
}

/**
 * An attribute. `keepsValue` and `replaces` are plan modifiers of the real provider: an update keeps the known value of a
 * computed attribute; a change of the attribute replaces the resource, with `if-configured` only if the configuration sets it.
 */
export interface Attribute {
  readonly type: 'string' | 'bool' | 'number' | readonly ['list' | 'set' | 'map', 'string' | 'number'] | Nested
  readonly required?: boolean
  readonly optional?: boolean
  readonly computed?: boolean
  readonly sensitive?: boolean
  readonly keepsValue?: boolean
  readonly replaces?: boolean | 'if-configured'
  readonly default?: boolean | string
  /** Computed only for elements of this `type`; null in others. */
  readonly computedFor?: string
}

export interface Nested {
  /** `blocks`: a set of nested blocks, which no list of objects can be assigned to. */
  readonly nesting: 'single' | 'list' | 'blocks'
  readonly attributes: Schema
}

export type Schema = { readonly [name: string]: Attribute }

/** The numbers of the plugin protocol. */
const NESTING = { single: 1, list: 2, blocks: 3 } as const

/** The schema with every attribute computed and nothing else, as the results of data sources have it. */
export const allComputed = (schema: Schema): Schema =>
  Object.fromEntries(
    Object.entries(schema).map(([name, { type }]) => [
      name,
      {
        type: isNested(type) ? { nesting: type.nesting, attributes: allComputed(type.attributes) } : type,
        computed: true,
      },
    ]),
  )

const isNested = (type: Attribute['type']): type is Nested => typeof type === 'object' && 'nesting' in type

/** The protocol requires every attribute of the schema, if necessary as null. */
export const fillMissingAttributes = (schema: Schema, state: Attributes): Attributes =>
  Object.fromEntries(
    Object.entries(schema).map(([name, { type }]) => {
      const value = state[name] ?? null
      if (!isNested(type)) return [name, value]
      const inner = (element: Value): Value =>
        isObject(element) ? fillMissingAttributes(type.attributes, element) : element
      return [name, Array.isArray(value) ? value.map(inner) : inner(value)]
    }),
  )

const isBlock = (type: Attribute['type']): type is Nested => isNested(type) && type.nesting === 'blocks'

const blockToWire = (schema: Schema): object => {
  const [blocks, attributes] = [true, false].map(wanted =>
    Object.entries(schema).filter(([, { type }]) => isBlock(type) === wanted),
  )
  return {
    attributes: attributesToWire(Object.fromEntries(attributes ?? [])),
    block_types: blocks?.map(([type_name, { type }]) => ({
      type_name,
      nesting: NESTING.blocks,
      block: blockToWire(isNested(type) ? type.attributes : {}),
    })),
  }
}

const attributesToWire = (schema: Schema): object[] =>
  Object.entries(schema).map(([name, { type, required, optional, computed, sensitive }]) => ({
    name,
    required,
    optional,
    computed,
    sensitive,
    ...(isNested(type)
      ? { nested_type: { nesting: NESTING[type.nesting], attributes: attributesToWire(type.attributes) } }
      : { type: Buffer.from(JSON.stringify(type)) }),
  }))

export const schemaToWire = (schema: Schema, version = 0): object => ({
  version,
  block: blockToWire(schema),
})

/** Applies defaults first, so that they do not appear as changes. */
const applyDefaults = (schema: Schema, config: Attributes, proposed: Attributes): Attributes =>
  Object.fromEntries(
    Object.entries(schema).map(([name, attribute]) => {
      const configured = config[name] ?? null
      const value = proposed[name] ?? null
      if (configured === null && attribute.default !== undefined) return [name, attribute.default]
      return [name, mapNested(attribute, configured, value, applyDefaults)]
    }),
  )

/** A plan with changes marks every unset computed value as unknown, as the plugin framework does. */
const markUnknowns = (schema: Schema, config: Attributes, planned: Attributes, prior: Value = null): Attributes =>
  Object.fromEntries(
    Object.entries(schema).map(([name, attribute]) => {
      const configured = config[name] ?? null
      const value = planned[name] ?? null
      if (configured !== null) return [name, mapNested(attribute, configured, value, markUnknowns)]
      if (!attribute.computed || attribute.default !== undefined) return [name, value]
      if (attribute.computedFor !== undefined && attribute.computedFor !== config.type) return [name, null]
      const before = isObject(prior) ? prior[name] : null
      return [name, attribute.keepsValue && before ? before : unknown]
    }),
  )

function mapNested(
  { type }: Attribute,
  config: Value,
  value: Value,
  walk: (schema: Schema, config: Attributes, value: Attributes) => Attributes,
): Value {
  if (!isNested(type)) return value
  if (Array.isArray(value) && Array.isArray(config)) {
    return value.map((element, index) => {
      const configured = config[index]
      return isObject(element) && isObject(configured) ? walk(type.attributes, configured, element) : element
    })
  }
  return isObject(value) && isObject(config) ? walk(type.attributes, config, value) : value
}

/** Every attribute of the configuration that only the provider sets. `path` is its attribute of the resource. */
export const findReadOnly = (schema: Schema, config: Attributes, parent?: string): { path: string; detail: string }[] =>
  Object.entries(schema).flatMap(([name, { type, computed, optional }]) => {
    const value = config[name] ?? null
    if (value === null) return []
    const path = parent ?? name
    if (computed && !optional) return [{ path, detail: `Can't configure a value for "${name}".` }]
    if (!isNested(type)) return []
    return [value].flat().flatMap(element => (isObject(element) ? findReadOnly(type.attributes, element, path) : []))
  })

/** Null in place of the values that a provider with legacy types does not tell from it. */
const dropZeros = (attributes: Attributes): Attributes =>
  Object.fromEntries(
    Object.entries(attributes).map(([name, value]) => [
      name,
      value === false || value === 0 || value === '' ? null : value,
    ]),
  )

export function planChange(
  schema: Schema,
  prior: Value,
  proposed: Value,
  config: Value,
  hasLegacyTypes = false,
): { planned: Value; replaces: string[] } {
  if (!isObject(proposed) || !isObject(config)) return { planned: null, replaces: [] }
  const withDefaults = applyDefaults(schema, config, proposed)
  if (!isObject(prior)) return { planned: markUnknowns(schema, config, withDefaults), replaces: [] }
  const [before, after] = hasLegacyTypes ? [dropZeros(prior), dropZeros(withDefaults)] : [prior, withDefaults]
  if (isEqual(before, after)) return { planned: prior, replaces: [] }
  const planned = markUnknowns(schema, config, withDefaults, prior)
  const replaces = Object.entries(schema).flatMap(([name, { replaces }]) =>
    (replaces === true || (replaces === 'if-configured' && (config[name] ?? null) !== null)) &&
    !isEqual(planned[name], prior[name])
      ? [name]
      : [],
  )
  return { planned, replaces }
}
