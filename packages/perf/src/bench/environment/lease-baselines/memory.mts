import type { Lease } from '@pool/contract/lease'
import {
  type BaselineEnv,
  createErrorResponse,
  createLeaseResponse,
  grantLease,
  isAllowed,
  parseBaselinePut,
  parseBaselineSlot,
} from './wire.ts'

/** The leases of this isolate. A restart loses them. */
const leases = new Map<string, Lease>()

/** The minimum cost of the HTTP interface on this runtime: the same responses from memory. */
export default {
  async fetch(request: Request, env: BaselineEnv): Promise<Response> {
    // An unread body would break the connection for the next request.
    const body = request.method === 'PUT' ? await request.text() : ''
    if (!isAllowed(request, env)) return createErrorResponse(401, 'unauthorized')
    const slot = parseBaselineSlot(request)
    const current = leases.get(slot)
    if (request.method === 'GET')
      return current ? createLeaseResponse(request, 200, current) : createErrorResponse(404, 'not-found')
    if (request.method !== 'PUT') return createErrorResponse(405, 'method-not-allowed')
    const put = parseBaselinePut(request, body)
    if (!put) return createErrorResponse(400, 'invalid-request')
    // Without an await between the read and the write, one isolate in one process decides correctly.
    const lease = grantLease(current, put, Date.now())
    if (!lease) return createLeaseResponse(request, 412, current)
    leases.set(slot, lease)
    return createLeaseResponse(request, 200, lease)
  },
}
