import type { HttpBindings } from '@hono/node-server'

/** The addresses at which the API listens. The history tells them apart. */
export type Listener = 'in-cluster' | 'operator'

/** Receives an error that occurred after the response headers were sent. */
export type OnStreamError = (error: unknown, requestId: string) => void

/** What the middleware leaves for the handlers. */
export interface HttpEnv {
  Bindings: Partial<HttpBindings>
  Variables: {
    listener: Listener
    requestId: string
    /** What the request came to, for the log and the metrics: a verb's outcome or an error code. */
    outcome: string
  }
}
