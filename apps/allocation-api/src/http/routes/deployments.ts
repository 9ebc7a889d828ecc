import {
  type Deployment,
  type DeploymentCreated,
  type DeploymentEvent,
  type DeploymentPlan,
  type DeploymentStarted,
  type DeploymentUnlocked,
  lastEventId,
  operations,
} from '@pool/contract'
import type { Context } from 'hono'
import type { CallerWithToken } from '../../deployments/commands/call.ts'
import type { TailEvent } from '../../deployments/deployment-log.ts'
import type { PlanOutcome } from '../../deployments/domain/types.ts'
import type { DeploymentOperations } from '../../deployments/service.ts'
import {
  type ErrorOutcome,
  getCaller,
  getDeploymentToken,
  type Handlers,
  type HttpEnv,
  type Listener,
  parse,
  parseIdempotencyKey,
  RETRY_AFTER_S,
  readJson,
  readRequiredJson,
  sendError,
  toProblem,
  validated,
} from '../request.ts'
import {
  createStreamLimiter,
  EVENT_STREAM_HEADERS,
  IDLE_COMMENT,
  type ListStreams,
  RETRY_FIELD,
  type StreamLimiter,
  sendListPage,
  sendStream,
  toEventText,
} from '../streams.ts'

const BASE_PATH = '/api/v1/deployments'

const sendNotFound = (c: Context<HttpEnv>) => sendError(c, { kind: 'not-found', detail: 'No such deployment.' })

/** An absent header means the same as the empty one of a new EventSource. */
const optionalLastEventId = lastEventId.prefault('')

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

const getCallerWithToken = (c: Context<HttpEnv>, key?: string): CallerWithToken => ({
  caller: getCaller(c),
  token: getDeploymentToken(c),
  key,
})

const toStreamUrl = (id: string): string => `${BASE_PATH}/${id}/logs`

/** Texts of this resource for errors that other resources have too. */
const DETAILS: Readonly<Partial<Record<ErrorOutcome['kind'], string>>> = {
  'not-found': 'No such deployment.',
  'token-mismatch': 'Send the deploymentToken of this deployment as X-Deployment-Token.',
}

const withDetail = (outcome: ErrorOutcome): ErrorOutcome => {
  const { kind } = outcome
  const isTemporary = ['object-storage-unavailable', 'provisioning-unavailable', 'dns-unavailable'].includes(kind)
  return {
    ...(isTemporary ? { retryAfterSeconds: RETRY_AFTER_S } : {}),
    ...(DETAILS[kind] === undefined ? {} : { detail: DETAILS[kind] }),
    ...outcome,
  }
}

const sendRejection = (c: Context<HttpEnv>, outcome: ErrorOutcome) => sendError(c, withDetail(outcome))

/** Proxies commonly close a connection after a minute of silence. */
const PLAN_IDLE_MS = 15_000
/** JSON can begin with white space. */
const IDLE_SPACE = '\n'
const PLAN_HEADERS = { 'Content-Type': 'application/json', 'X-Accel-Buffering': 'no' }
/** Above the plans that a process runs and queues. */
const planStreams = createStreamLimiter()

const pause = (ms: number) => new Promise<'idle'>(resolve => setTimeout(resolve, ms, 'idle').unref())

const toPlanBody = ({ kind: _, ...plan }: Extract<PlanOutcome, { kind: 'planned' }>): DeploymentPlan => plan

async function* toPlanText(
  c: Context<HttpEnv>,
  planning: Promise<PlanOutcome>,
  operation: DeploymentPlan['operation'],
): AsyncGenerator<string, void, void> {
  let outcome: PlanOutcome | 'idle' = 'idle'
  while (outcome === 'idle') {
    yield IDLE_SPACE
    outcome = await Promise.race([planning, pause(PLAN_IDLE_MS)])
  }
  if (outcome.kind === 'planned') {
    yield JSON.stringify(toPlanBody(outcome))
    return
  }
  const problem = toProblem(withDetail(outcome), c.env)
  const failed: DeploymentPlan = { operation, text: `Error: ${problem.detail}\n`, json: null, problem }
  yield JSON.stringify(failed)
}

const startOperation = async (
  c: Context<HttpEnv>,
  deployments: DeploymentOperations,
  operation: 'apply' | 'destroy',
  id: string,
) => {
  const key = parseIdempotencyKey(c)
  if (!key.ok) return sendError(c, key.error)
  const json = await readJson(c)
  if (!json.ok) return sendError(c, json.error)
  const outcome = await deployments[operation](id, json.value, getCallerWithToken(c, key.value))
  if (outcome.kind !== 'started') return sendRejection(c, outcome)
  c.env.outcome = outcome.kind
  const body: DeploymentStarted = { id, status: outcome.status, streamURL: toStreamUrl(id) }
  return c.json(body, 202)
}

