import { spawnSync } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { createPrng } from '@pool/test-kit/prng.ts'
import { progress } from '../shared/cli.ts'
import { checkAtQuiescence } from './checks/at-quiescence.ts'
import {
  describeFailedCall,
  type FailedCall,
  findUnattributable,
  type InjectedFault,
} from './checks/errors-attributable.ts'
import { describeEvidence, wasMachineStalled } from './checks/evidence.ts'
import { REPLICAS, type SoakEnvironment } from './environment/environment.ts'
import type { LogSecretScanner } from './environment/log-secrets.ts'
import { SessionWatch } from './environment/session-watch.ts'
import { injectFault } from './faults/inject.ts'
import { type FaultName, faultKinds, faultNames } from './faults/kinds.ts'
import { MAX_READINESS_MS, MAX_RECOVERY_MS, RecoveryProbe } from './faults/measure-recovery.ts'
import { createSchedule, type PlannedFault } from './faults/schedule.ts'
import type { InvariantChecker } from './invariants.ts'
import type { SoakOptions } from './options.ts'
import type { SoakReport } from './report.ts'
import { ResourceSampler, toResourceUsage } from './resources.ts'
import { createRecorder } from './traffic/recorder.ts'
import { startTraffic } from './traffic/traffic.ts'

export interface SoakInput {
  readonly options: SoakOptions
  readonly environment: SoakEnvironment
  readonly invariants: InvariantChecker
  readonly scanner: LogSecretScanner
}

/** Even in the shortest run. */
const MIN_ROUNDS = 2
const PAUSE_BEFORE_ROUND_MS = 1_500
/** Reserved for the checks at the end. */
const FINAL_CHECKS_MS = 4_000
const MAX_QUIESCE_MS = 100_000
const MIN_FAULTS_PER_MINUTE = 3
/** A deployment of a killed process resumes after half a minute, so a shorter run would only wait for it. */
const MIN_MINUTES_FOR_DEPLOYMENTS = 0.5

/** A shorter run is a test: it shares the machine with others, and only waits for the recovery. */
const MIN_MINUTES_FOR_READINESS = 1

const findMissingForDeployments = (minutes: number): string | undefined => {
  if (minutes < MIN_MINUTES_FOR_DEPLOYMENTS)
    return `No deployments: they need a run of at least ${MIN_MINUTES_FOR_DEPLOYMENTS} minutes.`
  return ['terraform', 'tofu'].some(name => spawnSync(name, ['version']).status === 0)
    ? undefined
    : 'No deployments: install terraform 1.6 or later (or tofu): https://developer.hashicorp.com/terraform/install'
}

const affectsReplicas = ({ name }: PlannedFault): boolean => ['api', 'database'].includes(faultKinds[name].part)

