/** The part of a worker that receives requests. */
interface Handler {
  fetch(request: Request, ...rest: readonly unknown[]): Response | Promise<Response>
}

/**
 * The worker with one more path, which nobody can guess: a request to it ends all waits, because the process is about to
 * stop. It runs inside workerd.
 */
export const stoppable = (worker: Handler, path: string, endWaits: () => void): Handler => ({
  fetch(request, ...rest) {
    if (new URL(request.url).pathname !== path) return worker.fetch(request, ...rest)
    endWaits()
    return new Response(null, { status: 204 })
  },
})
