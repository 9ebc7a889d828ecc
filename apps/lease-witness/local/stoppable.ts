/** The part of a worker that receives requests. */
interface Handler {
  fetch(request: Request, ...rest: readonly unknown[]): Response | Promise<Response>
}

const POLL_MS = 5
/** Without an end of any request: for those that do not end soon, or whose client has disconnected, which the runtime may cancel. */
const MAX_POLLS = 200

const nextPoll = (): Promise<void> => new Promise(resolve => setTimeout(resolve, POLL_MS))

/**
 * The worker with one more path, which no client can guess: a request to it ends all waits, because the process is about to
 * stop. It gets its response when the worker has responded to all other requests, or to none of them for a second. It runs
 * inside workerd.
 */
export const stoppable = (worker: Handler, path: string, endWaits: () => void): Handler => {
  let inFlight = 0

  const respond = async (request: Request, rest: readonly unknown[]): Promise<Response> => {
    inFlight += 1
    try {
      return await worker.fetch(request, ...rest)
    } finally {
      inFlight -= 1
    }
  }

  const stop = async (): Promise<Response> => {
    endWaits()
    for (let polls = 0; inFlight > 0 && polls < MAX_POLLS; ) {
      const before = inFlight
      await nextPoll()
      polls = inFlight < before ? 0 : polls + 1
    }
    // The runtime writes a response after the worker has returned it, and before the next timer fires.
    await nextPoll()
    return new Response(null, { status: 204 })
  }

  return {
    // An invalid Host makes the URL unparseable.
    fetch: (request, ...rest) => (request.url.endsWith(path) ? stop() : respond(request, rest)),
  }
}
