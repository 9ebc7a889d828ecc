import { spawnSync } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { createPrng } from '@pool/test-kit/prng.ts'
import { checkAtRest } from './checks/at-quiescence.ts'
import { findUnattributable, type InjectedFault } from './checks/errors-attributable.ts'
import type { SecretWatch } from './environment/secrets.ts'
import { REPLICAS, type SoakEnvironment } from './environment/stage.ts'
import { inflict } from './faults/inject.ts'
import { type FaultName, faultKinds, faultNames } from './faults/kinds.ts'
import { createProber, RECOVERS_WITHIN_MS } from './faults/measure-recovery.ts'
import { type PlannedFault, schedule } from './faults/schedule.ts'
import type { InvariantLog } from './invariants.ts'
import { startSampler } from './observe/samples.ts'
import type { Options } from './options.ts'
import { type SoakOutcome, toMeasured } from './outcome.ts'
import { createRecorder } from './traffic/recorder.ts'
import { startTraffic } from './traffic/traffic.ts'

export interface SoakOptions {
  readonly options: Options
  readonly stage: SoakEnvironment
  readonly verdicts: InvariantLog
  readonly watch: SecretWatch
  /** A line for whoever watches. */
  readonly say: (line: string) => void
}

/** However short it is. */
const LEAST_ROUNDS = 2
const CALM_MS = 1_500
/** The last rest takes some of the time. */
const LAST_REST_MS = 4_000
const STOPS_WITHIN_MS = 100_000
const FAULTS_A_MINUTE = 3
/** One whose process was killed is taken up after half a minute: a shorter run would only wait for it. */
const DEPLOYMENTS_FROM_MINUTES = 0.5

const lacksDeployments = (minutes: number): string | undefined => {
  if (minutes < DEPLOYMENTS_FROM_MINUTES) return `No deployments in less than ${DEPLOYMENTS_FROM_MINUTES} minutes.`
  return ['terraform', 'tofu'].some(name => spawnSync(name, ['version']).status === 0)
    ? undefined
    : 'No deployments: lacks terraform 1.6 or later (or tofu): https://developer.hashicorp.com/terraform/install'
}

/** The whole run on a stage that stands: traffic, faults one round after the other, and all that is checked. */
export const soak = async ({ options, stage, verdicts, watch, say }: SoakOptions): Promise<SoakOutcome> => {
  const { minutes, seed } = options
  const started = performance.now()
  const lacks = lacksDeployments(minutes)
  const notes = [stage.zone.lacks && `DNS: ${stage.zone.lacks}`, lacks].flatMap(note => note || [])
  for (const note of notes) say(note)

  const recorder = createRecorder()
  const sampler = startSampler(stage)
  const prober = createProber(stage)
  const odd = (oddity: string) => verdicts.add('answers and processes as expected', 0, [oddity])
  const traffic = startTraffic(stage, { seed, withDeployments: !lacks }, recorder, odd)
  const inflicted: InjectedFault[] = []
  const recoveries = new Map<FaultName, number[]>()

  const bring = async (fault: PlannedFault) => {
    await sleep(fault.afterMs)
    say(
      `${((performance.now() - started) / 1_000).toFixed(0)} s: ${fault.name} (replica ${fault.replica}), ${fault.holdMs} ms`,
    )
    let at = -1
    const effect = await inflict(stage, fault, {
      began: () => {
        at = inflicted.push({ fault, from: Date.now(), to: Number.POSITIVE_INFINITY }) - 1
      },
      ended: () => {
        const open = inflicted[at]
        if (open) inflicted[at] = { ...open, to: Date.now() }
      },
    })
    const ms = await prober.recovered(fault, effect)
    const faults = ms === null ? [`${fault.name} (replica ${fault.replica}): not within ${RECOVERS_WITHIN_MS} ms`] : []
    verdicts.add('every fault recovered from', 1, faults)
    recoveries.set(fault.name, [...(recoveries.get(fault.name) ?? []), ...(ms === null ? [] : [ms])])
  }
  const explain = () => {
    const failures = recorder.failures.splice(0)
    verdicts.add('every failed call explained by a fault', failures.length, findUnattributable(failures, inflicted))
  }
  const rest = async () => {
    if (!(await traffic.gate.close(STOPS_WITHIN_MS))) odd(`clients did not come to rest within ${STOPS_WITHIN_MS} ms`)
    await checkAtRest(stage, recorder, verdicts)
    traffic.gate.open()
  }

  const names = faultNames.filter(name => stage.zone.server !== null || faultKinds[name].part !== 'dns')
  const end = started + minutes * 60_000 - LAST_REST_MS
  const rounds = schedule({ dice: createPrng(seed).fork(1), replicas: REPLICAS, names, minutes })
  const play = async () => {
    let round = 0
    for (const { faults, restsAfter } of rounds) {
      if (performance.now() >= end && round >= LEAST_ROUNDS) break
      round += 1
      await sleep(CALM_MS)
      // What cannot be inflicted is a finding as well, and no reason to lose the others.
      await Promise.all(faults.map(fault => bring(fault).catch(error => odd(`${fault.name}: ${String(error)}`))))
      explain()
      if (restsAfter) await rest()
    }
  }
  // A client that fails ends the run: what it did not understand is the finding.
  await Promise.race([play(), traffic.ended.then(() => {})])
  traffic.gate.end()
  await traffic.ended
  explain()
  await checkAtRest(stage, recorder, verdicts)
  await sampler.stop()

  const measured = sampler.series.map(toMeasured)
  const samples = sampler.series.flatMap(({ lives }) => [...lives.values()].flat()).length
  verdicts.add(
    'memory and connections bounded',
    samples,
    measured.flatMap(({ faults }) => faults),
  )
  verdicts.add('no secret in a log', watch.lines, watch.faults)
  const requests = [...recorder.counts.values()].reduce((sum, { requests }) => sum + requests, 0)
  verdicts.add('answers and processes as expected', requests, [])
  const wanted = Math.floor(minutes * FAULTS_A_MINUTE)
  const tooFew = inflicted.length < wanted ? [`${inflicted.length} faults in ${minutes} minutes`] : []
  verdicts.add('three faults a minute', inflicted.length, tooFew)
  return {
    options,
    seconds: (performance.now() - started) / 1_000,
    notes,
    faults: [...recoveries]
      .map(([name, recoveriesMs]) => ({ name, recoveriesMs }))
      .sort((a, b) => (a.name < b.name ? -1 : 1)),
    traffic: [...recorder.counts].map(([operation, count]) => ({ operation, ...count })),
    measured,
    verdicts: verdicts.all(),
  }
}
