import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { deploymentRequest } from '@pool/test-kit/deployment-request.ts'
import type { Prng } from '@pool/test-kit/prng.ts'
import * as z from 'zod'
import type { Replica } from '../environment/replica.ts'
import type { InvariantChecker } from '../invariants.ts'
import type { ApiClient, ApiResponse } from './api-client.ts'
import { followLog } from './log-follower.ts'
import type { Quiescer } from './quiescer.ts'
import type { Recorder } from './recorder.ts'

const created = z.object({ id: z.string(), deploymentToken: z.string() })

const MAX_DEPLOYMENT_MS = 90_000
/** A plan runs Terraform before its response. */
const RUN_TIMEOUT_MS = 60_000
const MAX_PAUSE_MS = 8_000

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
  const remove = (id: string, token: string) =>
    client.sendUntilAnswered({
      operation: 'remove deployment',
      method: 'DELETE',
      path: `/api/v1/deployments/${id}`,
      headers: { 'X-Deployment-Token': token },
    })
  const post = (call: 'apply' | 'plan' | 'destroy', id: string, token: string, body?: object) =>
    client.sendUntilAnswered({
      operation: `${call} deployment`,
      method: 'POST',
      path: `/api/v1/deployments/${id}/${call}`,
      headers: { 'X-Deployment-Token': token },
      body,
      timeoutMs: RUN_TIMEOUT_MS,
    })
  const expectStatus = (what: string, response: ApiResponse | undefined, statuses: readonly number[]) => {
    if (response && !statuses.includes(response.status))
      invariants.reportAnomaly(`${what} answered ${response.status} ${JSON.stringify(response.body)}`)
  }

  /** Uses the deployment of another client, then plans or applies the own one. */
  const change = async (id: string, token: string) => {
    const foreign = await post('destroy', id, randomUUID())
    expectStatus(`destroy ${id} without its token`, foreign, [403])
    if (prng.chance(0.5)) {
      const operation = prng.pick(['apply', 'destroy'])
      // 409: the plan failed, because Terraform could not reach its state.
      expectStatus(`plan ${id}`, await post('plan', id, token, { operation }), [200, 409])
    } else {
      // 409: an earlier attempt without a response succeeded.
      expectStatus(`apply ${id}`, await post('apply', id, token, { orgName: 'Changed' }), [202, 409])
      recorder.followedLogs.push(await followLog('reader of the apply', id, replicas, recorder, MAX_DEPLOYMENT_MS))
    }
  }

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
    onToken(token)
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
    if (!isCancelled && prng.chance(0.4)) await change(id, token)
    // Always done before the deletion, which is rejected while infrastructure remains. 409: an earlier attempt without a
    // response succeeded. 404: a cancellation found the deployment finished, and deleted it.
    const destroyed = await post('destroy', id, token)
    expectStatus(`destroy ${id}`, destroyed, [202, 404, 409])
    if (destroyed?.status === 404) return
    recorder.followedLogs.push(await followLog('third reader', id, replicas, recorder, MAX_DEPLOYMENT_MS))
    // 404: an earlier attempt without a response succeeded.
    expectStatus(`remove ${id}`, await remove(id, token), [204, 404])
  }
  // Deployments do not pause: after a kill they take too long to wait for at each quiescence.
  while (!quiescer.isEnded) {
    await one()
    await sleep(prng.below(MAX_PAUSE_MS))
  }
}
