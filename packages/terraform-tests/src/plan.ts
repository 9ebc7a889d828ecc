import { type Attribute, isNested, type Schema } from './schema.ts'
import { type Attributes, equal, isObject, unknown, type Value } from './value.ts'

/** Defaults first: a plan differs from the prior state only by what a default does not explain. */
const withFallbacks = (schema: Schema, config: Attributes, proposed: Attributes): Attributes =>
  Object.fromEntries(
    Object.entries(schema).map(([name, attribute]) => {
      const stated = config[name] ?? null
      const value = proposed[name] ?? null
      if (stated === null && attribute.fallback !== undefined) return [name, attribute.fallback]
      return [name, inside(attribute, stated, value, withFallbacks)]
    }),
  )

/** A plan that changes anything leaves every computed value open that nothing states, as the provider's framework does. */
const withUnknowns = (schema: Schema, config: Attributes, planned: Attributes, prior: Value = null): Attributes =>
  Object.fromEntries(
    Object.entries(schema).map(([name, attribute]) => {
      const stated = config[name] ?? null
      const value = planned[name] ?? null
      if (stated !== null) return [name, inside(attribute, stated, value, withUnknowns)]
      if (!attribute.computed || attribute.fallback !== undefined) return [name, value]
      if (attribute.computedFor !== undefined && attribute.computedFor !== config.type) return [name, null]
      const before = isObject(prior) ? prior[name] : null
      return [name, attribute.kept && before ? before : unknown]
    }),
  )

function inside(
  { type }: Attribute,
  config: Value,
  value: Value,
  walk: (schema: Schema, config: Attributes, value: Attributes) => Attributes,
): Value {
  if (!isNested(type)) return value
  if (Array.isArray(value) && Array.isArray(config)) {
    return value.map((element, index) => {
      const stated = config[index]
      return isObject(element) && isObject(stated) ? walk(type.attributes, stated, element) : element
    })
  }
  return isObject(value) && isObject(config) ? walk(type.attributes, config, value) : value
}

export function plan(
  schema: Schema,
  prior: Value,
  proposed: Value,
  config: Value,
): { planned: Value; replaces: string[] } {
  if (!isObject(proposed) || !isObject(config)) return { planned: null, replaces: [] }
  const settled = withFallbacks(schema, config, proposed)
  if (!isObject(prior)) return { planned: withUnknowns(schema, config, settled), replaces: [] }
  if (equal(settled, prior)) return { planned: prior, replaces: [] }
  const planned = withUnknowns(schema, config, settled, prior)
  const replaces = Object.keys(schema).filter(name => schema[name]?.replaces && !equal(planned[name], prior[name]))
  return { planned, replaces }
}
