import { LeaseClient } from '@pool/client/leases'
import type { FencedRegion } from './fenced-region.ts'

export { FencedRegion } from './fenced-region.ts'

export interface Env {
  readonly PRIMARY: DurableObjectNamespace<FencedRegion>
  readonly LEASE_WITNESS: string
  readonly WITNESS_TOKEN: string
  readonly WRITE_TOKEN: string
  readonly SLOT: string
}

const READ_TIMEOUT_MS = 2_000

/**
 * Names the primary region: `GET /primary`. The controllers of the regions write it with `PUT` and `DELETE` and their
 * fencing token. `GET /leader` shows the lease, which can be ahead of the region that it elects.
 */
export default {
  async fetch(request: Request, env: Env): Promise<Response> {
    const { pathname } = new URL(request.url)
    if (pathname === '/primary') return handlePrimary(request, env)
    if (pathname === '/leader' && request.method === 'GET') return showLeader(env)
    return new Response(null, { status: 404 })
  },
} satisfies ExportedHandler<Env>

const handlePrimary = async (request: Request, env: Env): Promise<Response> => {
  const primary = env.PRIMARY.getByName('primary')
  if (request.method === 'GET') return Response.json(await primary.read())
  if (request.method !== 'PUT' && request.method !== 'DELETE')
    return new Response(null, { status: 405, headers: { Allow: 'GET, PUT, DELETE' } })
  if (!(await isWriter(request, env))) return new Response(null, { status: 401 })
  const fence = Number(request.headers.get('X-Fencing-Token') ?? Number.NaN)
  if (!Number.isSafeInteger(fence) || fence < 1) return new Response('Send X-Fencing-Token.', { status: 400 })
  const result =
    request.method === 'PUT' ? await primary.claim(await request.text(), fence) : await primary.standDown(fence)
  return new Response(null, { status: result === 'fenced' ? 409 : 204 })
}

/** For people and dashboards. A decision needs the fencing token, because the lease can change after this response. */
const showLeader = async (env: Env): Promise<Response> => {
  const leases = new LeaseClient({ baseUrl: env.LEASE_WITNESS, token: env.WITNESS_TOKEN, deadlineMs: READ_TIMEOUT_MS })
  try {
    const { lease, remainingMs, isVacant } = await leases.read(env.SLOT)
    return Response.json({ leader: isVacant ? null : lease.holder, remainingMs, generation: lease.generation })
  } catch {
    return Response.json({ detail: 'The lease witness is unavailable.' }, { status: 503 })
  }
}

/** Compares digests, so that the time does not depend on the first difference. */
const isWriter = async (request: Request, env: Env): Promise<boolean> => {
  const digest = async (text: string) => crypto.subtle.digest('SHA-256', new TextEncoder().encode(text))
  const sent = await digest(request.headers.get('Authorization') ?? '')
  return crypto.subtle.timingSafeEqual(sent, await digest(`Bearer ${env.WRITE_TOKEN}`))
}
