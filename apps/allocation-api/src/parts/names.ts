import { createNameReader } from '../allocation/name-details.ts'
import { createNameSearch } from '../allocation/name-search.ts'
import { createAllocationReader } from '../allocation/reader.ts'
import { createAllocationRepository } from '../allocation/repository.ts'
import { createAllocationService } from '../allocation/service.ts'
import { createIdempotency } from '../idempotency/idempotency.ts'
import { traceStatements } from '../observability/domain/tracer.ts'
import type { ServiceConfig } from '../service-config.ts'
import type { Base } from './base.ts'
import { COUNT_TIMEOUT_MS, type Database } from './database.ts'
import { type Job, now } from './part.ts'
import type { Zones } from './zones.ts'

export type Names = ReturnType<typeof createNames>

/** The allocation of names. */
export const createNames = (
  { reservation, releaseNeedsToken, nameCoolOffMs, dns, objectStorage, sweeperIntervalMs }: ServiceConfig,
  { observer, tracer }: Base,
  { readSql, countSql, writer, pools, timeoutMs }: Database,
  { reconciler, routes: { acceptsLoopback }, canDelegate }: Zones,
) => {
  const idempotency = createIdempotency(readSql, { timeoutMs })
  const repository = createAllocationRepository(writer, { reservation, coolOffMs: nameCoolOffMs })
  const { countByState } = createAllocationReader(countSql, { timeoutMs: COUNT_TIMEOUT_MS })
  const allocations = createAllocationService({
    repository: traceStatements(tracer, 'allocation', repository),
    reader: traceStatements(tracer, 'reader', createAllocationReader(readSql, { timeoutMs })),
    countByState,
    idempotency,
    waitUntilApplied: reconciler.waitUntilApplied,
    pools,
    acceptsLoopback,
    canDelegate,
    recordTemplate: dns.recordTemplate,
    bucketPrefix: objectStorage.platformPrefix,
    releaseNeedsToken,
    statementTimeoutMs: timeoutMs,
    now,
    onSwept: observer.onSwept,
  })
  const read = createNameReader(readSql, { timeoutMs })
  const sweep = async (signal: AbortSignal) => {
    await allocations.sweep(signal)
    observer.onSweepEnded()
  }
  const jobs: readonly Job[] = [{ failure: 'sweep failed', intervalMs: sweeperIntervalMs, run: sweep }]

  return {
    idempotency,
    allocations,
    countByState,
    routes: {
      allocations,
      names: {
        search: createNameSearch(readSql, { timeoutMs, listPools: () => pools().known }),
        read,
        reconciler,
        pools,
      },
      planning: { read, reconciler, coolOffMs: nameCoolOffMs },
    },
    gauges: { countAllocations: allocations.count },
    jobs,
  }
}
