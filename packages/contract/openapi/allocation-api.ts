import { deploymentEvent, operations } from '../src/index.ts'
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
      description: 'Required on the operator listener, for every path.',
      isOptional: true,
    },
  })
