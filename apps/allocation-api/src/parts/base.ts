import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { isDatabaseReadOnly, isDatabaseUnavailable, NotWrittenError } from '@pool/runtime/database/errors'
import { createMetricsRegistry } from '@pool/runtime/service/metrics-registry'
import { SharedLimit } from '@pool/runtime/service/shared-limit'
import { createClientAddress } from '../http/sender.ts'
import { createStreamLimiter } from '../http/streams.ts'
import { createPageQueue } from '../lib/paginate.ts'
import { createRateLimiter, toRateLimitKey } from '../lib/rate-limiter.ts'
import { reservedLabels } from '../naming/reserved-labels.ts'
import { createObserver, type Log } from '../observability/log.ts'
import { createMetrics } from '../observability/metrics.ts'
import type { ServiceConfig } from '../service-config.ts'
import { MAX_LIMITED_CLIENTS, now } from './part.ts'

export type Phase = 'starting' | 'ready' | 'draining'

const VERSION = '1.0.0'
/** Open lists and streams of one client address. */
const PER_CLIENT = 10
/** The console's build: beside the bundle of the service, or in the app of the console for the sources. */
const CONSOLE_FOLDER = import.meta.filename.endsWith('.ts')
  ? join(import.meta.dirname, '../../../console/dist')
  : join(import.meta.dirname, 'console')

export type Base = Awaited<ReturnType<typeof createBase>>

/** What every part reports to, and the phase of the service. */
export const createBase = async (config: ServiceConfig, log: Log, nodeVersion: string) => {
  let phase: Phase = 'starting'
  const stopping = new AbortController()
  const metrics = createMetrics(createMetricsRegistry(), {
    version: VERSION,
    nodeVersion,
    providerKind: config.dnsProvider.kind,
  })
  // The import costs start time and memory.
  const tracing = config.tracing && (await import('../observability/tracing.ts')).startTracing(config.tracing, VERSION)
  const tracer = tracing?.tracer ?? null
  const observer = createObserver(log, metrics, { now, isDatabaseUnavailable })

  const limitWrites =
    config.clientWritesPerMinute === null
      ? null
      : createRateLimiter({ perMinute: config.clientWritesPerMinute, maxCallers: MAX_LIMITED_CLIENTS })
  const createStreams = (perClient: number) => {
    const ofClients = new SharedLimit({ total: Number.POSITIVE_INFINITY, perClient })
    const withoutEnd = { ofClients, stopping: stopping.signal }
    return {
      logs: createStreamLimiter(withoutEnd),
      lists: createStreamLimiter({ ofClients }),
      changes: createStreamLimiter(withoutEnd),
      files: createStreamLimiter({ ofClients }),
      inTurn: createPageQueue({ now, sleep: ms => sleep(ms, undefined, { ref: false }) }),
    }
  }
  return {
    version: VERSION,
    nodeVersion,
    log,
    metrics,
    observer,
    tracer,
    phase: () => phase,
    setPhase(next: Phase) {
      phase = next
    },
    /** Ends the responses that have no end of their own. */
    endStreams: () => stopping.abort(),
    routes: {
      consoleFolder: config.consoleFolder ?? CONSOLE_FOLDER,
      clientAddress: createClientAddress(config.trustedProxies),
      browsers: config.browsers,
      limitWrites: limitWrites && ((address: string | null) => limitWrites(toRateLimitKey(address), now())),
      streams: { 'in-cluster': createStreams(PER_CLIENT), operator: createStreams(Number.POSITIVE_INFINITY) },
      reservedLabels,
      metrics,
      observer,
      tracer,
      isUnavailable: isDatabaseUnavailable,
      isReadOnly: isDatabaseReadOnly,
      isNotWritten: (error: unknown) => error instanceof NotWrittenError,
    },
    close: async () => tracing?.stop(),
  }
}
