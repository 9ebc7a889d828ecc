type Json = null | boolean | number | string | readonly Json[] | JsonObject
interface JsonObject {
  readonly [key: string]: Json
}

/** What a client may depend on: the requests that it sends, or the responses that it reads. */
type Direction = 'request' | 'response'

const METHODS = ['get', 'put', 'post', 'delete', 'options', 'head', 'patch'] as const

/** A request that met the old limit violates a new one that is smaller, or larger. */
const UPPER_LIMITS = ['maximum', 'maxLength', 'maxItems'] as const
const LOWER_LIMITS = ['minimum', 'minLength', 'minItems'] as const
/** A new or another value is a new rule. */
const RULES = ['pattern', 'format', 'uniqueItems', 'const'] as const

const isObject = (value: Json | undefined): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
const toObject = (value: Json | undefined): JsonObject => (isObject(value) ? value : {})
const toList = (value: Json | undefined): readonly Json[] =>
  Array.isArray(value) ? value : value === undefined ? [] : [value as Json]
const toTexts = (value: Json | undefined): readonly string[] => toList(value).map(String)

const without = (values: readonly string[], others: readonly string[]): readonly string[] =>
  values.filter(value => !others.includes(value))

const createSchemaComparison = (before: JsonObject, after: JsonObject) => {
  /** The pairs of references that were compared: a change of a shared schema is reported at its first use. */
  const compared = new Set<string>()

  const resolve = (document: JsonObject, schema: Json | undefined): JsonObject => {
    const { $ref } = toObject(schema)
    if (typeof $ref !== 'string') return toObject(schema)
    const name = $ref.slice($ref.lastIndexOf('/') + 1)
    return toObject(toObject(toObject(document.components).schemas)[name])
  }

  const compareRules = (place: string, from: JsonObject, to: JsonObject): readonly string[] => [
    ...UPPER_LIMITS.filter(rule => to[rule] !== undefined && Number(to[rule]) < Number(from[rule] ?? Infinity)).map(
      rule => `${place}: ${rule} is smaller`,
    ),
    ...LOWER_LIMITS.filter(rule => to[rule] !== undefined && Number(to[rule]) > Number(from[rule] ?? -Infinity)).map(
      rule => `${place}: ${rule} is larger`,
    ),
    ...RULES.filter(rule => to[rule] !== undefined && to[rule] !== from[rule]).map(rule => `${place}: new ${rule}`),
  ]

  const compareTypes = (place: string, from: JsonObject, to: JsonObject, direction: Direction): readonly string[] => {
    const [fromTypes, toTypes] = [toTexts(from.type), toTexts(to.type)]
    if (direction === 'request') {
      const lost = toTypes.length === 0 ? [] : without(fromTypes, toTypes)
      const values = to.enum === undefined ? [] : without(toTexts(from.enum), toTexts(to.enum))
      const isNarrowed = from.enum === undefined && to.enum !== undefined
      return [
        ...lost.map(type => `${place}: the type ${type} is no longer accepted`),
        ...(fromTypes.length === 0 && toTypes.length > 0 && Object.keys(from).length === 0
          ? [`${place}: only ${toTypes.join(', ')} is accepted`]
          : []),
        ...values.map(value => `${place}: the value ${value} is no longer accepted`),
        ...(isNarrowed ? [`${place}: new enum`] : []),
      ]
    }
    return fromTypes.length === 0 ? [] : without(toTypes, fromTypes).map(type => `${place}: new type ${type}`)
  }

  const compareProperties = (
    place: string,
    from: JsonObject,
    to: JsonObject,
    direction: Direction,
  ): readonly string[] => {
    const [fromFields, toFields] = [toObject(from.properties), toObject(to.properties)]
    const required =
      direction === 'request'
        ? without(toTexts(to.required), toTexts(from.required)).map(name => `${place}.${name}: is now required`)
        : without(toTexts(from.required), toTexts(to.required)).map(name => `${place}.${name}: may now be absent`)
    return [
      ...without(Object.keys(fromFields), Object.keys(toFields)).map(name => `${place}.${name}: removed`),
      ...required,
      ...Object.keys(fromFields)
        .filter(name => name in toFields)
        .flatMap(name => compare(`${place}.${name}`, fromFields[name], toFields[name], direction)),
    ]
  }

  /** Alternatives are compared in their order. A response may lose an alternative, a request may gain one. */
  const compareAlternatives = (
    place: string,
    from: JsonObject,
    to: JsonObject,
    direction: Direction,
  ): readonly string[] =>
    (['anyOf', 'oneOf', 'allOf'] as const).flatMap(keyword => {
      const [old, current] = [toList(from[keyword]), toList(to[keyword])]
      const count =
        direction === 'request' && current.length < old.length
          ? [`${place}: fewer alternatives`]
          : direction === 'response' && current.length > old.length
            ? [`${place}: more alternatives`]
            : []
      const common = Math.min(old.length, current.length)
      return [
        ...count,
        ...old
          .slice(0, common)
          .flatMap((alternative, at) => compare(`${place}(${at})`, alternative, current[at], direction)),
      ]
    })

  const compare = (
    place: string,
    oldSchema: Json | undefined,
    newSchema: Json | undefined,
    direction: Direction,
  ): readonly string[] => {
    const [oldRef, newRef] = [toObject(oldSchema).$ref, toObject(newSchema).$ref]
    if (oldRef !== undefined && newRef !== undefined) {
      const pair = `${direction} ${oldRef} ${newRef}`
      if (compared.has(pair)) return []
      compared.add(pair)
    }
    const [from, to] = [resolve(before, oldSchema), resolve(after, newSchema)]
    return [
      ...compareTypes(place, from, to, direction),
      ...(direction === 'request' ? compareRules(place, from, to) : []),
      ...compareProperties(place, from, to, direction),
      ...compareAlternatives(place, from, to, direction),
      ...(isObject(from.items) || isObject(to.items)
        ? compare(`${place}[]`, from.items ?? {}, to.items ?? {}, direction)
        : []),
    ]
  }
  return compare
}

