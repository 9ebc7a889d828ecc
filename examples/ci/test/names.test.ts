import { Resolver } from 'node:dns/promises'
import { AllocationClient, ProblemError } from '@pool/client/allocation'
import { startAllocationApi, type TestAllocationApi } from '@pool/testing'
import { afterAll, beforeAll, expect, test } from 'vitest'

let api: TestAllocationApi
beforeAll(async () => {
  api = await startAllocationApi({ pools: ['pool.test'] })
})
afterAll(() => api?.stop())

test('a name is in DNS after its publication, although a response is lost', async () => {
  const client = new AllocationClient({ baseUrl: api.url })
  const lost = await api.dropNextResponse({ method: 'POST' })
  const name = { domain: 'pool.test', subdomain: 'acme' }
  await client.reserveAndCommit({ ...name, loadBalancerIP: '203.0.113.10' })
  await lost.occurred()
  await client.waitUntilPublished(name)
  const resolver = new Resolver()
  resolver.setServers([api.dnsServer])
  expect(await resolver.resolve4('acme.pool.test')).toEqual(['203.0.113.10'])
})

test('an expired reservation is free', async () => {
  const client = new AllocationClient({ baseUrl: api.url })
  const name = { domain: 'pool.test', subdomain: 'late' }
  const { reservationToken, expiresAt } = await client.reserveName(name)
  await api.clock.advance(Date.parse(expiresAt) - (await api.clock.now()).getTime() + 1_000)
  const commit = { ...name, reservationToken, sovereignFQDN: 'late.pool.test', loadBalancerIP: '203.0.113.11' }
  await expect(client.commitName(commit)).rejects.toThrow(ProblemError)
  expect((await client.checkName({ domain: 'pool.test', sub: 'late' })).available).toBe(true)
})
