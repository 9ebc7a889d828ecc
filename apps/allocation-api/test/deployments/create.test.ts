import { until } from '@pool/test-kit/poll.ts'
import { describe, expect, test } from 'vitest'
import type { DeploymentSpec } from '../../src/deployments/domain/types.ts'
import {
  caller,
  type DeploymentReplica,
  specFor,
  toBody,
  useDeployments,
  withStorage,
} from '../support/deployments-fixture.ts'
import { applied } from '../support/fake-provisioner.ts'

const fixture = useDeployments()

const create = (replica: DeploymentReplica, order: DeploymentSpec, key?: string) =>
  replica.deployments.create(toBody(order), caller, key)
const rows = async (table: 'deployments' | 'pool_allocations' | 'deployment_buckets'): Promise<number> =>
  (await fixture.sql`select from ${fixture.sql(table)}`).length

describe('what is not accepted leaves nothing behind', () => {
  test.each<[what: string, options: Parameters<typeof fixture.replica>[0], missing: string | null, expected: object]>([
    [
      'a process that lacks something',
      {},
      'Install terraform.',
      { kind: 'provisioning-unavailable', detail: 'Install terraform.' },
    ],
    [
      'keys that the provider refuses',
      { validateKeys: async () => ({ kind: 'rejected', message: 'Unknown key.' }) },
      null,
      { kind: 'invalid-deployment', faults: [{ field: 'objectStorageAccessKey', detail: 'Unknown key.' }] },
    ],
    [
      'a provider that is down',
      { validateKeys: async () => ({ kind: 'unavailable', message: 'It does not answer.' }) },
      null,
      { kind: 'object-storage-unavailable', detail: 'It does not answer.' },
    ],
    [
      'a caller who tries keys too often',
      { validateKeys: async () => ({ kind: 'too-many-attempts', retryAfterSeconds: 7 }) },
      null,
      {
        kind: 'too-many-attempts',
        retryAfterSeconds: 7,
        detail: 'Too many credential checks from your address.',
      },
    ],
    [
      'a faulty request',
      { parseSpec: () => ({ kind: 'invalid-deployment', faults: [{ field: 'region', detail: 'no' }] }) },
      null,
      { kind: 'invalid-deployment', faults: [{ field: 'region', detail: 'no' }] },
    ],
  ])('%s', async (_, options, missing, expected) => {
    const replica = fixture.replica(options)
    replica.provisioner.missing = missing
    expect(await create(replica, withStorage('acme'), 'a-key')).toEqual(expected)
    expect(await rows('deployments')).toBe(0)
    expect(await rows('pool_allocations')).toBe(0)
    expect(await rows('deployment_buckets')).toBe(0)
    expect(replica.deployments.activeCount).toBe(0)
  })

  test('a name that others hold', async () => {
    const replica = fixture.replica()
    await create(replica, specFor('acme'))
    expect(await create(replica, specFor('acme', { sovereignFQDN: 'other.test' }))).toEqual({
      kind: 'subdomain-conflict',
    })
    expect(await rows('deployments')).toBe(1)
  })

  test('an FQDN that is deployed already: the name that was reserved for it is free again', async () => {
    const replica = fixture.replica()
    await create(replica, specFor('first', { sovereignFQDN: 'acme.test' }))
    expect(await create(replica, specFor('second', { sovereignFQDN: 'acme.test' }))).toEqual({ kind: 'fqdn-conflict' })
    expect(await rows('pool_allocations')).toBe(1)
  })

  test('one more than may wait', async () => {
    const replica = fixture.replica({ maxConcurrentRuns: 1 })
    const names = Array.from({ length: 101 }, (_, i) => `tenant-${i}`)
    for (const name of names) expect(await create(replica, specFor(name))).toMatchObject({ kind: 'created' })
    expect(await create(replica, specFor('one-more'))).toMatchObject({
      kind: 'provisioning-unavailable',
      retryAfterSeconds: 30,
    })
    expect(await rows('pool_allocations')).toBe(101)
  })

  test('keys are asked about only where there are some', async () => {
    const asked: object[] = []
    const replica = fixture.replica({
      validateKeys: async keys => {
        asked.push(keys)
        return { kind: 'accepted', message: '' }
      },
    })
    await create(replica, specFor('keyless'))
    expect(asked).toEqual([])
    await create(replica, withStorage('keyed'))
    expect(asked).toMatchObject([{ region: 'fsn1', accessKey: expect.stringContaining('marked') }])
  })
})

