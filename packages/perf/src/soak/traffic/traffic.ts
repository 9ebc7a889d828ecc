import { createPrng } from '@pool/test-kit/prng.ts'
import { LeadershipChecker } from '../checks/leadership.ts'
import type { SoakEnvironment } from '../environment/environment.ts'
import type { InvariantChecker } from '../invariants.ts'
import { ApiClient } from './api-client.ts'
import { runDeployments } from './deployments.ts'
import { CONTROLLER_SLOTS, ELECTION_DURATIONS, runControllers, runJobs } from './elections.ts'
import { createLeaseRecorder } from './lease-recorder.ts'
import { runNameClient } from './names.ts'
import { createPoolOperations } from './operations.ts'
import { runOtherWriter } from './other-writer.ts'
import { Quiescer } from './quiescer.ts'
import { runLeaseObserver, runRawController } from './raw-leases.ts'
import { runHostileClient, runNameObserver } from './raw-names.ts'
import type { Recorder } from './recorder.ts'

const NAME_CLIENT_COUNT = 6

export interface Traffic {
  readonly quiescer: Quiescer
  readonly leadership: LeadershipChecker
  /** Rejects when a client throws, for example because it cannot parse a response. */
  readonly ended: Promise<void>
}

/** Closed loops: a client sends its next request after the response to the last one, which limits the load. */
export const startTraffic = (
  { replicas, operatorToken, witness, zone, scanner }: SoakEnvironment,
  { seed, withDeployments }: { readonly seed: number; readonly withDeployments: boolean },
  recorder: Recorder,
  invariants: InvariantChecker,
): Traffic => {
  const quiescer = new Quiescer()
  const prng = createPrng(seed)
  const createClient = (name: string, salt: number) => {
    const clientPrng = prng.fork(salt)
    return {
      clientPrng,
      client: new ApiClient({ name, replicas, operatorToken, prng: prng.fork(salt + 1), recorder, invariants }),
    }
  }
  const names = Array.from({ length: NAME_CLIENT_COUNT }, (_, number) => {
    const { clientPrng, client } = createClient(`c${number}`, 10 * number + 10)
    const caller = `c${number}`
    const onToken = (token: string) => scanner.addToken(token)
    const operations = createPoolOperations({ caller, client, zone, recorder, invariants, onToken })
    return runNameClient(number, operations, clientPrng, quiescer)
  })
  const leadership = new LeadershipChecker(ELECTION_DURATIONS, invariants)
  const fetchAs = createLeaseRecorder({ witness, recorder, quiescer, invariants, leadership })
  const elections = { witness, fetchAs, quiescer, leadership, invariants }
  const raw = (name: string, salt: number) => ({
    witness,
    fetch: fetchAs(name),
    slots: CONTROLLER_SLOTS,
    random: prng.fork(salt),
    quiescer,
  })
  const leases = [
    runControllers({ ...elections, prng: prng.fork(3) }),
    runJobs({ ...elections, prng: prng.fork(4) }),
    runRawController('raw', raw('raw', 5)),
    runLeaseObserver(raw('', 6)),
  ]
  const rawNames = (salt: number) => ({
    replicas,
    operatorToken,
    prng: prng.fork(salt),
    recorder,
    quiescer,
    invariants,
  })
  const observers = [runNameObserver(rawNames(7)), runHostileClient(rawNames(8))]
  const otherWriter = runOtherWriter(zone, prng.fork(2), recorder, quiescer)
  const deployments = async () => {
    if (!withDeployments) return
    const { clientPrng, client } = createClient('deployer', 1_000)
    const onToken = (token: string) => scanner.addToken(token)
    await runDeployments({ client, replicas, prng: clientPrng, recorder, quiescer, invariants, onToken })
  }
  const ended = Promise.all([...names, ...leases, ...observers, otherWriter, deployments()]).then(() => {})
  ended.catch(() => {})
  return { quiescer, leadership, ended }
}
