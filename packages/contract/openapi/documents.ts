import { deploymentEvent, operations } from '../src/index.ts'
import { leaseOperations } from '../src/lease-operations.ts'
import { createOpenApiDocument } from './document.ts'

/** The OpenAPI document of the allocation API, which serves it at `/openapi.json`. */
export const allocationApiDocument = (): object =>
  createOpenApiDocument({
    title: 'Pool subdomain allocation',
    description: 'The authority for which subdomains of a pool domain are reserved or active.',
    operations,
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
      'One lease per slot, by compare-and-set. HEAD is GET without a body. Other methods of these paths are 405 `method-not-allowed` with `Allow`; other paths are 404 `not-found`. Both need a token. A body that does not arrive within 10 s is 408 `request-timeout`, and one with a Content-Encoding is 415 `unsupported-encoding`.',
    operations: leaseOperations,
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
