import { type Answer, deploymentEvent, type Operation, operations } from '@pool/contract'
import { createDocument } from 'zod-openapi'

const responseOf = ({ description, schema, mediaType }: Answer) => ({
  description,
  headers: {
    'X-Request-Id': {
      description: 'The id under which the log tells of this request.',
      schema: { type: 'string' as const },
    },
  },
  ...(schema ? { content: { [mediaType ?? 'application/json']: { schema } } } : {}),
})

const operationOf = ({ id, tag, summary, description, pathParams, query, headers, body, answers }: Operation) => ({
  operationId: id,
  tags: [tag],
  summary,
  ...(description ? { description } : {}),
  requestParams: {
    ...(pathParams ? { path: pathParams } : {}),
    ...(query ? { query } : {}),
    ...(headers ? { header: headers } : {}),
  },
  ...(body
    ? { requestBody: { required: body.required, content: { 'application/json': { schema: body.schema } } } }
    : {}),
  responses: Object.fromEntries(Object.entries(answers).map(([status, answer]) => [status, responseOf(answer)])),
})

/** The contract's operations as an OpenAPI 3.1 document. */
export const openApiDocument = (): object => {
  const paths: Record<string, Record<string, ReturnType<typeof operationOf>>> = {}
  for (const operation of operations) {
    paths[operation.path] = { ...paths[operation.path], [operation.method]: operationOf(operation) }
  }
  return createDocument({
    openapi: '3.1.0',
    info: {
      title: 'Pool subdomain allocation',
      version: '1.0.0',
      description: 'The sole authority for which subdomain of a pool domain is reserved or active.',
    },
    components: {
      // No body is one by itself: it travels as the data of a server-sent event.
      schemas: { DeploymentEvent: deploymentEvent },
      securitySchemes: {
        operator: {
          type: 'http',
          scheme: 'bearer',
          description: "Required by the operator's address, for every path.",
        },
      },
    },
    security: [{}, { operator: [] }],
    paths: paths as never,
  })
}
