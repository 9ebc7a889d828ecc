import { setTimeout as sleep } from 'node:timers/promises'
import { deploymentRequest } from '@pool/test-kit/deployment-request.ts'
import type { Prng } from '@pool/test-kit/prng.ts'
import { z } from 'zod'
import type { Replica } from '../environment/replica.ts'
import type { ApiClient } from './api-client.ts'
import { follow } from './follower.ts'
import type { Quiescer } from './pause-gate.ts'
import type { Recorder } from './recorder.ts'

const created = z.object({ id: z.string() })

const ENDS_WITHIN_MS = 90_000
const MOST_REST_MS = 8_000

export interface DeploymentsOptions {
  readonly client: ApiClient
  readonly replicas: readonly Replica[]
  readonly dice: Prng
  readonly recorder: Recorder
  readonly gate: Pick<Quiescer, 'isOver'>
  readonly onOddity: (oddity: string) => void
}

/** A trickle: each is made, followed by two on different replicas, now and then cancelled, and forgotten. */
export const runDeployments = async (options: DeploymentsOptions): Promise<void> => {
  const { client, replicas, dice, recorder, gate, onOddity } = options
  let made = 0
  const remove = (id: string) =>
    client.settle({ operation: 'remove deployment', method: 'DELETE', path: `/api/v1/deployments/${id}` })

  const one = async () => {
    made += 1
    const isCancelled = dice.chance(0.25)
    const settled = await client.settle({
      operation: 'create deployment',
      method: 'POST',
      path: '/api/v1/deployments',
      body: deploymentRequest(`d${made}`),
    })
    if (!settled) return
    if (settled.status !== 201) {
      onOddity(`create deployment d${made} answered ${settled.status} ${JSON.stringify(settled.body)}`)
      return
    }
    const { id } = created.parse(settled.body)
    const turned = [...replicas.slice(1), ...replicas.slice(0, 1)]
    const following = Promise.all([
      follow('first reader', id, replicas, recorder, ENDS_WITHIN_MS),
      follow('second reader', id, turned, recorder, ENDS_WITHIN_MS),
    ])
    if (isCancelled) {
      await sleep(dice.below(600))
      const { status } = (await remove(id)) ?? {}
      if (status !== undefined && ![202, 204, 404].includes(status)) onOddity(`cancel ${id} answered ${status}`)
    }
    const followed = await following
    recorder.followed.push(...followed)
    if (!isCancelled && followed.some(({ isDone }) => !isDone))
      onOddity(`deployment ${id} (d${made}) had no end within ${ENDS_WITHIN_MS} ms`)
    // 404: a removal that got no answer was made.
    const removal = await remove(id)
    if (removal && ![204, 404].includes(removal.status))
      onOddity(`remove ${id} answered ${removal.status} ${JSON.stringify(removal.body)}`)
  }
  // Not through the gate: one whose process was killed takes its time, and is not waited for at every rest.
  while (!gate.isOver) {
    await one()
    await sleep(dice.below(MOST_REST_MS))
  }
}
