import type { Context } from 'hono'
import { createApp } from './app.ts'
import type { HttpEnv } from './http/types.ts'
import { copiesOf } from './kv-copy/copy.ts'
import { log } from './log.ts'
import { slots } from './object/client.ts'

export { LeaseObject } from './object/lease-object.ts'

/** A dependency that did not answer: the caller gets a 503, and the log what the platform said. */
const onFault = (c: Context<HttpEnv>, msg: string) => (error: unknown) =>
  log(c.env, 'error', { msg, requestId: c.get('requestId'), slot: c.get('slot'), reason: String(error) })

const app = createApp({
  witness: c => slots(c.env, onFault(c, 'object-unavailable')),
  copies: c => copiesOf(c.env.OPENOVA_LEASES, onFault(c, 'copy-unavailable')),
})

export default { fetch: app.fetch }
