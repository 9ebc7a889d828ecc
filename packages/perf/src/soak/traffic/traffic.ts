import { createPrng } from '@pool/test-kit/prng.ts'
import type { SoakEnvironment } from '../environment/environment.ts'
import type { InvariantChecker } from '../invariants.ts'
import { createApiClient } from './api-client.ts'
import { runDeployments } from './deployments.ts'
import { createLeaseSender, runController } from './leases.ts'
import { runNameClient } from './names.ts'
import { createPoolOperations } from './operations.ts'
import { runOtherWriter } from './other-writer.ts'
import { Quiescer } from './quiescer.ts'
import type { Recorder } from './recorder.ts'

const NAME_CLIENT_COUNT = 6
const CONTROLLER_COUNT = 5

export interface Traffic {
  readonly quiescer: Quiescer
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
      client: createApiClient({ name, replicas, operatorToken, prng: prng.fork(salt + 1), recorder }),
    }
  }
  const names = Array.from({ length: NAME_CLIENT_COUNT }, (_, number) => {
    const { clientPrng, client } = createClient(`c${number}`, 10 * number + 10)
    const caller = `c${number}`
    const onToken = (token: string) => scanner.addToken(token)
    const operations = createPoolOperations({ caller, client, zone, recorder, invariants, onToken })
    return runNameClient(number, operations, clientPrng, quiescer)
  })
  const sendLease = createLeaseSender(witness, recorder)
  const controllers = Array.from({ length: CONTROLLER_COUNT }, (_, number) =>
    runController(`region-${number}`, sendLease, createPrng(seed * CONTROLLER_COUNT + number), recorder, quiescer),
  )
  const otherWriter = runOtherWriter(zone, prng.fork(2), recorder, quiescer)
  const deployments = async () => {
    if (!withDeployments) return
    const { clientPrng, client } = createClient('deployer', 1_000)
    const onToken = (token: string) => scanner.addToken(token)
    await runDeployments({ client, replicas, prng: clientPrng, recorder, quiescer, invariants, onToken })
  }
  const ended = Promise.all([...names, ...controllers, otherWriter, deployments()]).then(() => {})
  ended.catch(() => {})
  return { quiescer, ended }
}
