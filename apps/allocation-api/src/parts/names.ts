import { createNameReader } from '../allocation/name-details.ts'
import { createNameSearch } from '../allocation/name-search.ts'
import { createAllocationReader } from '../allocation/reader.ts'
import { createAllocationRepository } from '../allocation/repository.ts'
import { createAllocationService } from '../allocation/service.ts'
import { createIdempotency } from '../idempotency/idempotency.ts'
import { deleteInBatches } from '../lib/delete-in-batches.ts'
import { traceStatements } from '../observability/domain/tracer.ts'
import type { ServiceConfig } from '../service-config.ts'
import { createRecordsReader } from '../tenant-records/reader.ts'
import { createTenantRecords } from '../tenant-records/service.ts'
import type { Base } from './base.ts'
import { COUNT_TIMEOUT_MS, type Database } from './database.ts'
import { type Job, now, sleep } from './part.ts'
import type { Zones } from './zones.ts'

export type Names = ReturnType<typeof createNames>

/** The allocation of names. */
export const createNames = (
  {
    reservation,
    releaseNeedsToken,
    nameCoolOffMs,
    dns,
    objectStorage,
    sweeperIntervalMs,
    records,
    recordsUrl,
  }: ServiceConfig,
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
  const recordsReader = createRecordsReader(readSql, { timeoutMs })
  const tenantRecords = createTenantRecords({
    writer,
    reader: traceStatements(tracer, 'records', recordsReader),
    idempotency,
    rules: {
      ...records,
      types: records.types.filter(type => canDelegate || type !== 'NS'),
      template: dns.recordTemplate,
      acceptsLoopback,
    },
    pools,
    waitUntilApplied: reconciler.waitUntilApplied,
    timeoutMs,
    now,
  })
  const read = createNameReader(readSql, { timeoutMs })
  const sweep = async (signal: AbortSignal) => {
    await allocations.sweep(signal)
    await tenantRecords.settleDue(signal)
    await deleteInBatches({ now, sleep, deleteBatch: recordsReader.deleteExpiredTokens }, signal)
    observer.onSweepEnded()
  }
  const jobs: readonly Job[] = [{ failure: 'sweep failed', intervalMs: sweeperIntervalMs, run: sweep }]

  return {
    idempotency,
    allocations,
    countByState,
    routes: {
      allocations,
      records: tenantRecords,
      recordsUrl,
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
