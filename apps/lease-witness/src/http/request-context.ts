import { createMiddleware } from 'hono/factory'
import { isLogged, log } from '../log.ts'
import type { HttpEnv } from './types.ts'

/** A caller's own id is kept when it can stand in a log line and a header as it is. */
const saneId = /^[A-Za-z0-9._:/+=@-]{1,128}$/
/** A slot has no more bytes. A longer header is left out as a whole: its part could be a part of a token. */
const LOGGED_HEADER = 506

const leaseSlotOf = (header: string | undefined): string | undefined =>
  header === undefined || header.length <= LOGGED_HEADER ? header : `<${header.length} characters>`

/** Gives each request its id, and writes its log line. */
export const requestContext = createMiddleware<HttpEnv>(async (c, next) => {
  const started = Date.now()
  const given = c.req.header('X-Request-Id') ?? ''
  const requestId = saneId.test(given) ? given : crypto.randomUUID()
  c.set('requestId', requestId)
  c.header('X-Request-Id', requestId)
  c.header('Cache-Control', 'no-store')
  await next()
  const { status } = c.res
  log(c.env, status >= 500 ? 'error' : 'info', {
    msg: 'answered',
    requestId,
    method: c.req.method,
    slot: c.get('slot'),
    leaseSlot: leaseSlotOf(c.req.header('X-Lease-Slot')),
    generation: c.get('generation'),
    outcome: c.get('outcome'),
    status,
    // The clock of a worker stands still but for its waiting; of a wait, this is the time.
    ms: Date.now() - started,
    ...(isLogged(c.env, 'debug') ? { request: c.get('request') } : {}),
  })
})
