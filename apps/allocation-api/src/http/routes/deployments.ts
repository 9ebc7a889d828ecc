import {
  type Deployment,
  type DeploymentCreated,
  type DeploymentEvent,
  type DeploymentPlan,
  type DeploymentStarted,
  type DeploymentUnlocked,
  deploymentHistoryQuery,
  deploymentsQuery,
  lastEventId,
  removeQuery,
} from '@pool/contract'
import { type Context, Hono } from 'hono'
import * as z from 'zod'
import type { CallerWithToken } from '../../deployments/commands/call.ts'
import type { TailEvent } from '../../deployments/deployment-log.ts'
import type { DeploymentOperations } from '../../deployments/service.ts'
import { type ErrorOutcome, RETRY_AFTER_S, sendError } from '../errors.ts'
import type { Listener } from '../request-context.ts'
import {
  IDLE_COMMENT,
  type ListStreams,
  RETRY_FIELD,
  type StreamLimiter,
  sendListPage,
  sendStream,
  toEventText,
} from '../streams.ts'
import type { HttpEnv, OnStreamError } from '../types.ts'
import { getCaller, parseIdempotencyKey, readJson, readRequiredJson, validate } from '../validate.ts'

const BASE_PATH = '/api/v1/deployments'

const sendNotFound = (c: Context<HttpEnv>) => sendError(c, { kind: 'not-found', detail: 'No such deployment.' })

/** Ids are stored in lower case; RFC 9562 section 4 allows both cases. Other text is not the id of a deployment. */
const validateId = validate('param', z.object({ id: z.uuid().overwrite(id => id.toLowerCase()) }), sendNotFound)

/** An absent header means the same as the empty one of a new EventSource. */
const validateLastEventId = validate('header', z.object({ 'Last-Event-ID': lastEventId.prefault('') }))

/** In-cluster, any client can read any deployment, so the mail address of its owner is not part of it. */
const toVisible = ({ orgEmail, ...deployment }: Deployment, listener: Listener): Deployment =>
  listener === 'operator' && orgEmail !== undefined ? { ...deployment, orgEmail } : deployment

const toSseText = (event: TailEvent, listener: Listener): string => {
  if (event === 'idle') return IDLE_COMMENT
  if ('kind' in event) return toEventText(toVisible(event.deployment, listener), { event: 'done' })
  return event
    .map(({ seq, at, phase, level, message }) => {
      const data: DeploymentEvent = { time: at.toISOString(), phase, level, message }
      return toEventText(data, { id: seq })
    })
    .join('')
}

async function* toSseStream(events: AsyncIterable<TailEvent>, listener: Listener): AsyncGenerator<string, void, void> {
  yield RETRY_FIELD
  for await (const event of events) yield toSseText(event, listener)
}

/** `X-Accel-Buffering` keeps nginx and similar proxies from buffering lines. */
const STREAM_HEADERS = {
  'Content-Type': 'text/event-stream',
  'Cache-Control': 'no-cache',
  'X-Accel-Buffering': 'no',
}

const getCallerWithToken = (c: Context<HttpEnv>): CallerWithToken => ({
  caller: getCaller(c),
  token: c.req.header('X-Deployment-Token'),
})

const toStreamUrl = (id: string): string => `${BASE_PATH}/${id}/logs`

/** Texts of this resource for errors that other resources have too. */
const DETAILS: Readonly<Partial<Record<ErrorOutcome['kind'], string>>> = {
  'not-found': 'No such deployment.',
  'token-mismatch': 'Send the deploymentToken of this deployment as X-Deployment-Token.',
}

const sendRejection = (c: Context<HttpEnv>, outcome: ErrorOutcome) => {
  const { kind } = outcome
  const isTemporary = ['object-storage-unavailable', 'provisioning-unavailable', 'dns-unavailable'].includes(kind)
  return sendError(c, {
    ...(isTemporary ? { retryAfterSeconds: RETRY_AFTER_S } : {}),
    ...(DETAILS[kind] === undefined ? {} : { detail: DETAILS[kind] }),
    ...outcome,
  })
}

/** Separate, because only listeners that expose lists have this route. */
export const deploymentListRoutes = (deployments: DeploymentOperations, lists: ListStreams) =>
  new Hono<HttpEnv>().get('/', validate('query', deploymentsQuery), c =>
    sendListPage(c, lists, 'deployments', async () => {
      const { items, nextCursor } = await deployments.list(c.req.valid('query'))
      return { items: items.map(deployment => toVisible(deployment, c.env.listener)), nextCursor }
    }),
  )

