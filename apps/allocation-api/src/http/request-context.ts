import type { IncomingMessage, ServerResponse } from 'node:http'

/** The listeners of the API. The history records which one received a request. */
export type Listener = 'in-cluster' | 'operator'

/**
 * Node's request and response; absent if no server received the request, as in tests. The server sends `requestId` as
 * `X-Request-Id`.
 */
export interface NodeExchange {
  readonly incoming?: IncomingMessage | undefined
  readonly outgoing?: (ServerResponse & { requestId: string | null }) | undefined
}

/** What the handlers can read of a request apart from its content, and what they report of it. */
export class RequestContext implements NodeExchange {
  readonly request: Request
  readonly incoming: IncomingMessage | undefined
  readonly outgoing: NodeExchange['outgoing']
  readonly listener: Listener
  /** The client's if it is safe. */
  requestId = ''
  /** Of the client; of the peer that is not a trusted proxy. Null: the connection has closed. */
  address: string | null = null
  /** The pattern of the route; `none`: the path has no route. */
  route = 'none'
  /** An operation's outcome or an error code, for the log and the metrics. */
  outcome = ''
  /** Why the database was not available, for the log. */
  cause: string | undefined
  /** The id of the deployment that the request created. */
  deployment: string | undefined

  constructor(request: Request, listener: Listener, { incoming, outgoing }: NodeExchange) {
    this.request = request
    this.listener = listener
    this.incoming = incoming
    this.outgoing = outgoing
  }

  /**
   * A header of the request. Several fields of one name are joined by commas. Node has parsed them already; the `Headers` of
   * the `Request` would be created for it, which costs as much CPU as the rest of a small request.
   */
  header(name: Lowercase<string>): string | undefined {
    if (!this.incoming) return this.request.headers.get(name) ?? undefined
    const value = this.incoming.headers[name]
    return typeof value === 'string' ? value : value?.join(', ')
  }
}
