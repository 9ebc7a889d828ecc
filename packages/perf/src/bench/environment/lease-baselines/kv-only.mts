import { askOf, granted, isAllowed, type Lease, logged, refuse, type Settings, show, slotOf } from './wire.ts'

/** So much of Workers KV as this worker uses. */
interface Namespace {
  get(key: string): Promise<string | null>
  put(key: string, value: string): Promise<void>
}

interface Env extends Settings {
  readonly OPENOVA_LEASES: Namespace
}

/**
 * Reads the record, looks at it, writes it back. Two requests that have both read before either has written are both
 * granted: this is what the witness exists to replace.
 */
const answerTo = async (request: Request, env: Env): Promise<Response> => {
  const body = request.method === 'PUT' ? await request.text() : ''
  if (!isAllowed(request, env)) return refuse(401, 'unauthorized')
  const key = `lease:${slotOf(request)}`
  const record = await env.OPENOVA_LEASES.get(key)
  const current: Lease | undefined = record === null ? undefined : JSON.parse(record)
  if (request.method === 'GET') return current ? show(request, 200, current) : refuse(404, 'not-found')
  if (request.method !== 'PUT') return refuse(405, 'method-not-allowed')
  const ask = askOf(request, body)
  if (!ask) return refuse(400, 'invalid-request')
  const lease = granted(current, ask, Date.now())
  if (!lease) return show(request, 412, current)
  await env.OPENOVA_LEASES.put(key, JSON.stringify(lease))
  return show(request, 200, lease)
}

export default {
  fetch: async (request: Request, env: Env): Promise<Response> => logged(request, await answerTo(request, env)),
}