const startOperation = async (
  c: Context<HttpEnv>,
  deployments: DeploymentOperations,
  operation: 'apply' | 'destroy',
  id: string,
) => {
  const json = await readJson(c)
  if (!json.ok) return sendError(c, json.error)
  const outcome = await deployments[operation](id, json.value, getCallerWithToken(c))
  if (outcome.kind !== 'started') return sendRejection(c, outcome)
  c.env.outcome = outcome.kind
  const body: DeploymentStarted = { id, status: outcome.status, streamURL: toStreamUrl(id) }
  return c.json(body, 202)
}

/** Separate, because only the operator listener has it. Mount it before the routes with an id. */
export const deploymentHistoryRoutes = (deployments: DeploymentOperations, lists: ListStreams) =>
  new Hono<HttpEnv>().get('/history', validate('query', deploymentHistoryQuery), c =>
    sendListPage(c, lists, 'entries', () => deployments.history(c.req.valid('query'))),
  )

/** Separate, because only the operator listener has it. */
export const deploymentUnlockRoutes = (deployments: DeploymentOperations) =>
  new Hono<HttpEnv>().post('/:id/unlock', validateId, async c => {
    const outcome = await deployments.unlock(c.req.valid('param').id, getCaller(c))
    if (outcome.kind !== 'unlocked') return sendRejection(c, outcome)
    c.env.outcome = outcome.kind
    const body: DeploymentUnlocked = { id: outcome.id, unlocked: outcome.isLifted }
    return c.json(body, 200)
  })

export const deploymentRoutes = (
  deployments: DeploymentOperations,
  logs: StreamLimiter,
  onStreamError: OnStreamError,
) =>
  new Hono<HttpEnv>()
    .post('/', async c => {
      const key = parseIdempotencyKey(c)
      if (!key.ok) return sendError(c, key.error)
      const json = await readRequiredJson(c)
      if (!json.ok) return sendError(c, json.error)
      const outcome = await deployments.create(json.value, getCaller(c), key.value)
      if (outcome.kind !== 'created') return sendRejection(c, outcome)
      c.env.outcome = outcome.kind
      const { id, deploymentToken } = outcome
      c.env.deployment = id
      const body: DeploymentCreated = {
        id,
        status: 'provisioning',
        streamURL: toStreamUrl(id),
        deploymentToken,
      }
      return c.json(body, 201, { Location: `${BASE_PATH}/${id}` })
    })

    .get('/:id', validateId, async c => {
      const outcome = await deployments.get(c.req.valid('param').id)
      if (outcome.kind !== 'found') return sendNotFound(c)
      c.env.outcome = outcome.kind
      return c.json(toVisible(outcome.deployment, c.env.listener), 200)
    })

    .delete('/:id', validateId, validate('query', removeQuery), async c => {
      const { abandon, cancel } = c.req.valid('query')
      const { id } = c.req.valid('param')
      const outcome =
        cancel === 'true'
          ? await deployments.cancel(id, getCallerWithToken(c))
          : await deployments.remove(id, abandon === 'true', getCallerWithToken(c))
      if (outcome.kind !== 'removed' && outcome.kind !== 'cancelling') return sendRejection(c, outcome)
      c.env.outcome = outcome.kind
      return outcome.kind === 'removed' ? c.body(null, 204) : c.json(toVisible(outcome.deployment, c.env.listener), 202)
    })

    .post('/:id/apply', validateId, c => startOperation(c, deployments, 'apply', c.req.valid('param').id))
    .post('/:id/destroy', validateId, c => startOperation(c, deployments, 'destroy', c.req.valid('param').id))

    .post('/:id/plan', validateId, async c => {
      const json = await readJson(c)
      if (!json.ok) return sendError(c, json.error)
      const { signal } = c.req.raw
      const outcome = await deployments.plan(c.req.valid('param').id, json.value, getCallerWithToken(c), signal)
      if (outcome.kind !== 'planned') return sendRejection(c, outcome)
      c.env.outcome = outcome.kind
      const { operation, text, json: plan } = outcome
      const body: DeploymentPlan = { operation, text, json: plan }
      return c.json(body, 200)
    })

    .get('/:id/logs', validateId, validateLastEventId, async c => {
      const permit = logs.acquire()
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
      if (outcome.kind !== 'following') {
        permit.release()
        return sendNotFound(c)
      }
      c.env.outcome = outcome.kind
      return sendStream(c, toSseStream(outcome.events, c.env.listener), permit, onStreamError, STREAM_HEADERS)
    })