export interface DeploymentStreams {
  readonly lists: ListStreams
  readonly logs: StreamLimiter
}

export const deploymentHandlers = (
  deployments: DeploymentOperations,
  { lists, logs }: DeploymentStreams,
): Pick<
  Handlers,
  | 'createDeployment'
  | 'listDeployments'
  | 'readDeploymentHistory'
  | 'getDeployment'
  | 'applyDeployment'
  | 'planDeployment'
  | 'destroyDeployment'
  | 'unlockDeployment'
  | 'removeDeployment'
  | 'followDeployment'
> => ({
  createDeployment: async c => {
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
  },

  listDeployments: validated(operations.listDeployments, (c, { query }) =>
    sendListPage(c, lists, 'deployments', async () => {
      const { items, nextCursor } = await deployments.list(query)
      return { items: items.map(deployment => toVisible(deployment, c.env.listener)), nextCursor }
    }),
  ),

  readDeploymentHistory: validated(operations.readDeploymentHistory, (c, { query }) =>
    sendListPage(c, lists, 'entries', () => deployments.history(query)),
  ),

  getDeployment: validated(operations.getDeployment, async (c, { path: { id } }) => {
    const outcome = await deployments.get(id)
    if (outcome.kind !== 'found') return sendNotFound(c)
    c.env.outcome = outcome.kind
    return c.json(toVisible(outcome.deployment, c.env.listener), 200)
  }),

  removeDeployment: validated(
    operations.removeDeployment,
    async (c, { path: { id }, query: { abandon, cancel, force } }) => {
      const key = parseIdempotencyKey(c)
      if (!key.ok) return sendError(c, key.error)
      const caller = getCallerWithToken(c, key.value)
      const outcome =
        cancel === 'true'
          ? await deployments.cancel(id, caller, force === 'true')
          : await deployments.remove(id, abandon === 'true', caller)
      if (outcome.kind !== 'removed' && outcome.kind !== 'cancelling') return sendRejection(c, outcome)
      c.env.outcome = outcome.kind
      return outcome.kind === 'removed' ? c.body(null, 204) : c.json(toVisible(outcome.deployment, c.env.listener), 202)
    },
  ),

  applyDeployment: validated(operations.applyDeployment, (c, { path: { id } }) =>
    startOperation(c, deployments, 'apply', id),
  ),
  destroyDeployment: validated(operations.destroyDeployment, (c, { path: { id } }) =>
    startOperation(c, deployments, 'destroy', id),
  ),

  planDeployment: validated(operations.planDeployment, async (c, { path: { id } }) => {
    const json = await readJson(c)
    if (!json.ok) return sendError(c, json.error)
    const planning = deployments.plan(id, json.value, getCallerWithToken(c), c.req.raw.signal)
    const early = await Promise.race([planning, pause(PLAN_IDLE_MS)])
    const permit = early === 'idle' ? planStreams.acquire(null) : null
    if (permit) {
      c.env.outcome = 'planning'
      planning.catch(() => {})
      const operation = Object(json.value).operation === 'destroy' ? 'destroy' : 'apply'
      return sendStream(c, toPlanText(c, planning, operation), permit, lists.onStreamError, PLAN_HEADERS)
    }
    const outcome = await planning
    if (outcome.kind !== 'planned') return sendRejection(c, outcome)
    c.env.outcome = outcome.kind
    return c.json(toPlanBody(outcome), 200)
  }),

  unlockDeployment: validated(operations.unlockDeployment, async (c, { path: { id } }) => {
    const key = parseIdempotencyKey(c)
    if (!key.ok) return sendError(c, key.error)
    const outcome = await deployments.unlock(id, getCaller(c), key.value)
    if (outcome.kind !== 'unlocked') return sendRejection(c, outcome)
    c.env.outcome = outcome.kind
    const body: DeploymentUnlocked = { id: outcome.id, unlocked: outcome.isLifted }
    return c.json(body, 200)
  }),

  followDeployment: validated(operations.followDeployment, async (c, { path: { id } }) => {
    const after = parse(optionalLastEventId, c.req.header('Last-Event-ID'))
    if (!after.ok) return sendError(c, after.error)
    const permit = logs.acquire(c.env.address)
    if (!permit) {
      const detail = 'Too many open log streams; retry later.'
      return sendError(c, { kind: 'provisioning-unavailable', detail, retryAfterSeconds: RETRY_AFTER_S })
    }
    const outcome = await deployments.tailLog(id, after.value, permit.signal).catch((error: unknown) => {
      permit.release()
      throw error
    })
    if (outcome.kind !== 'following') {
      permit.release()
      return sendNotFound(c)
    }
    c.env.outcome = outcome.kind
    return sendStream(c, toSseStream(outcome.events, c.env.listener), permit, lists.onStreamError, EVENT_STREAM_HEADERS)
  }),
})
