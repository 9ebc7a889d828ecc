import { deploymentEvent, operations } from '../src/index.ts'
import { leaseOperations } from '../src/lease-operations.ts'
import { createOpenApiDocument } from './document.ts'

/** The OpenAPI document of the allocation API, which serves it at `/openapi.json`. */
export const allocationApiDocument = (): object =>
  createOpenApiDocument({
    title: 'Pool subdomain allocation',
    description: `The authority for which subdomains of a pool domain are reserved or active.

**Listeners and credentials.** The in-cluster listener (8080) needs no token; its callers are limited by the network. What changes a name or
a deployment needs the token of its reservation or creation. The operator listener (8081) has everything, and every request needs a token of
\`PDM_OPERATOR_TOKENS\`: \`Authorization: Bearer\`, Basic with it as the password, or the session of the console.

**Errors** have the body \`{"error", "detail"}\`: a code for programs and a sentence for people. \`X-Request-Id\` is in the log. 4xx: the
request was not executed. An unknown query parameter is 422 \`unknown-parameter\`; unknown fields of a body are ignored.

**Retries.** Repeat a 429 or 503 after \`Retry-After\`, and a write whose response was lost under the same \`Idempotency-Key\` (random, one for each
operation): it is executed once, and its result is returned again. 202 means accepted: no repetition is needed.`,
    operations,
    tags: {
      Allocation: 'For services: a name from its reservation to its release.',
      Records: 'For tenants and their tools: records at and below a name, with a token of that name.',
      Deployments: 'For services and operators: the infrastructure of a tenant under a name.',
      Credentials: 'For services: keys and tokens of a tenant, checked before they are used.',
      Operator: 'For operators: zones, records, buckets and the whole installation. Operator listener only.',
      Console: 'For the operator console, and programs like it. Operator listener only.',
      Health: 'For probes and Prometheus.',
      Description: 'This page and its document.',
    },
    headers: { 'X-Request-Id': 'The id of this request in the log.' },
    // Not a body: it is the data of a server-sent event.
    schemas: { DeploymentEvent: deploymentEvent },
    bearer: {
      name: 'operator',
      description: 'Required on the operator listener, for every path except those of tenants.',
      isOptional: true,
    },
    securitySchemes: {
      recordsToken: { type: 'http', scheme: 'bearer', description: 'A records token of the name.' },
      recordsPassword: { type: 'http', scheme: 'basic', description: 'The same token as the password of any user.' },
      recordsKey: { type: 'apiKey', in: 'header', name: 'X-Api-Key', description: 'The same token.' },
    },
  })

/** The OpenAPI document of the lease witness. It is a file: the Worker does not serve it, to keep its bundle small. */
export const leaseWitnessDocument = (): object =>
  createOpenApiDocument({
    title: 'Lease witness',
    description:
      'One lease per slot, by compare-and-set. Every request needs a token of the allow-list as `Authorization: Bearer`; a token can be limited to slots. An error has the body `{"error", "detail"}`: a code and a sentence. Repeat a 429 or 503 after `Retry-After`. A write whose response was lost: read the lease and compare its holder and its generation. HEAD is GET without a body. Other methods of these paths are 405 `method-not-allowed` with `Allow`; other paths are 404 `not-found`. Both need a token. A body that does not arrive within 10 s is 408 `request-timeout`, and one with a Content-Encoding is 415 `unsupported-encoding`.',
    operations: leaseOperations,
    tags: {
      Lease: 'For controllers: a lease from its acquisition to its release.',
      Copies: 'For operators: the list of leases, and the copies in Workers KV.',
      Health: 'For probes.',
    },
    headers: {
      'X-Request-Id': 'The id of this request in the log. A valid id from the request is kept.',
      'Cache-Control': '`no-store`',
    },
    bearer: { name: 'token', description: 'A token from the allow-list.', isOptional: false },
  })

interface DocumentFile {
  readonly service: string
  readonly create: () => object
  /** For readers and generators: the current document. */
  readonly current: URL
  /** The document of the last release, which the current one must not break. */
  readonly released: URL
}

const toDocumentFile = (service: string, create: () => object): DocumentFile => ({
  service,
  create,
  current: new URL(`../../../docs/reference/${service}.openapi.json`, import.meta.url),
  released: new URL(`./released/${service}.openapi.json`, import.meta.url),
})

export const documentFiles: readonly DocumentFile[] = [
  toDocumentFile('allocation-api', allocationApiDocument),
  toDocumentFile('lease-witness', leaseWitnessDocument),
]

export const toFileText = (document: object): string => `${JSON.stringify(document, null, 2)}\n`
