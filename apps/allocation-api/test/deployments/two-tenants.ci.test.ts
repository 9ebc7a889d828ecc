import { until } from '@pool/test-kit/poll.ts'
import { isProof, proofSize, reportProof } from '@pool/test-kit/proof-size.ts'
import { afterAll, describe, expect, test } from 'vitest'
import { calls, decideCall, type Verdict } from '../../src/deployments/domain/lifecycle.ts'
import { createDeploymentRepository } from '../../src/deployments/repository.ts'
import { createTestWriter } from '../support/database.ts'
import { LEASE_MS, TTL_MS, useDeployments } from '../support/deployments-fixture.ts'
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

/** The steps that bring the first tenant's deployment to its state, each to its end. */
type Step = readonly [call: 'create' | 'apply' | 'destroy' | 'delete' | 'abandon' | 'cancel', extent?: Extent]

const states: Readonly<Record<string, readonly Step[]>> = {
  ready: [['create', 'all']],
  'failed before anything existed': [['create', 'nothing']],
  'failed midway': [['create', 'part']],
  'cancelled midway': [['create', 'waits'], ['cancel']],
  'ready, and an apply failed': [
    ['create', 'all'],
    ['apply', 'part'],
  ],
  'partly destroyed': [
    ['create', 'all'],
    ['destroy', 'part'],
  ],
  'a destroy that was cancelled': [['create', 'all'], ['destroy', 'waits'], ['cancel']],
  destroyed: [['create', 'all'], ['destroy']],
  'destroyed and installed again': [['create', 'all'], ['destroy'], ['apply', 'all']],
  'failed midway, then destroyed': [['create', 'part'], ['destroy']],
  'destroyed and deleted': [['create', 'all'], ['destroy'], ['delete']],
  abandoned: [['create', 'all'], ['abandon']],
}

const bringTo = async (replica: CloudReplica, tenant: Tenant, steps: readonly Step[]): Promise<void> => {
  for (const [call, extent = 'all'] of steps) {
    if (call === 'cancel') await until('Terraform runs', () => replica.terraform.isWaiting)
    else Object.assign(replica.terraform, { applies: extent, destroys: extent })
    const outcome = await invoke(replica, tenant, call === 'cancel' ? 'delete' : call)
    expect(['created', 'started', 'removed', 'cancelling']).toContain(outcome)
    if (extent !== 'waits') await waitUntilIdle(replica)
  }
  await waitUntilIdle(replica)
  Object.assign(replica.terraform, { applies: 'all', destroys: 'all' })
}

const outcomes: Readonly<Record<Verdict, string>> = {
  created: 'created',
  started: 'started',
  planned: 'planned',
  cancelled: 'cancelling',
  deleted: 'removed',
  abandoned: 'removed',
  // No run left a lock here.
  unlocked: 'lock-not-recorded',
  taken: 'subdomain-conflict',
  'fqdn-remains': 'fqdn-remains',
  'bucket-exists': 'bucket-exists',
  'in-progress': 'in-progress',
  'destroy-incomplete': 'destroy-incomplete',
  'still-up': 'still-up',
}

let count = 0
interface Pair {
  readonly cloud: Cloud
  readonly survivor: CloudReplica
  readonly first: Tenant
  readonly second: Tenant
}

/** Two tenants that want the same name; the first one's deployment is in its state. */
const startPair = async (steps: readonly Step[], hasStorage: boolean): Promise<Pair> => {
  count += 1
  const cloud = new Cloud()
  const survivor = startReplica(fixture, cloud)
  const first = new Tenant('Alpha', `pair-${count}`, hasStorage)
  const second = new Tenant('Beta', `pair-${count}`, hasStorage)
  await bringTo(survivor, first, steps)
  return { cloud, survivor, first, second }
}

/** What remains can be cleared with the documented calls, and then the name is free. */
const expectClearable = async ({ cloud, survivor, first, second }: Pair): Promise<void> => {
  for (const tenant of [first, second]) {
    for (const id of [...tenant.tokens.keys()].reverse()) {
      if ((await survivor.deployments.get(id)).kind === 'not-found') continue
      await tenant.start(survivor, 'destroy')
      await waitUntilIdle(survivor)
      expect(await tenant.remove(survivor)).toBe('removed')
      tenant.tokens.delete(id)
    }
  }
  const { sovereignFQDN, name } = first.spec
  // A reservation whose request was killed expires.
  await fixture.advance(TTL_MS)
  expect(cloud.statesUp(sovereignFQDN)).toEqual([])
  const rows = await fixture.sql`
    select from pool_allocations where subdomain = ${name?.subdomain ?? ''}
      and (state = 'active' or lineage_id is not null or greatest(expires_at, cool_off_until) > now())`
  expect(rows).toHaveLength(0)
}

const expectRules = async ({ cloud, survivor, first, second }: Pair): Promise<void> => {
  await first.read(survivor)
  await second.read(survivor)
  await expectSeparation(fixture, cloud, [first, second])
  await expectConsistency(fixture, cloud, first.spec.sovereignFQDN)
  await expectNoCredentials(fixture)
}

