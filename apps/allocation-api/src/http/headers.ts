import type { Context } from 'hono'
import type { HttpEnv } from './types.ts'

// Node has parsed the request headers already, and its response can add a header for little. The Request and the Response of
// Hono's adapter create a `Headers` object for both, which costs as much CPU as the rest of a small request. A request
// without Node, as in tests, has only these.

/** A request header. `name` is in lower case. Several fields of one name are joined by commas. */
export const readHeader = (c: Context<HttpEnv>, name: Lowercase<string>): string | undefined => {
  const incoming = c.env?.incoming
  if (!incoming) return c.req.header(name)
  const value = incoming.headers[name]
  return typeof value === 'string' ? value : value?.join(', ')
}

/** Sets the header `X-Request-Id` of the response, before the response exists. */
export const identifyResponse = (c: Context<HttpEnv>, requestId: string): void => {
  const outgoing = c.env?.outgoing
  if (outgoing) outgoing.requestId = requestId
  else c.header('X-Request-Id', requestId)
}
