import { isLoopbackHost } from '@pool/contract/fields'

/** The part of a worker that receives requests. */
interface Handler {
  fetch(request: Request, ...rest: readonly unknown[]): Response | Promise<Response>
}

const body = JSON.stringify({ error: 'forbidden', detail: 'Host is not a loopback name; use localhost.' })

/**
 * The worker, without requests whose `Host` is not a loopback name. A page of any site can point its own domain at
 * 127.0.0.1 (DNS rebinding); a deployed worker has no such address. It runs inside workerd.
 */
export const loopbackOnly = (worker: Handler): Handler => ({
  async fetch(request, ...rest) {
    if (isLoopbackHost(request.headers.get('Host') ?? '')) return worker.fetch(request, ...rest)
    // A body that is left unread would break the next request on the connection.
    await request.body?.pipeTo(new WritableStream())
    const headers = { 'Content-Type': 'application/json', 'X-Request-Id': crypto.randomUUID() }
    return new Response(body, { status: 403, headers })
  },
})
