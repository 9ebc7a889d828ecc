import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createAllocationReader } from '../../src/allocation/reader.ts'
import { type AllocationRepository, createAllocationRepository } from '../../src/allocation/repository.ts'
import { type AllocationService, createAllocationService } from '../../src/allocation/service.ts'
import { createIdempotency } from '../../src/idempotency/idempotency.ts'
import { createToken } from '../../src/lib/token.ts'
import type { Caller } from '../../src/naming/naming.ts'
import { createTestDatabase, createTestWriter, repositoryOptions, type TestDatabase } from '../support/database.ts'

const COOL_OFF_MS = 3_600_000
const TTL_MS = repositoryOptions.reservation.ttlMs
const poolDomain = 'pool.test'
const caller: Caller = { actor: 'deployment', address: null, requestId: 'a-deployment' }

let database: TestDatabase
let repository: AllocationRepository
const createService = (acceptsLoopback = false): AllocationService => {
  const { sql } = database
  const timeoutMs = 5_000
  const reader = createAllocationReader(sql, { timeoutMs })
  return createAllocationService({
    repository,
    reader,
    countByState: reader.countByState,
    idempotency: createIdempotency(sql, { timeoutMs }),
    waitUntilApplied: async () => ({ status: 'published' }),
    pools: () => ({ managed: [poolDomain], draining: [], known: [poolDomain] }),
    recordTemplate: { names: ['@'], ttl: 60 },
    acceptsLoopback,
    canDelegate: true,
    bucketPrefix: 'catalyst',
    statementTimeoutMs: timeoutMs,
    now: () => performance.now(),
    onSwept: () => {},
  })
}
let service: AllocationService
beforeAll(async () => {
  database = await createTestDatabase()
  repository = createAllocationRepository(createTestWriter(database.sql), {
    ...repositoryOptions,
    coolOffMs: COOL_OFF_MS,
  })
  service = createService()
})
afterAll(() => database.drop())

/** A deployment with its own lineage, which stores the hashes of its tokens only. */
const startDeployment = (subdomain: string) => {
  const name = { poolDomain, subdomain }
  const lineageId = randomUUID()
  let { tokenHash } = createToken()
  return {
    lineageId,
    hold: () => repository.hold({ ...name, tokenHash, lineageId }),
    letGo: () => repository.letGo({ ...name, lineageId }),
    retake: async (newHash = createToken().tokenHash) => {
      const command = { ...name, tokenHash: newHash, formerTokenHash: tokenHash, lineageId, createdBy: 'deployment' }
      const outcome = await service.retake(command, caller)
      if (outcome.kind === 'granted') tokenHash = newHash
      return outcome.kind
    },
    commit: async () => {
      const more = { tokenHash, sovereignFQDN: `${subdomain}.${poolDomain}`, target: { loadBalancerIP: '198.18.0.1' } }
      return (await service.commit({ ...name, ...more }, caller, undefined)).kind
    },
  }
}
const reserveByOther = async (subdomain: string) =>
  (await service.reserve({ poolDomain, subdomain, createdBy: 'other' }, caller, undefined)).kind
const release = async (subdomain: string) => (await service.release({ poolDomain, subdomain }, caller, undefined)).kind
const check = async (subdomain: string) => (await service.check(poolDomain, subdomain)).reason ?? 'available'

test('a name with infrastructure below it is not free after its reservation expired: reserved-state', async () => {
  const deployment = startDeployment('expired')
  expect([await deployment.retake(), await deployment.hold()]).toEqual(['granted', true])
  await database.advance(TTL_MS)
  expect([await check('expired'), await reserveByOther('expired')]).toEqual(['reserved-state', 'conflict'])
  expect(await service.get({ poolDomain, subdomain: 'expired' })).toEqual({ kind: 'not-found' })
  expect(await deployment.commit()).toBe('reservation-expired')
  // Only the lineage takes it again, and it is free at once when the infrastructure is gone.
  expect([await deployment.retake(), await deployment.commit()]).toEqual(['granted', 'committed'])
})

test('a name that was never active is free as soon as its lineage lets go', async () => {
  const deployment = startDeployment('never-active')
  await deployment.retake()
  await deployment.hold()
  expect(await release('never-active')).toBe('released')
  expect([await check('never-active'), await reserveByOther('never-active')]).toEqual(['reserved-state', 'conflict'])
  expect(await deployment.letGo()).toBe(true)
  expect([await check('never-active'), await reserveByOther('never-active')]).toEqual(['available', 'granted'])
})

