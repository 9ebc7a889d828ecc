import type { Env } from '../env.ts'

/** A body; or what is wrong with it. `endless`: the connection cannot go on. */
export type Body = Uint8Array | 'too-large' | 'endless' | 'broken-off'

/** What the middleware leaves for the handlers, and they for the log line. */
export interface HttpEnv {
  Bindings: Env
  Variables: {
    requestId: string
    body: Body
    /** What the request came to: an outcome of the witness or an error code. */
    outcome: string
    slot: string
    generation: number
    /** For the log at `debug`. */
    request: Readonly<Record<string, unknown>>
  }
}
