import { deploymentEvent, operations } from '@pool/contract'
import { createOpenApiDocument } from '@pool/openapi'

/** The OpenAPI 3.1 document of the API. */
export const openApiDocument = (): object =>
  createOpenApiDocument({
    title: 'Pool subdomain allocation',
    description: 'The authority for which subdomains of a pool domain are reserved or active.',
    operations,
    headers: { 'X-Request-Id': 'The id of this request in the log.' },
    // Not a body: it is the data of a server-sent event.
    schemas: { DeploymentEvent: deploymentEvent },
    bearer: {
      name: 'operator',
      description: 'Required on the operator listener, for every path.',
      isOptional: true,
    },
  })
