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

const create = (replica: DeploymentReplica, spec: DeploymentSpec, key?: string) =>
  replica.deployments.create(toBody(spec), caller, key)
const rows = async (table: 'deployments' | 'pool_allocations' | 'bucket_claims'): Promise<number> =>
  (await fixture.sql`select from ${fixture.sql(table)}`).length

describe('a rejected request leaves nothing behind', () => {
  test.each<[what: string, options: Parameters<typeof fixture.replica>[0], missing: string | null, expected: object]>([
    [
      'missing prerequisites',
      {},
      'Install terraform.',
      { kind: 'provisioning-unavailable', detail: 'Install terraform.' },
    ],
    [
      'credentials that the provider rejects',
      { validateKeys: async () => ({ kind: 'rejected', message: 'Unknown key.' }) },
      null,
      { kind: 'invalid-deployment', faults: [{ field: 'objectStorageAccessKey', detail: 'Unknown key.' }] },
    ],
    [
      'an unavailable provider',
      { validateKeys: async () => ({ kind: 'unavailable', message: 'It does not answer.' }) },
      null,
      { kind: 'object-storage-unavailable', detail: 'It does not answer.' },
    ],
    [
      'too many credential checks',
      { validateKeys: async () => ({ kind: 'too-many-attempts', retryAfterSeconds: 7 }) },
      null,
      {
        kind: 'too-many-attempts',
        retryAfterSeconds: 7,
        detail: 'Too many credential checks from your address.',
      },
    ],
    [
      'an invalid request',
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
    expect(await rows('bucket_claims')).toBe(0)
    expect(replica.deployments.activeCount()).toBe(0)
  })

  test('a name that is already allocated', async () => {
    const replica = fixture.replica()
    await create(replica, specFor('acme'))
    expect(await create(replica, specFor('acme', { sovereignFQDN: 'other.test' }))).toEqual({
      kind: 'subdomain-conflict',
    })
    expect(await rows('deployments')).toBe(1)
  })

  test('an FQDN that is already deployed: the name reserved for it is released', async () => {
    const replica = fixture.replica()
    await create(replica, specFor('first', { sovereignFQDN: 'acme.test' }))
    expect(await create(replica, specFor('second', { sovereignFQDN: 'acme.test' }))).toEqual({ kind: 'fqdn-conflict' })
    expect(await rows('pool_allocations')).toBe(1)
  })

  test('a full queue', async () => {
    const replica = fixture.replica({ maxConcurrentRuns: 1 })
    const names = Array.from({ length: 101 }, (_, i) => `tenant-${i}`)
    for (const name of names) expect(await create(replica, specFor(name))).toMatchObject({ kind: 'created' })
    expect(await create(replica, specFor('one-more'))).toMatchObject({
      kind: 'provisioning-unavailable',
      retryAfterSeconds: 30,
    })
    expect(await rows('pool_allocations')).toBe(101)
  })

  test('credentials are checked only if there are any', async () => {
    const checked: object[] = []
    const replica = fixture.replica({
      validateKeys: async keys => {
        checked.push(keys)
        return { kind: 'accepted', message: '' }
      },
    })
    await create(replica, specFor('keyless'))
    expect(checked).toEqual([])
    await create(replica, withStorage('keyed'))
    expect(checked).toMatchObject([{ region: 'fsn1', accessKey: expect.stringContaining('marked') }])
  })
})

describe('of many concurrent requests', () => {
  test('for one FQDN, exactly one succeeds, on any replica', async () => {
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

  test('with one Idempotency-Key, exactly one creates, and all get its response', async () => {
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
    expect(replicas.reduce((sum, { deployments }) => sum + deployments.activeCount(), 0)).toBe(1)
  })
})

describe('an Idempotency-Key', () => {
  test('with the same request returns the same deployment, even after its end', async () => {
    const replica = fixture.replica()
    replica.provisioner.result = { kind: 'failed', reason: 'no' }
    const first = await create(replica, withStorage('acme'), 'one-key')
    await until('the run has ended', () => replica.deployments.activeCount() === 0)
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
  ])('with %s is rejected and creates nothing', async (_, other) => {
    const replica = fixture.replica()
    await create(replica, withStorage('acme'), 'one-key')
    expect(await replica.deployments.create(other, caller, 'one-key')).toEqual({ kind: 'idempotency-key-reused' })
    expect(await rows('deployments')).toBe(1)
  })

  test('is not used up by rejected credentials', async () => {
    let kind: 'accepted' | 'rejected' = 'rejected'
    const replica = fixture.replica({ validateKeys: async () => ({ kind, message: 'no' }) })
    expect(await create(replica, withStorage('acme'), 'one-key')).toMatchObject({ kind: 'invalid-deployment' })
    kind = 'accepted'
    expect(await create(replica, withStorage('acme'), 'one-key')).toMatchObject({ kind: 'created' })
  })
})

describe('the list', () => {
  test('is newest first, filtered by status, and paginated without gaps', async () => {
    const replica = fixture.replica()
    replica.provisioner.result = applied()
    for (let i = 0; i < 5; i += 1) await create(replica, specFor(`tenant-${i}`))
    await until('all runs have ended', () => replica.deployments.activeCount() === 0)
    replica.provisioner.result = { kind: 'failed', reason: 'no' }
    await create(replica, specFor('unlucky'))
    await until('all runs have ended', () => replica.deployments.activeCount() === 0)
    const { deployments } = replica
    const seen: string[] = []
    let cursor: string | undefined
    do {
      const page = await deployments.list({ limit: 2, cursor })
      expect(page.items.length).toBeLessThanOrEqual(2)
      seen.push(...page.items.map(({ sovereignFQDN }) => sovereignFQDN))
      cursor = page.nextCursor
    } while (cursor !== undefined)
    expect(seen).toEqual(
      ['unlucky', 'tenant-4', 'tenant-3', 'tenant-2', 'tenant-1', 'tenant-0'].map(n => `${n}.pool.test`),
    )
    const failed = await deployments.list({ status: 'failed' })
    expect(failed.items.map(({ sovereignFQDN }) => sovereignFQDN)).toEqual(['unlucky.pool.test'])
    expect(failed.nextCursor).toBeUndefined()
  })
})
