import { createPrng } from '@pool/test-kit/prng.ts'
import type { SoakEnvironment } from '../environment/stage.ts'
import { createApiClient } from './api-client.ts'
import { runDeployments } from './deployments.ts'
import { createLeaseCaller, runController } from './leases.ts'
import { runNameClient } from './names.ts'
import { createVerbs } from './operations.ts'
import { createQuiescer, type Quiescer } from './pause-gate.ts'
import type { Recorder } from './recorder.ts'

const NAME_CLIENTS = 6
const CONTROLLERS = 5

export interface Traffic {
  readonly gate: Quiescer
  /** Rejects when a client met what it does not understand. */
  readonly ended: Promise<void>
}

/** Closed loops: who waits for an answer asks nothing, so that the machine is not drowned. */
export const startTraffic = (
  { replicas, operatorToken, witness }: SoakEnvironment,
  { seed, withDeployments }: { readonly seed: number; readonly withDeployments: boolean },
  recorder: Recorder,
  onOddity: (oddity: string) => void,
): Traffic => {
  const gate = createQuiescer()
  const dice = createPrng(seed)
  const clientOf = (name: string, salt: number) => {
    const own = dice.fork(salt)
    return { own, client: createApiClient({ name, replicas, operatorToken, dice: dice.fork(salt + 1), recorder }) }
  }
  const names = Array.from({ length: NAME_CLIENTS }, (_, number) => {
    const { own, client } = clientOf(`c${number}`, 10 * number + 10)
    return runNameClient(number, createVerbs(`c${number}`, client, recorder, onOddity), own, gate)
  })
  const call = createLeaseCaller(witness, recorder)
  const controllers = Array.from({ length: CONTROLLERS }, (_, number) =>
    runController(`region-${number}`, call, createPrng(seed * CONTROLLERS + number), recorder, gate),
  )
  const deployments = async () => {
    if (!withDeployments) return
    const { own, client } = clientOf('deployer', 1_000)
    await runDeployments({ client, replicas, dice: own, recorder, gate, onOddity })
  }
  const ended = Promise.all([...names, ...controllers, deployments()]).then(() => {})
  ended.catch(() => {})
  return { gate, ended }
}
