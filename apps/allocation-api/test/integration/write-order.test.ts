import { expect, test } from 'vitest'
import { createAllocationReader } from '../../src/allocation/reader.ts'
import { createAllocationRepository } from '../../src/allocation/repository.ts'
import { createTestWriter, repositoryOptions, useTestDatabase } from '../support/database.ts'
import { holdLock, untilSessionsWait } from '../support/locks.ts'

// Numbers are drawn from sequences, whose order is not that of the commits.

const caller = { actor: 'in-cluster', address: null, requestId: 'write-order' } as const
const tokenHash = Buffer.alloc(32, 1)
const toName = (subdomain: string) => ({ poolDomain: 'pool.test', subdomain })

const database = await useTestDatabase()
const repository = () => createAllocationRepository(createTestWriter(database.sql), repositoryOptions)
const reserve = (subdomain: string) => repository().reserve({ ...toName(subdomain), createdBy: '', tokenHash, caller })

test('the version of records is drawn after the lock of their row: a statement that waited has the higher one', async () => {
  await reserve('acme')
  const request = {
    ...toName('acme'),
    tokenHash,
    sovereignFQDN: 'acme.pool.test',
    target: { loadBalancerIP: '192.0.2.1' },
  }
  await repository().commit({ ...request, records: [], caller })
  const released = Promise.withResolvers<unknown>()
  const [other] = await database.sql.begin(async tx => {
    await tx`select from dns_names where subdomain = 'acme' for update`
    repository()
      .release({ ...toName('acme'), caller })
      .then(released.resolve, released.reject)
    await untilSessionsWait(database.sql, 1)
    // As a drift check does, after the release has started.
    return tx<{ version: number }[]>`
      update dns_names set version = nextval('dns_version') where subdomain = 'acme' returning version`
  })
  await released.promise
  const [row] = await database.sql<{ version: number; desired: unknown }[]>`
    select version, desired from dns_names where subdomain = 'acme'`
  expect(row?.desired).toEqual([])
  expect(row?.version).toBeGreaterThan(other?.version ?? Number.POSITIVE_INFINITY)
})

test('a history entry can appear below a newer one, when its write commits later', async () => {
  const list = async () =>
    (
      await createAllocationReader(database.sql, repositoryOptions).listHistory('pool.test', {
        subdomain: undefined,
        before: undefined,
        limit: 2,
      })
    ).map(({ entry }) => entry.subdomain)
  const held = await holdLock(
    database.sql,
    tx => tx`
      insert into allocation_history (pool_domain, subdomain, event, from_state, to_state, actor, created_by)
      values ('pool.test', 'first', 'reserved', 'none', 'reserved', 'in-cluster', '')`,
  )
  await reserve('second')
  expect(await list()).not.toContain('first')
  await held.commit()
  // A reader that continues after the newest entry it has seen would miss it.
  expect(await list()).toEqual(['second', 'first'])
})
