import type { Deployment } from '@pool/contract'
import type { Sql } from '@pool/database/client'
import { until } from '@pool/test-kit/poll.ts'
import type { DeploymentSpec } from '../../src/deployments/domain/types.ts'
import { caller, type DeploymentReplica, toBody } from './deployments-fixture.ts'

export const createDeployment = async (
  replica: DeploymentReplica,
  spec: DeploymentSpec,
  key?: string,
): Promise<string> => {
  const outcome = await replica.deployments.create(toBody(spec), caller, key)
  if (outcome.kind !== 'created') throw new Error(outcome.kind)
  return outcome.id
}

export const readDeployment = async (replica: DeploymentReplica, id: string): Promise<Deployment> => {
  const found = await replica.deployments.get(id)
  if (found.kind !== 'found') throw new Error(found.kind)
  return found.deployment
}

export const waitForApply = (replica: DeploymentReplica, n = 1) =>
  until(`apply ${n}`, () => replica.provisioner.applies[n - 1])

export const waitUntilFinished = (replica: DeploymentReplica, id: string) =>
  until('finished', async () => {
    const deployment = await readDeployment(replica, id)
    return deployment.finishedAt !== null && deployment
  })

export const readNameState = async (sql: Sql, subdomain: string): Promise<string> => {
  const [row] = await sql<{ state: string }[]>`
    select state from pool_allocations where subdomain = ${subdomain} and (state = 'active' or expires_at > now())`
  return row?.state ?? 'free'
}
