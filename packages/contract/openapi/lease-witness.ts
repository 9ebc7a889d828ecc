import { leaseOperations } from '../src/lease-operations.ts'
import { createOpenApiDocument } from './document.ts'

/** The OpenAPI document of the lease witness. It is a file: the Worker does not serve it, to keep its bundle small. */
export const leaseWitnessDocument = (): object =>
  createOpenApiDocument({
    title: 'Lease witness',
    description:
      'One lease per slot, by compare-and-set. HEAD is GET without a body. Other methods of these paths are 405 `method-not-allowed` with `Allow`; other paths are 404 `not-found`. Both need a token.',
    operations: leaseOperations,
    headers: {
      'X-Request-Id': 'The id of this request in the log. A valid id from the request is kept.',
      'Cache-Control': '`no-store`',
    },
    bearer: { name: 'token', description: 'A token from the allow-list.', isOptional: false },
  })