test('a released active name with infrastructure is active-state, and its cool-off begins when the lineage lets go', async () => {
  const deployment = startDeployment('destroyed')
  await deployment.retake()
  await deployment.hold()
  await deployment.commit()
  await release('destroyed')
  await database.advance(10 * COOL_OFF_MS)
  expect([await check('destroyed'), await reserveByOther('destroyed')]).toEqual(['active-state', 'conflict'])
  expect([await deployment.letGo(), await deployment.letGo()]).toEqual([true, false])
  expect([await check('destroyed'), await reserveByOther('destroyed')]).toEqual(['cooling-off', 'cooling-off'])
  await database.advance(COOL_OFF_MS)
  expect(await reserveByOther('destroyed')).toBe('granted')
})

test('a live name stays with its client when the lineage lets go', async () => {
  const deployment = startDeployment('stays')
  await deployment.retake()
  await deployment.hold()
  await deployment.commit()
  expect(await deployment.letGo()).toBe(true)
  expect([await check('stays'), await reserveByOther('stays')]).toEqual(['active-state', 'conflict'])
})

test('retake: held while the deployment has the name, whether or not it has infrastructure', async () => {
  const deployment = startDeployment('held')
  await deployment.retake()
  expect(await deployment.retake()).toBe('held')
  await deployment.hold()
  expect(await deployment.retake()).toBe('held')
  await deployment.commit()
  expect(await deployment.retake()).toBe('held')
})

test('retake: a repetition with the same token hash returns the same reservation', async () => {
  const deployment = startDeployment('repeated')
  const { tokenHash } = createToken()
  expect([await deployment.retake(tokenHash), await deployment.retake(tokenHash)]).toEqual(['granted', 'granted'])
  const rows = await database.sql`select event from allocation_history where subdomain = 'repeated'`
  expect(rows).toHaveLength(1)
})

test('retake: in the cool-off of its own name a deployment gets it again, another one does not', async () => {
  const deployment = startDeployment('own-cool-off')
  const other = startDeployment('own-cool-off')
  await deployment.retake()
  await deployment.commit()
  await release('own-cool-off')
  expect(await other.retake()).toBe('cooling-off')
  expect(await deployment.retake()).toBe('granted')
  expect(await other.retake()).toBe('conflict')
})

test('a hold needs the token of a live name, and belongs to one lineage', async () => {
  const deployment = startDeployment('one-lineage')
  const other = startDeployment('one-lineage')
  expect(await deployment.hold()).toBe(false)
  await deployment.retake()
  expect(await other.hold()).toBe(false)
  expect([await deployment.hold(), await deployment.hold()]).toEqual([true, true])
  const { tokenHash } = createToken()
  expect(
    await repository.hold({ poolDomain, subdomain: 'one-lineage', tokenHash, lineageId: deployment.lineageId }),
  ).toBe(false)
  expect(await other.letGo()).toBe(false)
})

test('a loopback address is accepted only where the records are served to this machine alone', async () => {
  const command = { poolDomain, subdomain: 'loopback', sovereignFQDN: 'loopback.pool.test', ...createToken() }
  const commitTo = async (allocations: AllocationService, loadBalancerIP: string) =>
    (await allocations.commit({ ...command, target: { loadBalancerIP } }, caller, undefined)).kind
  expect(await commitTo(createService(false), '127.0.0.1')).toBe('invalid-lb-ip')
  expect(await commitTo(createService(true), '127.0.0.1')).toBe('not-found')
  for (const address of ['0.0.0.1', '169.254.169.254', '224.0.0.1', '240.0.0.1']) {
    expect(await commitTo(createService(true), address)).toBe('invalid-lb-ip')
  }
})

test('a deployment cannot commit the FQDN of another name', async () => {
  const command = { poolDomain, subdomain: 'exact', target: { loadBalancerIP: '198.18.0.1' }, ...createToken() }
  const outcome = await service.commit({ ...command, sovereignFQDN: 'zzz.pool.test' }, caller, undefined)
  expect(outcome.kind).toBe('invalid-fqdn')
})
