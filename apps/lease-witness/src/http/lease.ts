import type { Lease } from '@pool/contract/lease'
import { type Context, Hono } from 'hono'
import type { LeaseRequest } from '../lease/lease.ts'
import { knownGenerations } from '../lease/precondition.ts'
import { waitSeconds } from '../lease/prefer-header.ts'
import type { ReadOutcome, WriteOutcome } from '../lease-service.ts'
import type { Deps } from './context.ts'
import { problem, unavailable } from './errors.ts'
import type { HttpEnv } from './types.ts'
import { type Parsed, putOf, releaseOf, slotOf } from './validate.ts'

/** The entity tag of the answer, and what the log line tells of it. */
const tag = (c: Context<HttpEnv>, outcome: string, { generation }: Lease): void => {
  c.set('outcome', outcome)
  c.set('generation', generation)
  c.header('ETag', `"${generation}"`)
}

const show = (c: Context<HttpEnv>, outcome: string, lease: Lease, status: 200 | 412) => {
  tag(c, outcome, lease)
  return c.json(lease, status)
}

const answerWrite = (c: Context<HttpEnv>, outcome: WriteOutcome) => {
  switch (outcome.kind) {
    case 'granted':
      return show(c, outcome.kind, outcome.lease, 200)
    case 'released':
      c.set('generation', outcome.lease.generation)
      c.set('outcome', outcome.kind)
      return c.body(null, 204)
    case 'absent':
      c.set('outcome', 'nothing-to-release')
      return c.body(null, 204)
    case 'refused':
      return show(c, `refused-${outcome.why}`, outcome.lease, 412)
    default:
      return unavailable(c, outcome)
  }
}

/** Whether the slot's object has answered: it has waited only then. */
const isTold = ({ kind }: ReadOutcome): boolean => kind === 'lease' || kind === 'not-modified' || kind === 'absent'

export const leaseRoutes = (deps: Deps): Hono<HttpEnv> => {
  const app = new Hono<HttpEnv>()

  app.get('/:slot{.+}', async c => {
    const at = slotOf(c)
    if (!at.ok) return problem(c, at.refused)
    const witness = deps.witness(c)
    const known = knownGenerations(c.req.header('If-None-Match'))
    // Who knows nothing yet is answered at once, whatever it prefers.
    const seconds = known.length > 0 ? waitSeconds(c.req.header('Prefer')) : 0
    const wait = seconds > 0 ? { id: crypto.randomUUID(), forMs: seconds * 1_000 } : undefined
    c.set('request', { known, ...wait })
    if (wait) {
      c.req.raw.signal.addEventListener('abort', () => c.executionCtx.waitUntil(witness.forget(at.value, wait.id)))
    }
    const outcome = await witness.read(at.value, { known, wait })
    if (wait && isTold(outcome)) c.header('Preference-Applied', `wait=${seconds}`)
    switch (outcome.kind) {
      case 'lease':
        return show(c, 'read', outcome.lease, 200)
      case 'not-modified':
        tag(c, outcome.kind, outcome.lease)
        return c.body(null, 304)
      case 'absent':
        return problem(c, { kind: 'not-found', detail: 'No lease was ever written to this slot.' })
      default:
        return unavailable(c, outcome)
    }
  })

  const write = (requestOf: (c: Context<HttpEnv>) => Parsed<LeaseRequest>) => async (c: Context<HttpEnv>) => {
    const at = slotOf(c)
    if (!at.ok) return problem(c, at.refused)
    const request = requestOf(c)
    if (!request.ok) return problem(c, request.refused)
    c.set('request', request.value)
    return answerWrite(c, await deps.witness(c).write(at.value, request.value))
  }
  app.put('/:slot{.+}', write(putOf))
  app.delete('/:slot{.+}', write(releaseOf))
  return app
}
