import type { Context } from 'hono'
import type { HttpEnv } from './types.ts'

// Node has parsed the request headers already, and adds one header to a response for little. The Request and the Response of
// Hono's adapter create a `Headers` object for both, which costs as much CPU as the rest of a small request. A request
// without Node, as in tests, has only these.

/** A request header. `name` is in lower case. Several fields of one name are joined by commas. */
export const readHeader = (c: Context<HttpEnv>, name: Lowercase<string>): string | undefined => {
  const incoming = c.env?.incoming
  if (!incoming) return c.req.header(name)
  const value = incoming.headers[name]
  return typeof value === 'string' ? value : value?.join(', ')
}

/** Sets a response header before the response exists. */
export const setHeader = (c: Context<HttpEnv>, name: string, value: string): void => {
  const outgoing = c.env?.outgoing
  if (outgoing) outgoing.setHeader(name, value)
  else c.header(name, value)
}
