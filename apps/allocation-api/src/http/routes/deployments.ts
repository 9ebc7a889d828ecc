import {
  type DeploymentCreated,
  type DeploymentEvent,
  deploymentsQuery,
  encodeCursor,
  lastEventId,
} from '@pool/contract'
import { type Context, Hono } from 'hono'
import { z } from 'zod'
import type { TailEvent } from '../../deployments/deployment-log.ts'
import type { DeploymentService } from '../../deployments/service.ts'
import { RETRY_AFTER_S, sendError } from '../errors.ts'
import { type EventStreams, eventStream, IDLE_COMMENT, RETRY_FIELD, toEventText } from '../sse.ts'
import type { HttpEnv, OnStreamError } from '../types.ts'
import { getCaller, parseIdempotencyKey, readRequiredJson, validate } from '../validate.ts'

export type DeploymentOperations = Pick<DeploymentService, 'create' | 'get' | 'list' | 'remove' | 'tailLog'>

const BASE_PATH = '/api/v1/deployments'

const sendNotFound = (c: Context<HttpEnv>) => sendError(c, { kind: 'not-found', detail: 'No such deployment.' })

/** Ids are stored in lower case; RFC 9562 section 4 allows both cases. Other text is not the id of a deployment. */
const validateId = validate('param', z.object({ id: z.uuid().overwrite(id => id.toLowerCase()) }), sendNotFound)

/** An absent header means the same as the empty one of a new EventSource. */
const validateLastEventId = validate('header', z.object({ 'Last-Event-ID': lastEventId.prefault('') }))

const toSseText = (event: TailEvent): string => {
  if (event === 'idle') return IDLE_COMMENT
  if ('kind' in event) return toEventText(event.deployment, { event: 'done' })
  return event
    .map(({ seq, at, phase, level, message }) => {
      const data: DeploymentEvent = { time: at.toISOString(), phase, level, message }
      return toEventText(data, { id: seq })
    })
    .join('')
}

async function* toSseStream(events: AsyncIterable<TailEvent>): AsyncGenerator<string, void, void> {
  yield RETRY_FIELD
  for await (const event of events) yield toSseText(event)
}

/** `X-Accel-Buffering` keeps nginx and similar proxies from buffering lines. */
const STREAM_HEADERS = {
  'Content-Type': 'text/event-stream',
  'Cache-Control': 'no-cache',
  'X-Accel-Buffering': 'no',
}

/** Separate, because only listeners that expose lists have this route. */
export const deploymentListRoutes = (deployments: Pick<DeploymentOperations, 'list'>) =>
  new Hono<HttpEnv>().get('/', validate('query', deploymentsQuery), async c => {
    const { nextCursor, ...page } = await deployments.list(c.req.valid('query'))
    c.set('outcome', 'listed')
    return c.json({ ...page, ...(nextCursor === undefined ? {} : { nextCursor: encodeCursor(nextCursor) }) }, 200)
  })

export const deploymentRoutes = (
  deployments: DeploymentOperations,
  streams: EventStreams,
  onStreamError: OnStreamError,
) =>
  new Hono<HttpEnv>()
    .post('/', async c => {
      const key = parseIdempotencyKey(c)
      if (!key.ok) return sendError(c, key.error)
      const json = await readRequiredJson(c)
      if (!json.ok) return sendError(c, json.error)
      const outcome = await deployments.create(json.value, getCaller(c), key.value)
      if (outcome.kind === 'object-storage-unavailable' || outcome.kind === 'provisioning-unavailable') {
        return sendError(c, { retryAfterSeconds: RETRY_AFTER_S, ...outcome })
      }
      if (outcome.kind !== 'created') return sendError(c, outcome)
      c.set('outcome', outcome.kind)
      const { id, deploymentToken } = outcome
      const streamURL = `${BASE_PATH}/${id}/logs`
      const body: DeploymentCreated = { id, status: 'provisioning', streamURL, deploymentToken }
      return c.json(body, 201, { Location: `${BASE_PATH}/${id}` })
    })

    .get('/:id', validateId, async c => {
      const outcome = await deployments.get(c.req.valid('param').id)
      if (outcome.kind !== 'found') return sendNotFound(c)
      c.set('outcome', outcome.kind)
      return c.json(outcome.deployment, 200)
    })

    .delete('/:id', validateId, async c => {
      const outcome = await deployments.remove(c.req.valid('param').id)
      if (outcome.kind === 'not-found') return sendNotFound(c)
      c.set('outcome', outcome.kind)
      return outcome.kind === 'removed' ? c.body(null, 204) : c.json(outcome.deployment, 202)
    })

    .get('/:id/logs', validateId, validateLastEventId, async c => {
      const permit = streams.acquire()
      if (!permit) {
        const detail = 'Too many open log streams; retry later.'
        return sendError(c, { kind: 'provisioning-unavailable', detail, retryAfterSeconds: RETRY_AFTER_S })
      }
      const after = c.req.valid('header')['Last-Event-ID']
      const outcome = await deployments
        .tailLog(c.req.valid('param').id, after, permit.signal)
        .catch((error: unknown) => {
          permit.release()
          throw error
        })
      const isStreamed = outcome.kind === 'following' && c.req.method !== 'HEAD'
      if (!isStreamed) permit.release()
      if (outcome.kind !== 'following') return sendNotFound(c)
      c.set('outcome', outcome.kind)
      if (!isStreamed) return c.body(null, 200, STREAM_HEADERS)
      const body = eventStream(toSseStream(outcome.events), permit, {
        onStreamError: error => onStreamError(error, c.get('requestId')),
        abort: () => c.env.outgoing?.destroy(),
      })
      return c.body(body, 200, STREAM_HEADERS)
    })
