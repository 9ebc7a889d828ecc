import { createPrng, type Prng } from '@pool/test-kit/prng.ts'
import { proofSize, reportProof } from '@pool/test-kit/proof-size.ts'
import { expect, test } from 'vitest'
import { TTL_MS, useDeployments } from '../support/deployments-fixture.ts'
import {
  adoptUnheardCreations,
  Cloud,
  type CloudReplica,
  type Extent,
  expectConsistency,
  expectNoCredentials,
  expectSeparation,
  invoke,
  settle,
  startReplica,
  Tenant,
  waitUntilIdle,
} from '../support/tenants.ts'

const fixture = useDeployments()

const SEQUENCES = proofSize(500, 40)
const CALLS = 8
const SEED = 20261122
/** As many as a call and its run usually make. */
const MAX_STATEMENTS = 12

const calls = [
  ...(['create', 'create', 'create', 'apply', 'apply', 'apply', 'destroy', 'destroy', 'destroy'] as const),
  ...(['delete', 'plan', 'abandon'] as const),
]
const extents: readonly Extent[] = ['all', 'all', 'all', 'part', 'nothing', 'waits']

interface Counts {
  calls: number
  kills: number
  accepted: number
}

/** One call of a tenant on a replica that may be killed. Then every run comes to an end. */
const step = async (
  prng: Prng,
  cloud: Cloud,
  survivor: CloudReplica,
  tenant: Tenant,
  counts: Counts,
): Promise<string> => {
  const call = prng.pick(calls)
  const extent = prng.pick(extents)
  const victim = startReplica(fixture, cloud, extent, extent)
  const kill = prng.chance(0.5)
    ? { statement: 1 + prng.below(MAX_STATEMENTS), effect: prng.pick(['before', 'after'] as const) }
    : null
  const killed = kill ? victim.killAt(kill.statement, kill.effect) : new Promise<void>(() => {})
  const attempt = invoke(victim, tenant, call).then(async outcome => {
    if (['created', 'started', 'removed', 'cancelling', 'planned'].includes(outcome)) counts.accepted += 1
    // A run that waits is cancelled, or its process is killed.
    while (victim.deployments.activeCount() > 0) {
      if (victim.terraform.isWaiting && kill) {
        victim.kill()
        return null
      }
      if (victim.terraform.isWaiting) await tenant.remove(survivor)
      await victim.deployments.tick()
      await new Promise(resolve => setTimeout(resolve, 2))
    }
    return `${call} ${extent}: ${outcome}`
  })
  const result = await Promise.race([attempt, killed.then(() => null)])
  if (result === null) {
    counts.kills += 1
    attempt.catch(() => {})
  }
  counts.calls += 1
  await settle(fixture, survivor, result === null ? victim : undefined)
  await waitUntilIdle(survivor)
  await adoptUnheardCreations(fixture, [tenant])
  await victim.close()
  return result ?? `${call} ${extent}: killed at statement ${kill?.statement} ${kill?.effect}`
}

test(`${SEQUENCES} random sequences of ${CALLS} calls by two tenants of one name, with kills`, async () => {
  const counts: Counts = { calls: 0, kills: 0, accepted: 0 }
  const survivor = startReplica(fixture, new Cloud())
  for (let sequence = 0; sequence < SEQUENCES; sequence += 1) {
    const prng = createPrng(SEED + sequence)
    const cloud = new Cloud()
    const tenants = ['Alpha', 'Beta'].map(name => new Tenant(name, `random-${sequence}`, sequence % 2 === 0))
    survivor.terraform.cloud = cloud
    const trace: string[] = []
    try {
      for (let i = 0; i < CALLS; i += 1) {
        const tenant = prng.pick(tenants)
        trace.push(`${tenant.spec.orgName} ${await step(prng, cloud, survivor, tenant, counts)}`)
        await tenant.read(survivor)
        await expectSeparation(fixture, cloud, tenants)
        await expectConsistency(fixture, cloud, tenants[0]?.spec.sovereignFQDN ?? '')
      }
    } catch (error) {
      throw new Error(`sequence ${sequence}:\n${trace.join('\n')}`, { cause: error })
    }
    await fixture.advance(TTL_MS)
  }
  await expectNoCredentials(fixture)
  expect(counts.kills).toBeGreaterThan(SEQUENCES / 2)
  expect(counts.accepted).toBeGreaterThan(SEQUENCES)
  reportProof(
    `${SEQUENCES} sequences of two tenants: ${counts.calls} calls, ${counts.kills} kills, ${counts.accepted} accepted`,
  )
}, 1_800_000)
