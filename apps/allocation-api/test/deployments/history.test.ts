import { describe, expect, test } from 'vitest'
import type { Caller } from '../../src/naming/naming.ts'
import {
  createDeployment,
  type DeploymentReplica,
  specFor,
  toBody,
  toKeys,
  useDeployments,
  waitForApply,
  waitUntilFinished,
} from '../support/deployments-fixture.ts'
import { applied } from '../support/fake-provisioner.ts'

const fixture = useDeployments()
const spec = specFor('acme')
const tenant: Caller = { actor: 'in-cluster', address: '10.0.0.9', requestId: 'tenant-1' }
const operator: Caller = { actor: 'operator', address: '192.0.2.7', requestId: 'operator-1' }
const by = (caller: Caller) => ({ caller, token: undefined })

/** Event, actor, address and request id of each entry, oldest first. */
const readHistory = async (replica: DeploymentReplica, id: string) => {
  const { items: entries } = await replica.deployments.history({ deployment: id })
  return entries.map(({ event, actor, address, requestId }) => [event, actor, address, requestId]).toReversed()
}
const createBy = async (replica: DeploymentReplica, caller: Caller) => {
  const outcome = await replica.deployments.create(toBody(spec), caller, undefined)
  if (outcome.kind !== 'created') throw new Error(outcome.kind)
  return { id: outcome.id, token: outcome.deploymentToken }
}

describe('the history of a deployment', () => {
  test('has who created, changed, destroyed and deleted it, and outlives it', async () => {
    const replica = fixture.replica()
    replica.provisioner.result = applied()
    const { id, token } = await createBy(replica, tenant)
    await waitUntilFinished(replica, id)
    await replica.deployments.apply(id, toKeys(spec), { caller: tenant, token })
    await waitUntilFinished(replica, id)
    await replica.deployments.destroy(id, toKeys(spec), by(operator))
    await waitUntilFinished(replica, id)
    expect(await replica.deployments.remove(id, false, { caller: tenant, token })).toEqual({ kind: 'removed' })
    expect(await replica.deployments.get(id)).toEqual({ kind: 'not-found' })
    expect(await readHistory(replica, id)).toEqual([
      ['created', 'in-cluster', '10.0.0.9', 'tenant-1'],
      ['ready', 'deployment', undefined, undefined],
      ['apply-requested', 'in-cluster', '10.0.0.9', 'tenant-1'],
      ['ready', 'deployment', undefined, undefined],
      ['destroy-requested', 'operator', '192.0.2.7', 'operator-1'],
      ['destroyed', 'deployment', undefined, undefined],
      ['deleted', 'in-cluster', '10.0.0.9', 'tenant-1'],
    ])
    const { items: entries } = await replica.deployments.history({ fqdn: 'acme.pool.test' })
    expect(entries).toHaveLength(7)
    expect(entries[0]).toMatchObject({ orgName: 'Acme', sovereignFQDN: 'acme.pool.test', deploymentId: id })
  })

  test('has the first cancellation, and the reason of the failure', async () => {
    const replica = fixture.replica()
    // The run ends after the second cancellation, whatever the speed of the machine.
    replica.provisioner.ignoresStop = true
    const { id, token } = await createBy(replica, tenant)
    const apply = await waitForApply(replica)
    await replica.deployments.remove(id, false, by(operator))
    await replica.deployments.remove(id, false, { caller: tenant, token })
    await replica.deployments.tick()
    apply.end({ kind: 'stopped' })
    await waitUntilFinished(replica, id)
    expect(await readHistory(replica, id)).toEqual([
      ['created', 'in-cluster', '10.0.0.9', 'tenant-1'],
      ['cancelled', 'operator', '192.0.2.7', 'operator-1'],
      ['failed', 'deployment', undefined, undefined],
    ])
    expect((await replica.deployments.history({ deployment: id })).items[0]?.detail).toBe('Cancelled.')
  })

  test('has who abandoned infrastructure, once, also after a crash between that and the deletion', async () => {
    const replica = fixture.replica()
    replica.provisioner.result = applied()
    const { id } = await createBy(replica, tenant)
    await waitUntilFinished(replica, id)
    const archive = replica.provisioner.archive.bind(replica.provisioner)
    replica.provisioner.archive = async () => {
      throw new Error('the process ends here')
    }
    await expect(replica.deployments.remove(id, true, by(operator))).rejects.toThrow('the process ends here')
    replica.provisioner.archive = archive
    expect(await replica.deployments.remove(id, true, by(operator))).toEqual({ kind: 'removed' })
    expect((await readHistory(replica, id)).map(([event]) => event)).toEqual([
      'created',
      'ready',
      'abandoned',
      'deleted',
    ])
  })

  test('has who lifted a lock', async () => {
    const replica = fixture.replica()
    replica.provisioner.result = applied()
    const { id } = await createBy(replica, tenant)
    await waitUntilFinished(replica, id)
    const lock = { id: 'lock-1', host: 'h', processGroup: 1, startedAt: '1' }
    await fixture.sql`update lineages set state_lock = ${fixture.sql.json(lock)}`
    expect(await replica.deployments.unlock(id, operator)).toMatchObject({ kind: 'unlocked' })
    expect((await replica.deployments.history({ deployment: id })).items[0]).toMatchObject({
      event: 'unlocked',
      address: '192.0.2.7',
      detail: 'Lock lock-1',
    })
  })

  test('is newest first, paginated without gaps, and at most 1,000 entries on a page', async () => {
    const replica = fixture.replica()
    await fixture.sql`
      insert into deployment_history (event, deployment_id, lineage_id, sovereign_fqdn, org_name, actor)
      select 'created', gen_random_uuid(), gen_random_uuid(), 'n' || i || '.test', 'Acme', 'in-cluster'
      from generate_series(1, 1100) i order by i`
    const first = await replica.deployments.history({ limit: 5_000 })
    const rest = await replica.deployments.history({ limit: 5_000, cursor: first.nextCursor })
    const names = [...first.items, ...rest.items].map(({ sovereignFQDN }) => sovereignFQDN)
    expect([first.items.length, rest.nextCursor]).toEqual([1_000, undefined])
    expect(names).toEqual(Array.from({ length: 1_100 }, (_, i) => `n${1_100 - i}.test`))
    expect((await replica.deployments.history({})).items).toHaveLength(100)
  })
})

// A deletion frees the name. Its entry must show who caused it.
test('the release of the name of a deleted deployment has the address and the request id of the caller', async () => {
  const replica = fixture.replica()
  const id = await createDeployment(replica, spec)
  const { end } = await waitForApply(replica)
  end(applied())
  await waitUntilFinished(replica, id)
  await replica.deployments.remove(id, true, by(operator))
  const released = await fixture.sql`
    select actor, address, request_id from allocation_history where event = 'released'`
  expect(released).toEqual([{ actor: 'deployment', address: '192.0.2.7', request_id: 'operator-1' }])
})
