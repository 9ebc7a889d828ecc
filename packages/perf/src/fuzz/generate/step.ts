import type { DocumentedOperation, ServiceDocument } from '../oracle/document.ts'
import type { Answer } from '../wire/answer.ts'
import type { FuzzRequest } from '../wire/request.ts'
import { type Schema, sampleOf } from './from-schema.ts'
import type { Base } from './mutate.ts'
import { encoded } from './queries.ts'
import type { Random } from './random.ts'

export interface Step {
  readonly request: FuzzRequest
  /** Takes from the answer what later requests go on with. */
  readonly learn: (answer: Answer) => void
}

/** One client: one request at a time, each made of chance and of what it was answered before. */
export interface Lane {
  readonly next: () => Step
}

/** What is documented as this; it must be there. */
export const operationNamed = ({ operations }: ServiceDocument, id: string): DocumentedOperation => {
  const found = operations.find(one => one.id === id)
  if (!found) throw new Error(`no operation ${id} is documented`)
  return found
}

/** Bytes that HTTP allows in a field value (RFC 9110 section 5.5); others are left out. */
const fieldValue = (text: string): string =>
  Buffer.from(text)
    .toString('latin1')
    .replace(/[^\t\x20-\x7e\x80-\xff]/g, '')
    .slice(0, 8_000)

const textOf = (value: unknown): string => (typeof value === 'string' ? value : (JSON.stringify(value) ?? ''))

/**
 * A request for an operation as its document describes it, `known` filled in where it has a value for a parameter or a
 * field: what is good there no schema says.
 */
export const described = (
  document: ServiceDocument,
  operation: DocumentedOperation,
  known: Readonly<Record<string, unknown>>,
  random: Random,
): Base => {
  const { id, method, parameters, body } = operation
  const of = (name: string, schema: Schema, trust: number): unknown =>
    name in known && random.chance(trust) ? known[name] : sampleOf(schema, random, document.schema)
  const given = (place: string) => parameters.filter(one => one.in === place)
  const values = new Map(
    given('path').map(({ name, schema }) => [name, encoded(textOf(of(name, schema, 0.8))).slice(0, 3_000) || '-']),
  )
  const query = given('query')
    .filter(() => random.chance(0.6))
    .map(({ name, schema }) => [name, textOf(of(name, schema, 0.5)).slice(0, 3_000)] as const)
  const headers = given('header')
    .filter(() => random.chance(0.7))
    .map(({ name, schema }) => `${name}: ${fieldValue(textOf(of(name, schema, 0.7)))}`)
  const sent = body ? sampleOf(body, random, document.schema) : undefined
  const isObject = typeof sent === 'object' && sent !== null && !Array.isArray(sent)
  const filled = isObject
    ? Object.fromEntries(
        Object.entries(sent).map(([name, value]) => [name, name in known && random.chance(0.8) ? known[name] : value]),
      )
    : sent
  return {
    row: id,
    method,
    path: operation.path.replace(/\{([^}]+)\}/g, (_, name: string) => values.get(name) ?? '-'),
    query,
    headers,
    ...(filled === undefined ? {} : { body: filled }),
  }
}
