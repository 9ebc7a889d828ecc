/** The part of a worker that receives requests. */
interface Handler {
  fetch(request: Request, ...rest: readonly unknown[]): Response | Promise<Response>
}

/**
 * The worker with one more path, which no client can guess: a request to it ends all waits, because the process is about to
 * stop. It runs inside workerd.
 */
export const stoppable = (worker: Handler, path: string, endWaits: () => void): Handler => ({
  fetch(request, ...rest) {
    // An invalid Host makes the URL unparseable.
    if (!request.url.endsWith(path)) return worker.fetch(request, ...rest)
    endWaits()
    return new Response(null, { status: 204 })
  },
})
