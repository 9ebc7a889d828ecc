import { askOf, granted, isAllowed, type Lease, refuse, type Settings, show, slotOf } from './wire.ts'

/** The leases of this isolate: nothing is stored, and nothing is left after a restart. */
const leases = new Map<string, Lease>()

/** The least that the wire can cost on this runtime: the same answers, from memory. */
export default {
  async fetch(request: Request, env: Settings): Promise<Response> {
    // Read before anything is answered: a body that is left over breaks the connection for the next request.
    const body = request.method === 'PUT' ? await request.text() : ''
    if (!isAllowed(request, env)) return refuse(401, 'unauthorized')
    const slot = slotOf(request)
    const current = leases.get(slot)
    if (request.method === 'GET') return current ? show(request, 200, current) : refuse(404, 'not-found')
    if (request.method !== 'PUT') return refuse(405, 'method-not-allowed')
    const ask = askOf(request, body)
    if (!ask) return refuse(400, 'invalid-request')
    // Nothing is awaited between the look and the write: one isolate in one process decides rightly.
    const lease = granted(current, ask, Date.now())
    if (!lease) return show(request, 412, current)
    leases.set(slot, lease)
    return show(request, 200, lease)
  },
}
