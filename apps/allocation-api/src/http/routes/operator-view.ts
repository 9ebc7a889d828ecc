import { operations, type ServiceSettings, witnessReleaseRequest, type ZonesResponse } from '@pool/contract'
import type { Context } from 'hono'
import type { Pools } from '../../naming/naming.ts'
import { type ChangeState, diffChanges, formatEventId, parseEventId } from '../../operator/domain/change.ts'
import type { Samples } from '../../operator/samples.ts'
import type { Witness, WitnessFailure } from '../../operator/witness.ts'
import type { ZoneStates } from '../../reconciler/reconciler.ts'
import type { ZoneState } from '../../reconciler/repository.ts'
import {
  type Handlers,
  type HttpEnv,
  type OnStreamError,
  parseBody,
  RETRY_AFTER_S,
  sendError,
  validated,
} from '../request.ts'
import { EVENT_STREAM_HEADERS, IDLE_COMMENT, RETRY_FIELD, type StreamLimiter, sendStream } from '../streams.ts'

export interface OperatorView {
  readonly settings: () => ServiceSettings
  readonly pools: () => Pools
  readonly reconciler: ZoneStates
  readonly readOverview: Samples['readOverview']
  readonly readChanges: () => Promise<ChangeState>
  readonly witness: Witness
  /** Resolves after `ms`, or when the signal aborts. */
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>
}

/** How often a stream of changes looks for them. */
const POLL_MS = 1_000
/** Polls without a change after which a comment keeps the connection open. */
const IDLE_POLLS = 15
/** Polls after which a stream ends, so that a session that has ended does not keep it. */
const MAX_POLLS = 300

async function* toChangeText(
  { readChanges, sleep }: Pick<OperatorView, 'readChanges' | 'sleep'>,
  first: ChangeState,
  known: ChangeState | null,
  signal: AbortSignal,
): AsyncGenerator<string, void, void> {
  yield RETRY_FIELD
  let current = first
  let topics = diffChanges(known, current)
  let idlePolls = 0
  for (let polls = 0; polls < MAX_POLLS && !signal.aborted; polls += 1) {
    if (topics.length > 0) {
      const data = JSON.stringify({ topics })
      yield `id: ${formatEventId(current)}\ndata: ${data}\n\n`
      idlePolls = 0
    } else if (idlePolls === IDLE_POLLS) {
      yield IDLE_COMMENT
      idlePolls = 0
    }
    await sleep(POLL_MS, signal)
    // While the database is unavailable, nothing can be read anyway.
    const next = await readChanges().catch(() => current)
    topics = diffChanges(current, next)
    current = next
    idlePolls += 1
  }
}

const toZone = ({ managed, draining }: Pools, row: ZoneState): ZonesResponse['zones'][number] => {
  const { zone, pendingNames, oldestPendingAt, stopCause, stoppedAt, syncedAt, driftCheckedAt, nextDriftCheckAt } = row
  return {
    zone,
    status: managed.includes(zone) ? 'managed' : draining.includes(zone) ? 'draining' : 'former',
    pendingNames,
    ...(oldestPendingAt ? { oldestPendingAt: oldestPendingAt.toISOString() } : {}),
    failing: Object.entries(row.failing).map(([cause, names]) => ({ cause, names })),
    ...(stopCause ? { stopped: stopCause } : {}),
    ...(stoppedAt ? { stoppedAt: stoppedAt.toISOString() } : {}),
    ...(syncedAt ? { syncedAt: syncedAt.toISOString() } : {}),
    ...(driftCheckedAt ? { driftCheckedAt: driftCheckedAt.toISOString() } : {}),
    ...(nextDriftCheckAt ? { nextDriftCheckAt: nextDriftCheckAt.toISOString() } : {}),
  }
}

/** What operators see of the whole installation. */
export const operatorViewHandlers = (
  view: OperatorView,
  streams: StreamLimiter,
  onStreamError: OnStreamError,
): Pick<Handlers, 'getSettings' | 'listZones' | 'readOverview' | 'followChanges'> => ({
  getSettings: c => c.json(view.settings(), 200),
  listZones: async c => {
    const settings = view.settings()
    const zones = await view.reconciler.listZoneStates()
    const body: ZonesResponse = {
      provider: {
        kind: settings.dnsProvider,
        writesZones: settings.writesZones,
        circuitOpen: view.reconciler.isCircuitOpen(),
      },
      zones: zones.map(row => toZone(view.pools(), row)),
    }
    return c.json(body, 200)
  },
  readOverview: validated(operations.readOverview, async (c, { query }) => c.json(await view.readOverview(query), 200)),
  followChanges: async c => {
    const permit = streams.acquire(c.env.address)
    if (!permit) return sendError(c, { kind: 'too-many-readers', retryAfterSeconds: RETRY_AFTER_S })
    try {
      const first = await view.readChanges()
      const known = parseEventId(c.req.header('Last-Event-ID'))
      const text = toChangeText(view, first, known, permit.signal)
      return sendStream(c, text, permit, onStreamError, EVENT_STREAM_HEADERS)
    } catch (error) {
      permit.release()
      throw error
    }
  },
})

const sendFailure = (c: Context<HttpEnv>, failure: WitnessFailure) =>
  sendError(c, {
    ...failure,
    ...(failure.kind === 'witness-unavailable' ? { retryAfterSeconds: RETRY_AFTER_S } : {}),
  })

/** The few requests to the lease witness that operators need. */
export const leaseHandlers = (
  witness: Witness,
): Pick<Handlers, 'listWitnessLeases' | 'readWitnessHistory' | 'releaseWitnessLease'> => ({
  listWitnessLeases: validated(operations.listWitnessLeases, async (c, { query }) => {
    const outcome = await witness.list(query)
    return outcome.kind === 'done' ? c.json(outcome.value, 200) : sendFailure(c, outcome)
  }),
  readWitnessHistory: validated(operations.readWitnessHistory, async (c, { query }) => {
    const outcome = await witness.history(query.slot)
    return outcome.kind === 'done' ? c.json(outcome.value, 200) : sendFailure(c, outcome)
  }),
  releaseWitnessLease: async c => {
    const body = await parseBody(c, witnessReleaseRequest)
    if (!body.ok) return sendError(c, body.error)
    const outcome = await witness.release(body.value)
    if (outcome.kind !== 'done') return sendFailure(c, outcome)
    c.env.outcome = 'released'
    return c.body(null, 204)
  },
})
