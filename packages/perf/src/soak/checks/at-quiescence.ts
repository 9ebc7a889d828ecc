import { setTimeout as sleep } from 'node:timers/promises'
import { findHistoryErrors } from '@pool/test-kit/history-rules.ts'
import { checkLinearizability, describeViolation } from '@pool/test-kit/linearizability/check.ts'
import { createPrng } from '@pool/test-kit/prng.ts'
import { recordKey } from 'allocation-api/src/dns/domain/rrset.ts'
import { readDeletions, readTable, type Snapshot, takeSnapshot } from '../environment/database.ts'
import { COOL_OFF_MS, RECORD_TEMPLATE, type SoakEnvironment } from '../environment/environment.ts'
import { FIXED_RECORDS, ZONE } from '../environment/zone.ts'
import type { InvariantChecker } from '../invariants.ts'
import { ApiClient } from '../traffic/api-client.ts'
import { republishZone } from '../traffic/operations.ts'
import type { Recorder } from '../traffic/recorder.ts'
import { findWrongAddresses } from './addresses.ts'
import { findCoolOffViolations } from './cool-off.ts'
import type { InjectedFault } from './errors-attributable.ts'
import { checkForeignRecords } from './foreign-records.ts'
import { findLostWrites, findReplayMismatches } from './history.ts'
import { findHolderOverlaps, toHolderIntervals } from './lease-holders.ts'
import { findLogStreamErrors } from './log-stream.ts'
import type { NameObservation } from './operations.ts'
import { findOwnershipViolations } from './ownership.ts'
import { findStaleReads } from './read-your-writes.ts'
import { findLateWrites } from './unavailable-writes.ts'
import { findZoneDifferences, toDesiredZone } from './zone.ts'

/** Backoffs and intervals of the service are seconds, so it converges well within this time. */
const MAX_CONVERGENCE_MS = 45_000
const POLL_MS = 100
const MAX_REPORTED = 5

const serialize = (table: readonly object[]): string => JSON.stringify(table.map(row => JSON.stringify(row)).sort())

/** Deployments do not pause. */
const isDeploymentName = (subdomain: string): boolean => /^d\d/.test(subdomain)

/** The first replica republishes, so that all names have its template, but for those of deployments that start meanwhile. */
const republish = async (
  { replicas, operatorToken }: SoakEnvironment,
  recorder: Recorder,
  invariants: InvariantChecker,
): Promise<void> => {
  const first = replicas.slice(0, 1)
  const prng = createPrng(1)
  await republishZone(new ApiClient({ name: 'observer', replicas: first, operatorToken, prng, recorder, invariants }))
}

/** Waits until the zone equals the desired records and the table did not change while it was read. Returns the differences. */
const waitForZone = async ({ sql, zone }: SoakEnvironment): Promise<readonly string[]> => {
  for (const end = performance.now() + MAX_CONVERGENCE_MS; ; await sleep(POLL_MS)) {
    const table = await readTable(sql)
    const records = (await zone.records()).map(set =>
      isDeploymentName(set.name.replace(/^\*\./, '')) ? { ...set, ttl: RECORD_TEMPLATE.ttl } : set,
    )
    const subdomains = new Set(zone.foreignRecords.map(({ subdomain }) => subdomain))
    const history = await readDeletions(sql, [...subdomains])
    const { present, unknown, violations } = checkForeignRecords(zone.foreignRecords, history)
    const unknownKeys = new Set(unknown.map(recordKey))
    const desired = toDesiredZone(ZONE, table, RECORD_TEMPLATE, [...FIXED_RECORDS, ...present])
    const differences = [
      ...violations,
      ...findZoneDifferences(
        records.filter(set => !unknownKeys.has(recordKey(set))),
        desired.filter(set => !unknownKeys.has(recordKey(set))),
      ),
    ]
    const isUnchanged = serialize(await readTable(sql)) === serialize(table)
    if (isUnchanged && differences.length === 0) return []
    if (performance.now() > end) return differences
  }
}

const waitForSnapshot = async ({ sql }: SoakEnvironment): Promise<Snapshot> => {
  for (const end = performance.now() + MAX_CONVERGENCE_MS; ; await sleep(POLL_MS)) {
    const snapshot = await takeSnapshot(sql)
    if (snapshot.due === 0 || performance.now() > end) return snapshot
  }
}

const findRecordHistoryErrors = ({ history, due }: Snapshot): string[] => {
  // The zone sync writes its events after the records. The last events of deployments may be missing.
  const byName = Map.groupBy(
    history.filter(({ subdomain }) => !isDeploymentName(subdomain)),
    ({ subdomain }) => subdomain,
  )
  const errors = [...byName].flatMap(([name, rows]) => findHistoryErrors(rows, false).map(error => `${name}: ${error}`))
  return due > 0 ? [...errors, `${due} names are still due`] : errors
}

/** Checks everything that holds once no request is in flight. Drops the observations that it checked. */
export const checkAtQuiescence = async (
  environment: SoakEnvironment,
  recorder: Recorder,
  injected: readonly InjectedFault[],
  invariants: InvariantChecker,
): Promise<void> => {
  const { operations, observations, unavailableWrites, leases, followedLogs } = recorder
  await republish(environment, recorder, invariants)
  invariants.record('zone equals the desired records', 1, await waitForZone(environment))
  const snapshot = await waitForSnapshot(environment)
  const { start, end, table, history } = snapshot
  invariants.record('record history is consistent', history.length, findRecordHistoryErrors(snapshot))
  invariants.record('history replays to the table', history.length, findReplayMismatches(history, table))
  invariants.record('one owner per name', operations.length, findOwnershipViolations(operations))
  invariants.record(
    'released names stay with their client for the cool-off',
    operations.length,
    findCoolOffViolations(operations, COOL_OFF_MS),
  )
  const { addressReadings } = recorder
  const wrongAddresses = findWrongAddresses(addressReadings, operations, environment.zone.recordEdits)
  invariants.record('updated names always have an address', addressReadings.length, wrongAddresses)
  addressReadings.length = 0
  const states = new Map(table.map(({ subdomain, ...state }) => [subdomain, state]))
  const tableObservation: NameObservation = { source: 'the table', start, end, states, isCompleteList: true }
  invariants.record('acknowledged writes are durable and visible', operations.length + observations.length, [
    ...findLostWrites(operations, history),
    ...findStaleReads(operations, [...observations, tableObservation]),
  ])
  observations.length = 0
  const lateWrites = findLateWrites(unavailableWrites, injected, history)
  invariants.record('writes have no effect after their 503', unavailableWrites.length, lateWrites)
  invariants.record(
    'lease slots are linearizable',
    leases.length,
    checkLinearizability(leases).slice(0, MAX_REPORTED).map(describeViolation),
  )
  const intervals = toHolderIntervals(leases)
  invariants.record('one holder per lease generation', intervals.length, findHolderOverlaps(intervals))
  invariants.record('log lines arrive once, in order', followedLogs.length, findLogStreamErrors(followedLogs))
}
