import { missingPowerdns, startPowerdns } from '@pool/test-kit/dns/powerdns.ts'
import { shouldSkip } from '@pool/test-kit/optional-deps.ts'
import { startApi } from '@pool/test-kit/services.ts'
import { describe, expect, test } from 'vitest'
import { createTestDatabase } from '../support/database.ts'
import { commit, pool, release, reserveToken } from '../support/operations.ts'

const timeout = 300_000

/** The service, with a PowerDNS on SQLite as the installation page sets it up. */
const startScene = async (zones: readonly string[] = [pool]) => {
  await using cleanup = new AsyncDisposableStack()
  const server = cleanup.use(await startPowerdns())
  for (const zone of zones) await server.createZone(zone)
  const database = await createTestDatabase({ connections: 2 })
  cleanup.defer(() => database.drop())
  const { url, apiKey } = server.options
  const api = await startApi(database.url, {
    ...{ DNSPROVIDER_KIND: 'powerdns', DNSPROVIDER_POWERDNS_URL: url, DNSPROVIDER_POWERDNS_API_KEY: apiKey },
    DNSPROVIDER_MANAGED_DOMAINS: zones.filter(zone => zone !== 'other.test').join(','),
    PDM_DNS_COMMIT_WAIT: '30s',
  })
  cleanup.defer(async () => void (await api.process.kill()))
  const owned = cleanup.move()
  return {
    server,
    database,
    api,
    /** The SOA serial of the zone: each write that changes the zone increments it. */
    serial: async () => Number(((await server.call('GET', `/zones/${pool}.`)) as { serial: number }).serial),
    grant: async (name: string, address: string) => commit(api, name, await reserveToken(api, name), address),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  }
}

describe.skipIf(shouldSkip(missingPowerdns))('the service with PowerDNS on SQLite', { timeout }, () => {
  test.each([
    ['in mixed case, whose deletion is 204 and has no effect', 'Low.Acme.pool.test', 'low.acme.pool.test A'],
    ['with a character that its API rejects', 'e e.acme.pool.test', 'e\\032e.acme.pool.test A'],
  ])('a row of an earlier holder %s: published, the row named, and no further writes', async (_, row, named) => {
    await using scene = await startScene()
    const { server, api, serial, grant } = scene
    expect((await grant('acme', '192.0.2.1')).status).toBe(200)
    server.fill(pool, [[row, '192.0.2.9']])
    await release(api, 'acme')
    const before = await serial()
    const response = await grant('acme', '192.0.2.2')
    expect([response.status, response.body.dns]).toEqual([
      200,
      { status: 'published', detail: expect.stringContaining(named) },
    ])
    const writes = (await serial()) - before
    expect(writes).toBeLessThanOrEqual(5)
    // One more write for one more name: nothing is repeated beside it.
    expect((await grant('other', '192.0.2.3')).status).toBe(200)
    expect((await serial()) - before).toBe(writes + 1)
    const { body } = await api.call('GET', `/api/v1/pool/${pool}/allocations/acme`)
    expect(body.dns).toEqual(response.body.dns)
  })

  test.each([
    ['five pools', 5, 0],
    ['one pool, and another client of its API that writes without a pause', 1, 2],
  ])('100 of 100 commits are 200 with %s', async (_, pools, clients) => {
    const zones = Array.from({ length: pools }, (_, i) => `pool${i}.test`)
    await using scene = await startScene([...zones, 'other.test'])
    const { api, server } = scene
    const ended = new AbortController()
    const write = async (client: number) => {
      const set = { name: `c${client}.other.test`, type: 'A', ttl: 60 }
      for (let i = 0; !ended.signal.aborted; i += 1)
        await server.put('other.test', { ...set, values: [`198.51.100.${i % 250}`] })
    }
    const writing = Array.from({ length: clients }, (_, i) => write(i))
    const statuses: number[] = []
    const commitAll = async (zone: string) => {
      const path = `/api/v1/pool/${zone}`
      for (let i = 0; i < 100 / pools; i += 1) {
        const subdomain = `n${i}`
        const { reservationToken } = (await api.call('POST', `${path}/reserve`, { subdomain })).body
        const fields = {
          subdomain,
          reservationToken,
          sovereignFQDN: `${subdomain}.${zone}`,
          loadBalancerIP: '192.0.2.1',
        }
        statuses.push((await api.call('POST', `${path}/commit`, fields)).status)
      }
    }
    await Promise.all(zones.map(commitAll))
    ended.abort()
    await Promise.all(writing)
    expect(statuses.filter(status => status !== 200)).toEqual([])
  })
})
