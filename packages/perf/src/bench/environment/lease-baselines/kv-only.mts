import type { Lease } from '@pool/contract/lease'
import {
  type BaselineEnv,
  createErrorResponse,
  createLeaseResponse,
  grantLease,
  isAllowed,
  logRequest,
  parseBaselinePut,
  parseBaselineSlot,
} from './wire.ts'

/** The part of the Workers KV interface that this worker uses. */
interface Namespace {
  get(key: string): Promise<string | null>
  put(key: string, value: string): Promise<void>
}

interface Env extends BaselineEnv {
  readonly OPENOVA_LEASES: Namespace
}

/**
 * Reads the record, decides, and writes it back. Two concurrent requests can both be granted: the witness exists to prevent
 * this.
 */
const handle = async (request: Request, env: Env): Promise<Response> => {
  const body = request.method === 'PUT' ? await request.text() : ''
  if (!isAllowed(request, env)) return createErrorResponse(401, 'unauthorized')
  const key = `lease:${parseBaselineSlot(request)}`
  const record = await env.OPENOVA_LEASES.get(key)
  const current: Lease | undefined = record === null ? undefined : JSON.parse(record)
  if (request.method === 'GET')
    return current ? createLeaseResponse(request, 200, current) : createErrorResponse(404, 'not-found')
  if (request.method !== 'PUT') return createErrorResponse(405, 'method-not-allowed')
  const put = parseBaselinePut(request, body)
  if (!put) return createErrorResponse(400, 'invalid-request')
  const lease = grantLease(current, put, Date.now())
  if (!lease) return createLeaseResponse(request, 412, current)
  await env.OPENOVA_LEASES.put(key, JSON.stringify(lease))
  return createLeaseResponse(request, 200, lease)
}

export default {
  fetch: async (request: Request, env: Env): Promise<Response> => logRequest(request, await handle(request, env)),
}
