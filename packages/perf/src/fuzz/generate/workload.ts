import type { HttpResponse } from '@pool/test-kit/http1.ts'
import type fc from 'fast-check'
import type { DocumentedOperation, ServiceDocument } from '../oracle/document.ts'
import type { FuzzRequest } from '../request.ts'
import type { Choices } from './choices.ts'
import { type Schema, schemaArbitrary } from './from-schema.ts'
import type { SeedRequest } from './mutate.ts'
import { encodeText } from './queries.ts'

export interface Step {
  readonly request: FuzzRequest
  /** Stores what later requests need from the response. */
  readonly learn: (response: HttpResponse) => void
}

/** One client: its requests depend on the choices and on earlier responses. */
export interface FuzzWorkload {
  readonly next: (choices: Choices) => Step
  /** A client that knows the same: it repeats a sequence from the same state. */
  readonly clone: () => FuzzWorkload
}

/** Throws unless the operation is documented. */
export const findOperation = ({ operations }: ServiceDocument, id: string): DocumentedOperation => {
  const found = operations.find(operation => operation.id === id)
  if (!found) throw new Error(`operation ${id} is not documented`)
  return found
}

/** Bytes that HTTP allows in a field value (RFC 9110 section 5.5); others are removed. */
const toFieldValue = (text: string): string =>
  Buffer.from(text)
    .toString('latin1')
    .replace(/[^\t\x20-\x7e\x80-\xff]/g, '')
    .slice(0, 8_000)

const toText = (value: unknown): string => (typeof value === 'string' ? value : (JSON.stringify(value) ?? ''))

const arbitraries = new WeakMap<Schema, fc.Arbitrary<unknown>>()
const toArbitrary = (schema: Schema, document: ServiceDocument): fc.Arbitrary<unknown> => {
  const arbitrary = arbitraries.get(schema) ?? schemaArbitrary(schema, document.schema)
  arbitraries.set(schema, arbitrary)
  return arbitrary
}

/**
 * A request for an operation as its document describes it. `known` has values for parameters and fields that the service
 * accepts, which no schema shows.
 */
export const createDocumentedRequest = (
  document: ServiceDocument,
  operation: DocumentedOperation,
  known: Readonly<Record<string, unknown>>,
  choices: Choices,
): SeedRequest => {
  const { id, method, parameters, body } = operation
  const toValue = (name: string, schema: Schema, trust: number): unknown =>
    name in known && choices.chance(trust) ? known[name] : choices.draw(toArbitrary(schema, document))
  const parametersIn = (place: string) => parameters.filter(parameter => parameter.in === place)
  const values = new Map(
    parametersIn('path').map(({ name, schema }) => [
      name,
      encodeText(toText(toValue(name, schema, 0.8))).slice(0, 3_000) || '-',
    ]),
  )
  const query = parametersIn('query')
    .filter(() => choices.chance(0.6))
    .map(({ name, schema }) => [name, toText(toValue(name, schema, 0.5)).slice(0, 3_000)] as const)
  const headers = parametersIn('header')
    .filter(() => choices.chance(0.7))
    .map(({ name, schema }) => `${name}: ${toFieldValue(toText(toValue(name, schema, 0.7)))}`)
  const drawn = body ? choices.draw(toArbitrary(body, document)) : undefined
  const isObject = typeof drawn === 'object' && drawn !== null && !Array.isArray(drawn)
  const filled = isObject
    ? Object.fromEntries(
        Object.entries(drawn).map(([name, value]) => [
          name,
          name in known && choices.chance(0.8) ? known[name] : value,
        ]),
      )
    : drawn
  return {
    row: id,
    method,
    path: operation.path.replace(/\{([^}]+)\}/g, (_, name: string) => values.get(name) ?? '-'),
    query,
    headers,
    ...(filled === undefined ? {} : { body: filled }),
  }
}
