import {
  type DeploymentCreated,
  type DeploymentEvent,
  deploymentsQuery,
  encodeCursor,
  lastEventId,
} from '@pool/contract'
import { type Context, Hono } from 'hono'
import { z } from 'zod'
import type { DeploymentService } from '../../deployments/service.ts'
import type { TailEvent } from '../../deployments/tail-log.ts'
import { problem, RETRY_AFTER_S } from '../errors.ts'
import { type EventStreams, eventStream, eventText, idleText, retryText } from '../sse.ts'
import type { HttpEnv, OnStreamError } from '../types.ts'
import { parse, readKeyedJson } from '../validate.ts'

export type DeploymentVerbs = Pick<DeploymentService, 'create' | 'get' | 'list' | 'remove' | 'tailLog'>

const path = '/api/v1/deployments'

/** In small letters, as they are kept (RFC 9562 section 4 takes both); null: no deployment can have it. */
const idOf = (c: Context<HttpEnv>): string | null => z.uuid().safeParse(c.req.param('id')).data?.toLowerCase() ?? null

const notFound = (c: Context<HttpEnv>) => problem(c, { kind: 'not-found', detail: 'There is no such deployment.' })

const toSseText = (event: TailEvent): string => {
  if (event === 'idle') return idleText
  if ('kind' in event) return eventText(event.deployment, { event: 'done' })
  return event
    .map(({ seq, at, phase, level, message }) => {
      const data: DeploymentEvent = { time: at.toISOString(), phase, level, message }
      return eventText(data, { id: seq })
    })
    .join('')
}

async function* toSseStream(events: AsyncIterable<TailEvent>): AsyncGenerator<string, void, void> {
  yield retryText
  for await (const event of events) yield toSseText(event)
}

/** `X-Accel-Buffering`: nginx, and proxies like it, would keep lines back until they have many. */
const streamHeaders = {
  'Content-Type': 'text/event-stream',
  'Cache-Control': 'no-cache',
  'X-Accel-Buffering': 'no',
}

/** All of them: with the other lists, where those are answered. */
export const deploymentListRoutes = (verbs: Pick<DeploymentVerbs, 'list'>) =>
  new Hono<HttpEnv>().get('/', async c => {
    const query = parse(deploymentsQuery, c.req.query())
    if (!query.ok) return problem(c, query.refused)
    const { deployments, nextCursor } = await verbs.list(query.value)
    c.set('outcome', 'listed')
    return c.json({ deployments, ...(nextCursor === undefined ? {} : { nextCursor: encodeCursor(nextCursor) }) }, 200)
  })

export const deploymentRoutes = (verbs: DeploymentVerbs, streams: EventStreams, onStreamError: OnStreamError) =>
  new Hono<HttpEnv>()
    .post('/', async c => {
      const request = await readKeyedJson(c)
      if (!request.ok) return problem(c, request.refused)
      const { json, caller, key } = request.value
      const outcome = await verbs.create(json, caller, key)
      if (outcome.kind === 'object-storage-unavailable' || outcome.kind === 'provisioning-unavailable') {
        return problem(c, { retryAfterSeconds: RETRY_AFTER_S, ...outcome })
      }
      if (outcome.kind !== 'created') return problem(c, outcome)
      c.set('outcome', outcome.kind)
      const { id } = outcome
      const body: DeploymentCreated = { id, status: 'provisioning', streamURL: `${path}/${id}/logs` }
      return c.json(body, 201, { Location: `${path}/${id}` })
    })

    .get('/:id', async c => {
      const id = idOf(c)
      const outcome = id === null ? null : await verbs.get(id)
      if (outcome?.kind !== 'found') return notFound(c)
      c.set('outcome', outcome.kind)
      return c.json(outcome.deployment, 200)
    })

    .delete('/:id', async c => {
      const id = idOf(c)
      const outcome = id === null ? null : await verbs.remove(id)
      if (outcome === null || outcome.kind === 'not-found') return notFound(c)
      c.set('outcome', outcome.kind)
      return outcome.kind === 'removed' ? c.body(null, 204) : c.json(outcome.deployment, 202)
    })

    .get('/:id/logs', async c => {
      const id = idOf(c)
      if (id === null) return notFound(c)
      const after = parse(lastEventId, c.req.header('Last-Event-ID') ?? '')
      if (!after.ok) return problem(c, after.refused)
      const seat = streams.enter()
      if (!seat) {
        const detail = 'Too many follow deployments just now.'
        return problem(c, { kind: 'provisioning-unavailable', detail, retryAfterSeconds: RETRY_AFTER_S })
      }
      const outcome = await verbs.tailLog(id, after.value, seat.signal).catch((error: unknown) => {
        seat.leave()
        throw error
      })
      const isFollowed = outcome.kind === 'following' && c.req.method !== 'HEAD'
      if (!isFollowed) seat.leave()
      if (outcome.kind !== 'following') return notFound(c)
      c.set('outcome', outcome.kind)
      if (!isFollowed) return c.body(null, 200, streamHeaders)
      const body = eventStream(toSseStream(outcome.events), seat, {
        onStreamError: error => onStreamError(error, c.get('requestId')),
        breakOff: () => c.env.outgoing?.destroy(),
      })
      return c.body(body, 200, streamHeaders)
    })
