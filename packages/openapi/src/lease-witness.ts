import { leaseOperations } from '@pool/contract/lease-operations'
import { documentOf } from './document.ts'

/** The contract of the lease witness as an OpenAPI 3.1 document. It is a file, and not served: a worker pays for each byte. */
export const leaseWitnessDocument = (): object =>
  documentOf({
    title: 'Lease witness',
    description:
      'One lease a slot, by compare-and-set. HEAD is GET without a body. Another method of these paths is 405 `method-not-allowed` with `Allow`, another path 404 `not-found`; both only with a token.',
    operations: leaseOperations,
    headers: {
      'X-Request-Id': 'The id under which the log tells of this request; a sane one that was sent is kept.',
      'Cache-Control': '`no-store`',
    },
    bearer: { name: 'token', description: 'A token of the allow-list.', isOptional: false },
  })

/** As it stands in docs/. */
export const leaseWitnessText = (): string => `${JSON.stringify(leaseWitnessDocument(), null, 2)}\n`

export const leaseWitnessFile = new URL('../../../docs/lease-witness.openapi.json', import.meta.url)
