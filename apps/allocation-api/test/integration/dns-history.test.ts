import { until } from '@pool/test-kit/poll.ts'
import { describe, expect, test } from 'vitest'
import { createAllocationReader } from '../../src/allocation/reader.ts'
import { poolDomain, useDnsFixture } from '../support/dns-fixture.ts'

const down = { kind: 'unavailable', reason: 'The provider is down.' } as const

describe('the history entries of DNS records', () => {
  const scene = useDnsFixture()
  const { replica, activate, release, row, advance, events } = scene
  /** The name's entries with the actor `convergence`, oldest first. */
  const convergenceEntries = async (subdomain: string) => {
    const reader = createAllocationReader(scene.sql, { timeoutMs: 5_000 })
    const entries = (await reader.listHistory(poolDomain, { subdomain, limit: 100 })).map(({ entry }) => entry)
    return entries.filter(({ actor }) => actor === 'convergence').reverse()
  }

  test('published after the commit and withdrawn after the release, by the reconciler, without a change of state', async () => {
    const { dns } = replica()
    await dns.waitUntilApplied(await activate('acme'))
    await dns.waitUntilApplied(await release('acme'))
    expect(await events('acme')).toEqual(['reserved', 'committed', 'published', 'released', 'withdrawn'])
    const common = { poolDomain, subdomain: 'acme', at: expect.any(String), actor: 'convergence', createdBy: '' }
    expect(await convergenceEntries('acme')).toEqual([
      { ...common, event: 'published', from: 'active', to: 'active' },
      { ...common, event: 'withdrawn', from: 'none', to: 'none' },
    ])
  })

  test('failing, with the cause: one entry for each cause, regardless of the number of attempts', async () => {
    const { dns } = replica()
    scene.provider.faults.push({ result: down })
    await scene.attempt(dns, await activate('acme'))
    const again = async (attempts: number) => {
      await advance(60_000)
      await dns.syncDueZones()
      await until('the attempt count is reached', async () => (await row('acme'))?.attempts === attempts)
    }
    scene.provider.faults.push({ result: down })
    await again(2)
    scene.provider.faults.push({ result: { ...down, reason: 'It is still down.' } })
    await again(3)
    scene.provider.rejectedNames.add('acme.pool.test')
    await again(1)
    await again(2)
    scene.provider.rejectedNames.clear()
    await advance(60_000)
    await dns.syncDueZones()
    await until('the name is published', async () => (await events('acme')).at(-1) === 'published')
    expect((await convergenceEntries('acme')).map(({ event, detail }) => [event, detail])).toEqual([
      ['failing', 'The provider is down.'],
      ['failing', 'The DNS provider rejected acme.pool.test: not allowed'],
      ['published', undefined],
    ])
  })

  test('a failed withdrawal is recorded, and not attributed to the next holder', async () => {
    const { dns } = replica()
    await dns.waitUntilApplied(await activate('acme'))
    scene.provider.faults.push({ result: down })
    await scene.attempt(dns, await release('acme'))
    await dns.waitUntilApplied(await activate('acme', '192.0.2.2'))
    expect((await convergenceEntries('acme')).map(({ event, to }) => [event, to])).toEqual([
      ['published', 'active'],
      ['failing', 'none'],
      ['published', 'active'],
    ])
  })

  test('a release before the publication: withdrawn without published', async () => {
    const { dns } = replica()
    const gate = Promise.withResolvers<void>()
    scene.provider.applyGate = gate.promise
    const first = dns.waitUntilApplied(await activate('first'))
    await until('a write is in flight', () => scene.provider.appliesInFlight === 1)
    await activate('acme')
    const withdrawn = dns.waitUntilApplied(await release('acme'))
    gate.resolve()
    await Promise.all([first, withdrawn])
    expect(await events('acme')).toEqual(['reserved', 'committed', 'released', 'withdrawn'])
  })
})
