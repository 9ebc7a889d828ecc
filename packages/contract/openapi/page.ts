import type { Operation } from '../src/index.ts'

interface JsonObject {
  readonly [key: string]: unknown
}

/** By the names of fields whose schema has no example: `names: value`. */
const TABLE = `
subdomain: acme
poolDomain managedDomains stoppedZones zone: pool.example
drainingDomains: old.example
domain: cloud.acme.example
fqdn sovereignFQDN name include: acme.pool.example
names reserved: api
createdBy: signup
reservationToken: 6f1c2a9e-0b7d-4c58-9a51-2f7d5f3b9c10
deploymentToken token: b0a0d2c4-5f53-4a7c-8d4e-6d1f0c9b8a77
planHash: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
requestId: 01JDSAYZ2M5Q
data: 203.0.113.10
type: A
recordNames: *
detail: What is wrong, and what to do.
message: The provider accepts it.
field: orgName
orgName: Acme
provider providers deploymentProviders: hetzner
tokenProviders: hetzner-cloud
region regions objectStorageRegion: fsn1
bucket objectStorageBucket: catalyst-acme-pool-example
bucketPrefix: catalyst
accessKey: ACCESSKEY0123456789A
secretKey: secret-key-of-at-least-32-characters
streamURL: /api/v1/deployments/4f1c2a9e-0b7d-4c58-9a51-2f7d5f3b9c10/logs
text: Plan: 1 to add, 0 to change, 0 to destroy.
value: pdm-proof=3q2-7w
kind dnsProvider: powerdns
cause: database-older
version: 1.0.0
node: v24.11.0
reason: lease-unavailable
slot: region-pair/primary
holder to by: region-a
owner: default
id: 4f1c2a9e-0b7d-4c58-9a51-2f7d5f3b9c10
values targets: 203.0.113.10
dnsName: www.acme.pool.example
recordType: A
txt: LHDhK3oGRvkiefQnx7OOczTY5Tic_xZ6HcMOc_gmtoM
from: region-b`
const VALUES: Readonly<Record<string, string>> = Object.fromEntries(
  TABLE.split('\n').flatMap(line => {
    const [names = '', value = ''] = line.split(/: (.*)/)
    return names.split(' ').map(name => [name, value])
  }),
)
const NUMBERS: Readonly<Record<string, number>> = {
  ttl: 300,
  recordTtlSeconds: 300,
  generation: 7,
  remainingMs: 21_500,
}

const FORMATS: Readonly<Record<string, string>> = {
  'date-time': '2026-11-28T12:00:00.000Z',
  uuid: '4f1c2a9e-0b7d-4c58-9a51-2f7d5f3b9c10',
}

/** Bodies that are not JSON. */
const TEXTS: Readonly<Record<string, string>> = {
  'text/event-stream': 'id: 1\ndata: {"time":"2026-11-28T12:00:00.000Z"}\n\n',
  'text/plain': '# HELP pdm_deployments_active Deployments in this process.\npdm_deployments_active 0\n',
  'text/html': '<!doctype html>',
  'text/*': '.swagger-ui {}',
}

const FAULT = 'orgName is required: 1 to 100 printable characters.'

/** Fields that are shown although they may be absent. */
const SHOWN = ['planHash', 'createdBy']

type Schemas = Readonly<Record<string, JsonObject>>

const toObject = (value: unknown): JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as JsonObject) : {}
const toList = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])

const resolve = (schema: JsonObject, schemas: Schemas): JsonObject => {
  const { $ref } = schema
  return typeof $ref === 'string' ? (schemas[$ref.slice($ref.lastIndexOf('/') + 1)] ?? {}) : schema
}

