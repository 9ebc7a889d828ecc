import { setTimeout as sleep } from 'node:timers/promises'
import { faultsOfHistory } from '@pool/test-kit/history-rules.ts'
import { checkLinearizability, describeViolation } from '@pool/test-kit/linearizability/check.ts'
import { type SoakEnvironment, template } from '../environment/stage.ts'
import { foreign, ZONE } from '../environment/zone.ts'
import type { InvariantLog } from '../invariants.ts'
import { readTable, type Snapshot, takeSnapshot } from '../observe/database.ts'
import type { Recorder } from '../traffic/recorder.ts'
import { acknowledgedFaults } from './acknowledged.ts'
import { findHolderOverlaps, toHolderIntervals } from './lease-holders.ts'
import { streamFaults } from './log-stream.ts'
import type { Reading } from './operations.ts'
import { ownershipFaults } from './ownership.ts'
import { readingFaults } from './read-your-writes.ts'
import { replayFaults } from './replay.ts'
import { desiredZone, zoneFaults } from './zone.ts'

/** Backoffs and intervals of the service are seconds: whatever was held up is through by then. */
const SETTLES_WITHIN_MS = 45_000
const LOOK_EVERY_MS = 100
const FAULTS_SHOWN = 5

const versionOf = (table: readonly object[]): string => JSON.stringify(table.map(row => JSON.stringify(row)).sort())

/** Waits until the zone is exactly as the table wants it, and the table the same before and after it was read. */
const settledZone = async ({ sql, zone }: SoakEnvironment): Promise<readonly string[]> => {
  for (const end = performance.now() + SETTLES_WITHIN_MS; ; await sleep(LOOK_EVERY_MS)) {
    const table = await readTable(sql)
    const present = await zone.records()
    const faults = zoneFaults(present, desiredZone(ZONE, table, template, foreign))
    const isSame = versionOf(await readTable(sql)) === versionOf(table)
    if (isSame && faults.length === 0) return []
    if (performance.now() > end) return faults
  }
}

const settledSnapshot = async ({ sql }: SoakEnvironment): Promise<Snapshot> => {
  for (const end = performance.now() + SETTLES_WITHIN_MS; ; await sleep(LOOK_EVERY_MS)) {
    const snapshot = await takeSnapshot(sql)
    if (snapshot.due === 0 || performance.now() > end) return snapshot
  }
}

const recordFaults = ({ history, due }: Snapshot): string[] => {
  // The trail of a pass stands behind it: of names whose deployment is under way it may be missing still.
  const byName = Map.groupBy(
    history.filter(({ subdomain }) => !/^d\d/.test(subdomain)),
    ({ subdomain }) => subdomain,
  )
  const faults = [...byName].flatMap(([name, rows]) => faultsOfHistory(rows, false).map(fault => `${name}: ${fault}`))
  return due > 0 ? [...faults, `${due} names are still due`] : faults
}

/** Everything that must be true when nothing is under way. The readings are dropped: they have been looked at. */
export const checkAtRest = async (
  stage: SoakEnvironment,
  recorder: Recorder,
  verdicts: InvariantLog,
): Promise<void> => {
  const { acts, readings, leases, followed } = recorder
  verdicts.add('zone equal to desired at rest', 1, await settledZone(stage))
  const snapshot = await settledSnapshot(stage)
  const { start, end, table, history } = snapshot
  verdicts.add('records reported as they went', history.length, recordFaults(snapshot))
  verdicts.add('the history replays to the table', history.length, replayFaults(history, table))
  verdicts.add('one owner a name', acts.length, ownershipFaults(acts))
  const seen = new Map(table.map(({ subdomain, ...rest }) => [subdomain, rest]))
  const whole: Reading = { by: 'the table', start, end, seen, isWhole: true }
  verdicts.add('no acknowledged write lost, reads see it', acts.length + readings.length, [
    ...acknowledgedFaults(acts, history),
    ...readingFaults(acts, [...readings, whole]),
  ])
  readings.length = 0
  verdicts.add(
    'a slot is linearizable',
    leases.length,
    checkLinearizability(leases).slice(0, FAULTS_SHOWN).map(describeViolation),
  )
  const beliefs = toHolderIntervals(leases)
  verdicts.add('one holder a lease generation', beliefs.length, findHolderOverlaps(beliefs))
  verdicts.add('every line of a log once, in order', followed.length, streamFaults(followed))
}
