import type { IncomingMessage, ServerResponse } from 'node:http'
import type { LiveSession } from '../operator/domain/session.ts'

/** The listeners of the API. The history records which one received a request. */
export type Listener = 'in-cluster' | 'operator'

/** Receives an error that occurred after the response headers were sent. */
export type OnStreamError = (error: unknown, requestId: string) => void

/** What the middleware provides to the handlers. */
export interface HttpEnv {
  /**
   * Node's request and response; absent if no server received the request, as in tests. The server sends `requestId` as
   * `X-Request-Id`.
   */
  Bindings: { readonly incoming?: IncomingMessage; readonly outgoing?: ServerResponse & { requestId: string | null } }
  Variables: {
    listener: Listener
    requestId: string
    /** Of the client; of the peer that is not a trusted proxy. Null: the connection has closed. */
    address: string | null
    /** An operation's outcome or an error code, for the log and the metrics. */
    outcome: string
    /** Why the database was not available, for the log. */
    cause: string | undefined
    /** The id of the deployment that the request created. */
    deployment: string | undefined
    /** The session of the request; absent: it has a token, or needs none. `id` is a secret of the browser. */
    session: (LiveSession & { readonly id: string }) | undefined
    /** Whether the session has not ended since; absent as above. */
    isStillAuthorized: (() => Promise<boolean>) | undefined
  }
}