/** Runs traffic and rounds of faults against a started environment, checks the invariants, and returns the report. */
export const soak = async ({ options, environment, invariants, scanner }: SoakInput): Promise<SoakReport> => {
  const { minutes, seed } = options
  const started = performance.now()
  const missing = findMissingForDeployments(minutes)
  const notes = [environment.zone.missing && `DNS: ${environment.zone.missing}`, missing].flatMap(note => note || [])
  for (const note of notes) progress(note)

  const recorder = createRecorder()
  const sampler = new ResourceSampler(environment)
  const sessions = new SessionWatch(environment.sql)
  const probe = new RecoveryProbe(environment)
  const traffic = startTraffic(environment, { seed, withDeployments: !missing }, recorder, invariants)
  const injected: InjectedFault[] = []
  const recoveries = new Map<FaultName, number[]>()

  const runFault = async (fault: PlannedFault) => {
    await sleep(fault.afterMs)
    const { name, replica, durationMs } = fault
    const seconds = ((performance.now() - started) / 1_000).toFixed(0)
    progress(`${seconds} s: ${name} (replica ${replica}), ${durationMs} ms`)
    const active = await injectFault(environment, fault, injected)
    const isOtherFaultActive = () =>
      injected.some(other => other.endedAt === Number.POSITIVE_INFINITY && affectsReplicas(other.fault))
    const { recoveryMs, writableMs } = await probe.measure(fault, active, isOtherFaultActive)
    const where = `${name} (replica ${replica})`
    const violations = recoveryMs === null ? [`${where}: no recovery within ${MAX_RECOVERY_MS} ms`] : []
    invariants.record('recovery after every fault', 1, violations)
    if (affectsReplicas(fault) && minutes >= MIN_MINUTES_FOR_READINESS) {
      const late = writableMs > MAX_READINESS_MS ? [`${where}: not ready after ${Math.round(writableMs)} ms`] : []
      invariants.record('ready within 5 s after every fault', 1, late)
    }
    recoveries.set(name, [...(recoveries.get(name) ?? []), ...(recoveryMs === null ? [] : [recoveryMs])])
  }
  let stalledCalls = 0
  const explain = (call: FailedCall) => {
    const replica = call.target === 'witness' ? undefined : environment.replicas[call.target]
    const cause = call.requestId === undefined ? undefined : replica?.causes.get(call.requestId)
    return describeEvidence(call, { cause, samples: sessions.samples, injected })
  }
  const checkErrors = () => {
    const failedCalls = recorder.failedCalls.splice(0)
    const unattributable = findUnattributable(failedCalls, injected)
    const isStalled = (call: FailedCall) => call.status !== 500 && wasMachineStalled(call, sessions.samples)
    stalledCalls += unattributable.filter(isStalled).length
    const violations = unattributable
      .filter(call => !isStalled(call))
      .map(call => `${describeFailedCall(call)}; ${explain(call)}`)
    invariants.record('every failed call is attributable to a fault', failedCalls.length, violations)
  }
  const reportRequestsInFlight = () =>
    invariants.reportAnomaly(`clients still had requests in flight after ${MAX_QUIESCE_MS} ms`)
  const quiesce = async () => {
    if (!(await traffic.quiescer.pause(MAX_QUIESCE_MS))) reportRequestsInFlight()
    await checkAtQuiescence(environment, recorder, injected, invariants)
    traffic.quiescer.resume()
  }

  const names = faultNames.filter(name => environment.zone.server !== null || faultKinds[name].part !== 'dns')
  const end = started + minutes * 60_000 - FINAL_CHECKS_MS
  const schedule = createSchedule({ prng: createPrng(seed).fork(1), replicas: REPLICAS, names, minutes })
  const runRounds = async () => {
    let round = 0
    for (const { faults, quiesceAfter } of schedule) {
      if (performance.now() >= end && round >= MIN_ROUNDS) break
      round += 1
      await sleep(PAUSE_BEFORE_ROUND_MS)
      // A fault that cannot be injected is an anomaly. The others go on.
      const runs = faults.map(fault =>
        runFault(fault).catch(error => invariants.reportAnomaly(`${fault.name}: ${String(error)}`)),
      )
      await Promise.all(runs)
      checkErrors()
      if (quiesceAfter) await quiesce()
    }
  }
  // A client that throws ends the run: it received a response that it cannot parse.
  await Promise.race([runRounds(), traffic.ended])
  traffic.quiescer.end()
  await traffic.ended
  // A request continues after the client that sent it has ended.
  if (!(await traffic.quiescer.drain(MAX_QUIESCE_MS))) reportRequestsInFlight()
  checkErrors()
  await checkAtQuiescence(environment, recorder, injected, invariants)
  sessions.stop()
  await sampler.stop()

  const resources = sampler.series.map(toResourceUsage)
  const sampleCount = sampler.series.flatMap(({ processes }) => [...processes.values()].flat()).length
  const leaks = resources.flatMap(({ violations }) => violations)
  invariants.record('no resource leak', sampleCount, leaks)
  invariants.record('no secret in logs', scanner.lineCount, scanner.findings)
  const { tenures, rejectedLateWrites } = traffic.leadership
  const requests = [...recorder.counts.values()].reduce((sum, counts) => sum + counts.requests, 0)
  invariants.record('no anomaly in responses or processes', requests, [])
  const stalls =
    stalledCalls === 0 ? [] : [`Machine: ${stalledCalls} calls failed while it did not respond to the observer either.`]
  const minFaults = Math.floor(minutes * MIN_FAULTS_PER_MINUTE)
  const tooFew = injected.length < minFaults ? [`${injected.length} faults in ${minutes} minutes`] : []
  invariants.record('at least three faults per minute', injected.length, tooFew)
  return {
    options,
    seconds: (performance.now() - started) / 1_000,
    notes: [...notes, ...stalls, `Elections: ${tenures} tenures, ${rejectedLateWrites} late writes rejected.`],
    faults: [...recoveries]
      .map(([name, recoveriesMs]) => ({ name, recoveriesMs }))
      .sort((a, b) => (a.name < b.name ? -1 : 1)),
    traffic: [...recorder.counts].map(([operation, counts]) => ({ operation, ...counts })),
    resources,
    invariants: invariants.results,
  }
}
