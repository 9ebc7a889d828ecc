import type { Deployment } from '@pool/contract'
import type { Sql } from '@pool/database/client'
import { until } from '@pool/test-kit/poll.ts'
import type { DeploymentSpec } from '../../src/deployments/domain/types.ts'
import { asking, caller, type Desk } from './deployments-fixture.ts'

export const created = async (desk: Desk, order: DeploymentSpec, key?: string): Promise<string> => {
  const outcome = await desk.deployments.verbs.create(asking(order), caller, key)
  if (outcome.kind !== 'created') throw new Error(outcome.kind)
  return outcome.id
}

export const read = async (desk: Desk, id: string): Promise<Deployment> => {
  const found = await desk.deployments.verbs.get(id)
  if (found.kind !== 'found') throw new Error(found.kind)
  return found.deployment
}

export const begun = (desk: Desk, n = 1) => until(`making ${n}`, () => desk.infrastructure.begun[n - 1])

export const finished = (desk: Desk, id: string) =>
  until('finished', async () => {
    const deployment = await read(desk, id)
    return deployment.finishedAt !== null && deployment
  })

export const nameStateIn = async (sql: Sql, subdomain: string): Promise<string> => {
  const [row] = await sql<{ state: string }[]>`
    select state from pool_allocations where subdomain = ${subdomain} and (state = 'active' or expires_at > now())`
  return row?.state ?? 'free'
}
