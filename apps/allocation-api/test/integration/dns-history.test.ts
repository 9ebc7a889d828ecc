import { until } from '@pool/test-kit/poll.ts'
import { describe, expect, test } from 'vitest'
import { createAllocationRepository } from '../../src/allocation/repository.ts'
import { missingDsn, testDsn } from '../support/database.ts'
import { poolDomain, useDnsFixture } from '../support/dns-fixture.ts'

const down = { kind: 'unavailable', reason: 'The provider is down.' } as const

describe.skipIf(!testDsn)(`what the history tells of records (${testDsn ? 'real Postgres' : missingDsn})`, () => {
  const scene = useDnsFixture()
  const { replica, activate, free, row, advance, events } = scene
  /** The entries of the name that convergence wrote, oldest first. */
  const told = async (subdomain: string) => {
    const repository = createAllocationRepository(scene.sql, { timeoutMs: 5_000 })
    const entries = (await repository.listHistory(poolDomain, { subdomain, limit: 100 })).map(({ entry }) => entry)
    return entries.filter(({ actor }) => actor === 'convergence').reverse()
  }

  test('published and withdrawn: after the commit and the release, by convergence, without a change of state', async () => {
    const { dns } = replica()
    await dns.waitUntilApplied(await activate('acme'))
    await dns.waitUntilApplied(await free('acme'))
    expect(await events('acme')).toEqual(['reserved', 'committed', 'published', 'released', 'withdrawn'])
    const common = { poolDomain, subdomain: 'acme', at: expect.any(String), actor: 'convergence', createdBy: '' }
    expect(await told('acme')).toEqual([
      { ...common, event: 'published', from: 'active', to: 'active' },
      { ...common, event: 'withdrawn', from: 'none', to: 'none' },
    ])
  })

  test('failing, and why: once for each cause, however often it is tried', async () => {
    const { dns } = replica()
    scene.provider.faults.push({ answer: down })
    await dns.waitUntilApplied(await activate('acme'))
    const again = async (attempts: number) => {
      await advance(60_000)
      await dns.syncDueZones()
      await until('it has been tried', async () => (await row('acme'))?.attempts === attempts)
    }
    scene.provider.faults.push({ answer: down })
    await again(2)
    scene.provider.faults.push({ answer: { ...down, reason: 'It is still down.' } })
    await again(3)
    scene.provider.refuses.add('acme.pool.test')
    await again(1)
    await again(2)
    scene.provider.refuses.clear()
    await advance(60_000)
    await dns.syncDueZones()
    await until('it is out', async () => (await events('acme')).at(-1) === 'published')
    expect((await told('acme')).map(({ event, detail }) => [event, detail])).toEqual([
      ['failing', 'The provider is down.'],
      ['failing', 'The DNS provider rejected acme.pool.test: not allowed'],
      ['published', undefined],
    ])
  })

  test('a withdrawal that fails is told too, and is not taken for one of the next holder', async () => {
    const { dns } = replica()
    await dns.waitUntilApplied(await activate('acme'))
    scene.provider.faults.push({ answer: down })
    await dns.waitUntilApplied(await free('acme'))
    await dns.waitUntilApplied(await activate('acme', '192.0.2.2'))
    expect((await told('acme')).map(({ event, to }) => [event, to])).toEqual([
      ['published', 'active'],
      ['failing', 'none'],
      ['published', 'active'],
    ])
  })

  test('a release that overtakes the publication: withdrawn, without ever having been published', async () => {
    const { dns } = replica()
    const gate = Promise.withResolvers<void>()
    scene.provider.gate = gate.promise
    const first = dns.waitUntilApplied(await activate('first'))
    await until('a write is under way', () => scene.provider.underWay === 1)
    await activate('acme')
    const withdrawn = dns.waitUntilApplied(await free('acme'))
    gate.resolve()
    await Promise.all([first, withdrawn])
    expect(await events('acme')).toEqual(['reserved', 'committed', 'released', 'withdrawn'])
  })
})