describe('of many at once', () => {
  test('that want one FQDN, one gets it, whoever is asked', async () => {
    const replicas = [fixture.replica(), fixture.replica()]
    const outcomes = await Promise.all(
      Array.from({ length: 20 }, (_, i) => {
        const replica = replicas[i % 2]
        if (!replica) throw new Error('no replica')
        return create(replica, specFor(`name-${i}`, { sovereignFQDN: 'acme.test', name: null }))
      }),
    )
    expect(outcomes.filter(({ kind }) => kind === 'created')).toHaveLength(1)
    expect(outcomes.filter(({ kind }) => kind === 'fqdn-conflict')).toHaveLength(19)
  })

  test('whose FQDNs give one bucket, one gets it', async () => {
    const replica = fixture.replica()
    const storage = { region: 'fsn1' as const, bucket: 'catalyst-a-b-c-io' }
    const outcomes = await Promise.all(
      ['a-b.c.io', 'a.b.c.io', 'a.b-c.io'].flatMap(sovereignFQDN =>
        Array.from({ length: 4 }, () => create(replica, specFor('x', { sovereignFQDN, name: null, storage }))),
      ),
    )
    const count = (kind: string) => outcomes.filter(outcome => outcome.kind === kind).length
    expect([count('created'), count('fqdn-conflict'), count('bucket-conflict')]).toEqual([1, 3, 8])
    expect(await rows('deployment_buckets')).toBe(1)
  })

  test('with one key and one request, one is made, and all are told of it', async () => {
    const replicas = [fixture.replica(), fixture.replica()]
    const outcomes = await Promise.all(
      Array.from({ length: 10 }, (_, i) => {
        const replica = replicas[i % 2]
        if (!replica) throw new Error('no replica')
        return create(replica, withStorage('acme'), 'one-key')
      }),
    )
    expect(new Set(outcomes.map(outcome => JSON.stringify(outcome))).size).toBe(1)
    expect(outcomes[0]).toMatchObject({ kind: 'created' })
    expect(await rows('deployments')).toBe(1)
    expect(replicas.reduce((sum, { deployments }) => sum + deployments.activeCount, 0)).toBe(1)
  })
})

describe('an Idempotency-Key', () => {
  test('with the same request: the same deployment, also when it has ended since', async () => {
    const replica = fixture.replica()
    replica.provisioner.result = { kind: 'failed', reason: 'no' }
    const first = await create(replica, withStorage('acme'), 'one-key')
    await until('it ended', () => replica.deployments.activeCount === 0)
    replica.provisioner.result = applied()
    expect(await create(replica, withStorage('acme'), 'one-key')).toEqual(first)
    expect(replica.provisioner.applies).toHaveLength(1)
  })

  test.each<[what: string, other: object]>([
    ['another name', toBody(withStorage('other'))],
    [
      'other credentials',
      { ...toBody(withStorage('acme')), credentials: { accessKey: 'a'.repeat(16), secretKey: 's'.repeat(32) } },
    ],
  ])('with %s: refused, nothing made', async (_, other) => {
    const replica = fixture.replica()
    await create(replica, withStorage('acme'), 'one-key')
    expect(await replica.deployments.create(other, caller, 'one-key')).toEqual({ kind: 'idempotency-key-reused' })
    expect(await rows('deployments')).toBe(1)
  })

  test('after keys were refused: not remembered, the next attempt is made', async () => {
    let kind: 'accepted' | 'rejected' = 'rejected'
    const replica = fixture.replica({ validateKeys: async () => ({ kind, message: 'no' }) })
    expect(await create(replica, withStorage('acme'), 'one-key')).toMatchObject({ kind: 'invalid-deployment' })
    kind = 'accepted'
    expect(await create(replica, withStorage('acme'), 'one-key')).toMatchObject({ kind: 'created' })
  })
})

describe('the list', () => {
  test('is newest first, by status, page after page without a gap', async () => {
    const replica = fixture.replica()
    replica.provisioner.result = applied()
    for (let i = 0; i < 5; i += 1) await create(replica, specFor(`tenant-${i}`))
    await until('all ended', () => replica.deployments.activeCount === 0)
    replica.provisioner.result = { kind: 'failed', reason: 'no' }
    await create(replica, specFor('unlucky'))
    await until('all ended', () => replica.deployments.activeCount === 0)
    const { deployments } = replica
    const seen: string[] = []
    let cursor: string | undefined
    do {
      const page = await deployments.list({ limit: 2, cursor })
      expect(page.deployments.length).toBeLessThanOrEqual(2)
      seen.push(...page.deployments.map(({ sovereignFQDN }) => sovereignFQDN))
      cursor = page.nextCursor
    } while (cursor !== undefined)
    expect(seen).toEqual(
      ['unlucky', 'tenant-4', 'tenant-3', 'tenant-2', 'tenant-1', 'tenant-0'].map(n => `${n}.pool.test`),
    )
    const failed = await deployments.list({ status: 'failed' })
    expect(failed.deployments.map(({ sovereignFQDN }) => sovereignFQDN)).toEqual(['unlucky.pool.test'])
    expect(failed.nextCursor).toBeUndefined()
  })
})
