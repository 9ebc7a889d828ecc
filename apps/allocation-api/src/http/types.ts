import type { LiveSession } from '../operator/domain/session.ts'
import type { RequestContext } from './request-context.ts'

/** Receives an error that occurred after the response headers were sent. */
export type OnStreamError = (error: unknown, requestId: string) => void

/** What the routes receive. */
export interface HttpEnv {
  Bindings: RequestContext
  /** Of the middleware of the operator listener. */
  Variables: {
    /** The session of the request; absent: it has a token, or needs none. `id` is a secret of the browser. */
    session: (LiveSession & { readonly id: string }) | undefined
    /** Whether the session has not ended since; absent as above. */
    isStillAuthorized: (() => Promise<boolean>) | undefined
  }
}
