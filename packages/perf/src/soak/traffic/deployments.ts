import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Params } from '@pool/client/allocation'
import { deploymentRequest } from '@pool/test-kit/deployment-request.ts'
import type { Prng } from '@pool/test-kit/prng.ts'
import type { Replica } from '../environment/replica.ts'
import type { InvariantChecker } from '../invariants.ts'
import type { ApiClient, ApiResponse } from './api-client.ts'
import { followLog } from './log-follower.ts'
import type { Quiescer } from './quiescer.ts'
import type { Recorder } from './recorder.ts'

const MAX_DEPLOYMENT_MS = 90_000
/** A plan runs Terraform before its response. */
const RUN_TIMEOUT_MS = 60_000
const MAX_PAUSE_MS = 8_000

const toRequest = (subdomain: string): Params<'createDeployment'> => ({
  ...deploymentRequest(subdomain),
  sovereignDomainMode: 'pool',
  providers: ['local'],
  region: 'fsn1',
})

export interface DeploymentsOptions {
  readonly client: ApiClient
  readonly replicas: readonly Replica[]
  readonly prng: Prng
  readonly recorder: Recorder
  readonly quiescer: Quiescer
  readonly invariants: InvariantChecker
  /** Every token that a response contains. */
  readonly onToken: (token: string) => void
}

/**
 * Creates deployments one after the other. Two readers follow each log on different replicas. Some are cancelled, and some of
 * the others are planned and applied again. All are destroyed and deleted.
 */
export const runDeployments = async (options: DeploymentsOptions): Promise<void> => {
  const { client, replicas, prng, recorder, quiescer, invariants, onToken } = options
  let count = 0
  const follow = (reader: string, id: string, order: readonly Replica[]) =>
    followLog(reader, id, { client, replicas: order, invariants, withinMs: MAX_DEPLOYMENT_MS })
  const remove = (id: string, deploymentToken: string) =>
    client.sendAgain({ operation: 'remove deployment' }, (api, limits) =>
      api.removeDeployment({ id, deploymentToken }, limits),
    )
  const destroy = (id: string, deploymentToken: string) =>
    client.sendAgain({ operation: 'destroy deployment' }, (api, limits) =>
      api.destroyDeployment({ id, deploymentToken }, limits),
    )
  const plan = (id: string, deploymentToken: string, operation: 'apply' | 'destroy') =>
    client.sendAgain(
      { operation: 'plan deployment' },
      (api, limits) => api.planDeployment({ id, deploymentToken, operation }, limits),
      RUN_TIMEOUT_MS,
    )
  const apply = (id: string, deploymentToken: string) =>
    client.sendAgain({ operation: 'apply deployment' }, (api, limits) =>
      api.applyDeployment({ id, deploymentToken, orgName: 'Changed' }, limits),
    )
  const expectRejection = (what: string, response: ApiResponse<unknown> | undefined, statuses: readonly number[]) => {
    if (response?.kind === 'rejection' && !statuses.includes(response.status))
      invariants.reportAnomaly(`${what} got ${response.status} ${JSON.stringify(response.body)}`)
  }

  /** Uses the deployment of another client, then plans or applies the own one. */
  const change = async (id: string, token: string): Promise<{ readonly attempts: number } | undefined> => {
    const foreign = await destroy(id, randomUUID())
    if (foreign?.kind === 'success') invariants.reportAnomaly(`destroy ${id} succeeded without its token`)
    expectRejection(`destroy ${id} without its token`, foreign, [403])
    if (prng.chance(0.5)) {
      const operation = prng.pick(['apply', 'destroy'] as const)
      const planned = await plan(id, token, operation)
      // 409: the plan failed, because Terraform could not reach its state.
      expectRejection(`plan ${id}`, planned, [409])
      return planned
    }
    const applied = await apply(id, token)
    // 409: an earlier attempt without a response succeeded.
    expectRejection(`apply ${id}`, applied, [409])
    recorder.followedLogs.push(await follow('reader of the apply', id, replicas))
    return applied
  }

  const one = async () => {
    count += 1
    const isCancelled = prng.chance(0.25)
    const response = await client.send({ operation: 'create deployment' }, (api, limits) =>
      api.createDeployment(toRequest(`d${count}`), limits),
    )
    if (!response) return
    if (response.kind === 'rejection') {
      invariants.reportAnomaly(`create deployment d${count} got ${response.status} ${JSON.stringify(response.body)}`)
      return
    }
    const { id, deploymentToken: token } = response.body
    onToken(token)
    const rotated = [...replicas.slice(1), ...replicas.slice(0, 1)]
    const reading = Promise.all([follow('first reader', id, replicas), follow('second reader', id, rotated)])
    if (isCancelled) {
      await sleep(prng.below(600))
      expectRejection(`cancel ${id}`, await remove(id, token), [404, 409])
    }
    const followed = await reading
    recorder.followedLogs.push(...followed)
    if (!isCancelled && followed.some(({ isDone }) => !isDone))
      invariants.reportAnomaly(`deployment ${id} (d${count}) did not end within ${MAX_DEPLOYMENT_MS} ms`)
    const changed = !isCancelled && prng.chance(0.4) ? await change(id, token) : { attempts: 1 }
    // Always done before the deletion, which is rejected while infrastructure remains. 409: an earlier attempt without a
    // response succeeded. 404: a cancellation found the deployment finished, and deleted it.
    const destroyed = await destroy(id, token)
    expectRejection(`destroy ${id}`, destroyed, [404, 409])
    if (destroyed?.kind === 'rejection' && destroyed.status === 404) return
    recorder.followedLogs.push(await follow('third reader', id, replicas))
    // 404: an earlier attempt without a response succeeded.
    const removed = await remove(id, token)
    expectRejection(`remove ${id}`, removed, [404])
    // A replica that was suspended can execute an earlier attempt after the run of a later one.
    const isRunPossible = changed?.attempts !== 1 || destroyed?.attempts !== 1
    if (removed?.kind === 'success' && removed.body && !isRunPossible)
      invariants.reportAnomaly(`remove ${id} cancelled a run`)
  }
  // Deployments do not pause: after a kill they take too long to wait for at each quiescence.
  while (!quiescer.isEnded) {
    await one()
    await sleep(prng.below(MAX_PAUSE_MS))
  }
}
