import { setTimeout as sleep } from 'node:timers/promises'
import { deploymentRequest } from '@pool/test-kit/deployment-request.ts'
import type { Prng } from '@pool/test-kit/prng.ts'
import { z } from 'zod'
import type { Replica } from '../environment/replica.ts'
import type { InvariantChecker } from '../invariants.ts'
import type { ApiClient } from './api-client.ts'
import { followLog } from './log-follower.ts'
import type { Quiescer } from './quiescer.ts'
import type { Recorder } from './recorder.ts'

const created = z.object({ id: z.string(), deploymentToken: z.string() })

const MAX_DEPLOYMENT_MS = 90_000
const MAX_PAUSE_MS = 8_000

export interface DeploymentsOptions {
  readonly client: ApiClient
  readonly replicas: readonly Replica[]
  readonly prng: Prng
  readonly recorder: Recorder
  readonly quiescer: Quiescer
  readonly invariants: InvariantChecker
}

/** Creates deployments one after the other. Two readers follow each log on different replicas; some are cancelled. */
export const runDeployments = async (options: DeploymentsOptions): Promise<void> => {
  const { client, replicas, prng, recorder, quiescer, invariants } = options
  let count = 0
  const remove = (id: string, token: string) =>
    client.sendUntilAnswered({
      operation: 'remove deployment',
      method: 'DELETE',
      path: `/api/v1/deployments/${id}`,
      headers: { 'X-Deployment-Token': token },
    })
  const destroy = (id: string, token: string) =>
    client.sendUntilAnswered({
      operation: 'destroy deployment',
      method: 'POST',
      path: `/api/v1/deployments/${id}/destroy`,
      headers: { 'X-Deployment-Token': token },
    })

  const one = async () => {
    count += 1
    const isCancelled = prng.chance(0.25)
    const response = await client.sendUntilAnswered({
      operation: 'create deployment',
      method: 'POST',
      path: '/api/v1/deployments',
      body: deploymentRequest(`d${count}`),
    })
    if (!response) return
    if (response.status !== 201) {
      invariants.reportAnomaly(
        `create deployment d${count} answered ${response.status} ${JSON.stringify(response.body)}`,
      )
      return
    }
    const { id, deploymentToken: token } = created.parse(response.body)
    const rotated = [...replicas.slice(1), ...replicas.slice(0, 1)]
    const reading = Promise.all([
      followLog('first reader', id, replicas, recorder, MAX_DEPLOYMENT_MS),
      followLog('second reader', id, rotated, recorder, MAX_DEPLOYMENT_MS),
    ])
    if (isCancelled) {
      await sleep(prng.below(600))
      const { status } = (await remove(id, token)) ?? {}
      if (status !== undefined && ![202, 204, 404, 409].includes(status))
        invariants.reportAnomaly(`cancel ${id} answered ${status}`)
    }
    const followed = await reading
    recorder.followedLogs.push(...followed)
    if (!isCancelled && followed.some(({ isDone }) => !isDone))
      invariants.reportAnomaly(`deployment ${id} (d${count}) had did not end within ${MAX_DEPLOYMENT_MS} ms`)
    // Always done before the deletion, which is rejected while infrastructure remains. 409: an earlier attempt without a
    // response succeeded. 404: a cancellation found the deployment finished, and deleted it.
    const destroyed = await destroy(id, token)
    if (destroyed && ![202, 404, 409].includes(destroyed.status))
      invariants.reportAnomaly(`destroy ${id} answered ${destroyed.status} ${JSON.stringify(destroyed.body)}`)
    if (destroyed?.status === 404) return
    recorder.followedLogs.push(await followLog('third reader', id, replicas, recorder, MAX_DEPLOYMENT_MS))
    // 404: an earlier attempt without a response succeeded.
    const deletion = await remove(id, token)
    if (deletion && ![204, 404].includes(deletion.status))
      invariants.reportAnomaly(`remove ${id} answered ${deletion.status} ${JSON.stringify(deletion.body)}`)
  }
  // Deployments do not pause: after a kill they take too long to wait for at each quiescence.
  while (!quiescer.isEnded) {
    await one()
    await sleep(prng.below(MAX_PAUSE_MS))
  }
}