/** What the first tenant's deployment is, for the table; null if it does not exist any more. */
const findSituation = (tenant: Tenant) =>
  createDeploymentRepository(fixture.sql, createTestWriter(fixture.sql), {
    timeoutMs: 5_000,
    leaseMs: LEASE_MS,
    coolOffMs: 0,
  }).findSituation(tenant.id)

/** Every state with every call. Every other pair has a bucket, and each pair is tested with and without one in CI. */
const pairs = Object.entries(states).flatMap(([state, steps], row) =>
  calls.flatMap((call, column) =>
    [false, true]
      .filter(hasStorage => isProof || hasStorage === ((row + column) % 2 === 0))
      .map(hasStorage => [state, call, hasStorage, steps] as const),
  ),
)

describe('the first tenant has the name', () => {
  test.each(pairs)('%s; its next call is %s; with a bucket: %s', async (_, call, hasStorage, steps) => {
    const pair = await startPair(steps, hasStorage)
    const { survivor, first } = pair
    const situation = await findSituation(first)
    const outcome = await invoke(survivor, first, call)
    if (situation) expect(outcome).toBe(outcomes[decideCall(situation, call)])
    else if (call !== 'create') expect(outcome).toBe('not-found')
    await waitUntilIdle(survivor)
    await expectRules(pair)
    await expectClearable(pair)
  })

  test.each(pairs.filter(([, call]) => call === 'create'))(
    '%s; the next call is a %s of the second tenant; with a bucket: %s',
    async (_, call, hasStorage, steps) => {
      const pair = await startPair(steps, hasStorage)
      const { cloud, survivor, first, second } = pair
      const situation = await findSituation(first)
      const outcome = await invoke(survivor, second, call)
      if (situation) expect(outcome).toBe(outcomes[decideCall(situation, call)])
      await waitUntilIdle(survivor)
      if (outcome === 'created') {
        const [mine] = cloud.statesUp(first.spec.sovereignFQDN)
        expect([...(cloud.states.get(mine ?? '')?.machines ?? [])]).toEqual([`machine-${second.id}`])
      }
      await expectRules(pair)
      await expectClearable(pair)
    },
  )

  test.each(Object.entries(states))('%s; a second tenant cannot call the deployment', async (_, steps) => {
    const pair = await startPair(steps, true)
    const { survivor, first, second } = pair
    second.tokens.set(first.id, '00000000-0000-4000-8000-000000000000')
    const expected = (await findSituation(first)) ? 'token-mismatch' : 'not-found'
    for (const call of ['apply', 'plan', 'destroy', 'plan-destroy', 'delete'] as const) {
      expect(await invoke(survivor, second, call)).toBe(expected)
    }
    second.tokens.clear()
    await expectRules(pair)
  })
})

/** More statements than any call and its run make. */
const MAX_STATEMENTS = 24
const kills = Array.from({ length: MAX_STATEMENTS }, (_, i) => i + 1).flatMap(statement =>
  (['before', 'after'] as const).map(effect => ({ statement, effect })),
)
const callsWithEffects = ['create', 'apply', 'destroy', 'delete', 'abandon'] as const

describe('a kill at each statement of the next call and of its run', () => {
  let killCount = 0
  let endedCount = 0
  afterAll(() => reportProof(`two tenants: ${killCount} kills; ${endedCount} runs ended before their kill`))

  const cases = Object.entries(states).flatMap(([state, steps]) =>
    callsWithEffects.flatMap(call => ['first', 'second'].map(caller => [state, call, caller, steps] as const)),
  )
  // The second tenant can only create; its calls to the deployment are rejected.
  const relevant = cases.filter(([, call, caller]) => caller === 'first' || call === 'create')
  const size = isProof ? proofSize(kills.length) : 1
  const chosen = relevant.flatMap((row, at) =>
    Array.from(
      { length: size },
      (_, i) => [...row, kills[(at * 7 + i * Math.floor(kills.length / size)) % kills.length]] as const,
    ),
  )

  test.each(chosen)('%s; %s by the %s tenant', async (_, call, caller, steps, kill) => {
    const pair = await startPair(steps, kill !== undefined && kill.statement % 2 === 0)
    const { cloud, survivor, first, second } = pair
    const victim = startReplica(fixture, cloud)
    const killed = victim.killAt(kill?.statement ?? 1, kill?.effect ?? 'before')
    const tenant = caller === 'first' ? first : second
    const isKilled = await Promise.race([
      invoke(victim, tenant, call)
        .then(() => waitUntilIdle(victim))
        .then(() => false),
      killed.then(() => true),
    ])
    if (isKilled) killCount += 1
    else endedCount += 1
    await settle(fixture, survivor, isKilled ? victim : undefined)
    // A client that received no response repeats the call, which is harmless whatever became of the first one.
    if (isKilled) await invoke(survivor, tenant, call)
    await victim.close()
    await waitUntilIdle(survivor)
    await expectRules(pair)
    await adoptUnheardCreations(fixture, [first, second])
    await expectClearable(pair)
  })
})
