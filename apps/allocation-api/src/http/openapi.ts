import { deploymentEvent, operations } from '@pool/contract'
import { createOpenApiDocument } from '@pool/openapi'

/** The contract's operations as an OpenAPI 3.1 document. */
export const openApiDocument = (): object =>
  createOpenApiDocument({
    title: 'Pool subdomain allocation',
    description: 'The sole authority for which subdomain of a pool domain is reserved or active.',
    operations,
    headers: { 'X-Request-Id': 'The id under which the log tells of this request.' },
    // No body is one by itself: it travels as the data of a server-sent event.
    schemas: { DeploymentEvent: deploymentEvent },
    bearer: {
      name: 'operator',
      description: "Required by the operator's address, for every path.",
      isOptional: true,
    },
  })