/** A value that the schema of the field `name` accepts. */
export const toExample = (schema: JsonObject, name: string, schemas: Schemas): unknown => {
  if (schema.$ref !== undefined) return toExample(resolve(schema, schemas), name, schemas)
  const { example = toList(schema.examples)[0], const: constant, format } = schema
  const given = example ?? constant ?? toList(schema.enum)[0]
  if (given !== undefined) return given
  const [alternative] = toList(schema.oneOf ?? schema.anyOf)
  if (alternative !== undefined) return toExample(toObject(alternative), name, schemas)
  switch ([schema.type].flat()[0]) {
    case 'object': {
      const isShown = (field: string) => toList(schema.required).includes(field) || SHOWN.includes(field)
      const fields = Object.entries(toObject(schema.properties)).filter(([field]) => isShown(field))
      return Object.fromEntries(fields.map(([field, inner]) => [field, toExample(toObject(inner), field, schemas)]))
    }
    case 'array':
      return [toExample(toObject(schema.items), name, schemas)]
    case 'integer':
    case 'number':
      return NUMBERS[name] ?? Math.max(Number(schema.minimum ?? 1), 1)
    case 'boolean':
      return true
    case 'string':
      return FORMATS[String(format)] ?? VALUES[name] ?? null
    default:
      return {}
  }
}

const isJson = (mediaType: string): boolean => /json(?:;|$)/.test(mediaType)

export interface ReferenceOptions {
  /** Those that the page shows. */
  readonly operations: readonly Pick<Operation, 'id' | 'responses'>[]
  readonly errors: Readonly<Record<string, readonly [status: number, text: string]>>
  /** The OpenAPI security of its requests; empty: they need no token. */
  readonly security: readonly JsonObject[]
}

/** An OpenAPI document as its page shows it: the operations of one listener, with an example of each body. */
export const toReference = (document: JsonObject, { operations, errors, security }: ReferenceOptions): JsonObject => {
  const { schemas } = toObject(document.components)
  const byId = new Map(operations.map(operation => [operation.id, operation]))
  const withExamples = (content: unknown, codes: readonly string[] = []): JsonObject =>
    Object.fromEntries(
      Object.entries(toObject(content)).map(([mediaType, value]) => {
        const media = toObject(value)
        const example = isJson(mediaType)
          ? toExample(toObject(media.schema), '', toObject(schemas) as Schemas)
          : TEXTS[mediaType]
        const { additionalProperties, properties } = resolve(toObject(media.schema), toObject(schemas) as Schemas)
        const hasDetail = additionalProperties !== false || 'detail' in toObject(properties)
        const toProblem = (code: string) => ({
          ...toObject(example),
          ...{ error: code, ...(hasDetail && { detail: errors[code]?.[1] }) },
          ...(code === 'internal-error' && { requestId: VALUES.requestId }),
          ...(code === 'invalid-deployment' && {
            field: VALUES.field,
            faults: [{ field: VALUES.field, detail: FAULT }],
          }),
        })
        const examples = Object.fromEntries(codes.map(code => [code, { value: toProblem(code) }]))
        return [mediaType, { ...media, ...(codes.length > 0 ? { examples } : { example }) }]
      }),
    )
  const toOperation = (operation: JsonObject): JsonObject => {
    const { summary, requestBody, responses } = operation
    const { responses: known = {} } = byId.get(String(operation.operationId)) ?? {}
    const body = toObject(requestBody)
    return {
      ...operation,
      // Swagger UI shows a summary as plain text.
      summary: String(summary).replaceAll('`', ''),
      ...(requestBody ? { requestBody: { ...body, content: withExamples(body.content) } } : {}),
      responses: Object.fromEntries(
        Object.entries(toObject(responses)).map(([status, value]) => {
          const { content, ...response } = toObject(value)
          const { codes } = known[Number(status)] ?? {}
          return [status, content ? { ...response, content: withExamples(content, codes) } : response]
        }),
      ),
    }
  }
  const paths = Object.entries(toObject(document.paths)).map(([path, methods]) => {
    const shown = Object.entries(toObject(methods)).filter(([, operation]) =>
      byId.has(String(toObject(operation).operationId)),
    )
    return [path, Object.fromEntries(shown.map(([method, operation]) => [method, toOperation(toObject(operation))]))]
  })
  const { securitySchemes, ...components } = toObject(document.components)
  return {
    ...document,
    components: security.length > 0 ? { ...components, securitySchemes } : components,
    security,
    paths: Object.fromEntries(paths.filter(([, methods]) => Object.keys(Object(methods)).length > 0)),
  }
}
