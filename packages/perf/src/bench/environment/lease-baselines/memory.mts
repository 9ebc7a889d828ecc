import {
  type BaselineEnv,
  type BaselineLease,
  createErrorResponse,
  createLeaseResponse,
  grantLease,
  isAllowed,
  parseBaselinePut,
  parseBaselineSlot,
} from './wire.ts'

/** The leases of this isolate: nothing is stored, and nothing is left after a restart. */
const leases = new Map<string, BaselineLease>()

/** The least that the wire can cost on this runtime: the same answers, from memory. */
export default {
  async fetch(request: Request, env: BaselineEnv): Promise<Response> {
    // Read before anything is answered: a body that is left over breaks the connection for the next request.
    const body = request.method === 'PUT' ? await request.text() : ''
    if (!isAllowed(request, env)) return createErrorResponse(401, 'unauthorized')
    const slot = parseBaselineSlot(request)
    const current = leases.get(slot)
    if (request.method === 'GET')
      return current ? createLeaseResponse(request, 200, current) : createErrorResponse(404, 'not-found')
    if (request.method !== 'PUT') return createErrorResponse(405, 'method-not-allowed')
    const ask = parseBaselinePut(request, body)
    if (!ask) return createErrorResponse(400, 'invalid-request')
    // Nothing is awaited between the look and the write: one isolate in one process decides rightly.
    const lease = grantLease(current, ask, Date.now())
    if (!lease) return createLeaseResponse(request, 412, current)
    leases.set(slot, lease)
    return createLeaseResponse(request, 200, lease)
  },
}