type Compare = ReturnType<typeof createSchemaComparison>

const compareContent = (
  place: string,
  from: JsonObject,
  to: JsonObject,
  direction: Direction,
  compare: Compare,
): readonly string[] => {
  const [old, current] = [toObject(from.content), toObject(to.content)]
  return Object.keys(old).flatMap(mediaType =>
    mediaType in current
      ? compare(place, toObject(old[mediaType]).schema ?? {}, toObject(current[mediaType]).schema ?? {}, direction)
      : [`${place}: the media type ${mediaType} is removed`],
  )
}

const listParameters = (operation: JsonObject): ReadonlyMap<string, JsonObject> =>
  new Map(toList(operation.parameters).map(value => [`${toObject(value).in} ${toObject(value).name}`, toObject(value)]))

const compareParameters = (place: string, from: JsonObject, to: JsonObject, compare: Compare): readonly string[] => {
  const [old, current] = [listParameters(from), listParameters(to)]
  const added = [...current].filter(([name, { required }]) => required === true && old.get(name)?.required !== true)
  return [
    ...without([...old.keys()], [...current.keys()]).map(name => `${place} ${name}: removed`),
    ...added.map(([name]) => `${place} ${name}: is now required`),
    ...[...old].flatMap(([name, parameter]) =>
      current.has(name) ? compare(`${place} ${name}`, parameter.schema, current.get(name)?.schema, 'request') : [],
    ),
  ]
}

const compareResponses = (place: string, from: JsonObject, to: JsonObject, compare: Compare): readonly string[] => {
  const [old, current] = [toObject(from.responses), toObject(to.responses)]
  return Object.entries(old).flatMap(([status, response]) => {
    const [before, after] = [toObject(response), current[status]]
    if (!isObject(after)) return [`${place} ${status}: removed`]
    const headers = without(Object.keys(toObject(before.headers)), Object.keys(toObject(after.headers)))
    return [
      ...headers.map(name => `${place} ${status}: the header ${name} is removed`),
      ...compareContent(`${place} ${status}`, before, after, 'response', compare),
    ]
  })
}

/** The alternatives, of which `{}` needs no token. An empty list is the same. */
const listSecurity = (document: JsonObject, operation: JsonObject): readonly string[] => {
  const alternatives = toList(operation.security ?? document.security).map(value => JSON.stringify(value))
  return alternatives.length === 0 ? ['{}'] : alternatives
}

const compareBody = (place: string, from: JsonObject, to: JsonObject, compare: Compare): readonly string[] => {
  const [old, current] = [toObject(from.requestBody), toObject(to.requestBody)]
  if (!isObject(to.requestBody)) return isObject(from.requestBody) ? [`${place}: the body is removed`] : []
  return [
    ...(current.required === true && old.required !== true ? [`${place}: the body is now required`] : []),
    ...compareContent(`${place} body`, old, current, 'request', compare),
  ]
}

/**
 * What the second OpenAPI document takes from clients that were written or generated for the first one: a sentence for each
 * change. New operations, optional fields, statuses of a response and values of an enum in a response are compatible:
 * clients ignore what they do not know. The comparison knows the keywords that the documents of this project use.
 */
export const findBreakingChanges = (beforeDocument: object, afterDocument: object): readonly string[] => {
  const [before, after] = [beforeDocument as JsonObject, afterDocument as JsonObject]
  const compare = createSchemaComparison(before, after)
  const getSchemaNames = (document: JsonObject) => Object.keys(toObject(toObject(document.components).schemas))
  const schemas = without(getSchemaNames(before), getSchemaNames(after)).map(
    name => `schema ${name}: removed or renamed, and generated code has its name`,
  )
  const paths = toObject(after.paths)
  const operations = Object.entries(toObject(before.paths)).flatMap(([path, item]) =>
    METHODS.flatMap(method => {
      const old = toObject(item)[method]
      if (!isObject(old)) return []
      const place = `${method.toUpperCase()} ${path}`
      const current = toObject(paths[path])[method]
      if (!isObject(current)) return [`${place}: removed`]
      const isRenamed = old.operationId !== current.operationId
      const security = without(listSecurity(before, old), listSecurity(after, current))
      return [
        ...(isRenamed ? [`${place}: the operation id ${old.operationId} is removed or renamed`] : []),
        ...security.map(requirement => `${place}: ${requirement} no longer authorizes the request`),
        ...compareParameters(place, old, current, compare),
        ...compareBody(place, old, current, compare),
        ...compareResponses(place, old, current, compare),
      ]
    }),
  )
  return [...schemas, ...operations]
}
