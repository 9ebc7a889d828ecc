import { createDatabaseClient } from '@pool/runtime/database/client'
import { missingPowerdns, type PowerdnsServer, startPowerdns } from '@pool/test-kit/dns/powerdns.ts'
import { withoutZoneMarker } from '@pool/test-kit/dns/zone-marker.ts'
import { missingMachinePostgres, startMachinePostgres } from '@pool/test-kit/machine-postgres.ts'
import { shouldSkip } from '@pool/test-kit/optional-deps.ts'
import { proofSize, reportProof } from '@pool/test-kit/proof-size.ts'
import { type Api, startApi } from '@pool/test-kit/services.ts'
import { describe, expect, test } from 'vitest'
import { untilApplied } from '../support/consistency.ts'
import { commit, pool, release, reserveToken } from '../support/operations.ts'

/** Names of each kind. */
const COUNT = proofSize(40, 2)
const DATABASE = 'pool'
const HOUR_MS = 3_600_000
const token = 'operator-token-of-tests'
const bearer = { Authorization: `Bearer ${token}` }

const startService = (url: string, { options }: PowerdnsServer, env: Record<string, string> = {}) =>
  startApi(url, {
    ...{ PDM_OPERATOR_TOKENS: token, PDM_DRIFT_INTERVAL: '1s', DNSPROVIDER_RECORD_NAMES: '@,*' },
    ...{ DNSPROVIDER_KIND: 'powerdns', DNSPROVIDER_POWERDNS_URL: options.url },
    ...{ DNSPROVIDER_POWERDNS_API_KEY: options.apiKey, ...env },
  })

const resume = async (api: Api, trust: string, query = '') => {
  const response = await fetch(`${api.operatorUrl}/api/v1/pool/${pool}/resume${query}`, {
    ...{ method: 'POST', headers: bearer, body: JSON.stringify({ trust }) },
  })
  const body = (await response.json()) as { readonly differences: readonly { readonly subdomain: string }[] }
  return { status: response.status, body }
}

const grant = async (api: Api, name: string, address: string) => {
  const { status, text } = await commit(api, name, await reserveToken(api, name), address)
  if (status !== 200) throw new Error(text)
}

const names = (kind: string) => Array.from({ length: COUNT }, (_, i) => `${kind}${i}`)
const toAddresses = (kind: string, network: number): Record<string, string> =>
  Object.fromEntries(names(kind).map((name, i) => [name, `10.${network}.0.${i + 1}`]))

/** By kind: what happens to the names after the backup. */
const before = { kept: toAddresses('kept', 1), gone: toAddresses('gone', 2), reused: toAddresses('reused', 3) }
/** `reserved`: the backup has their reservations. */
const after = {
  ...{ reused: toAddresses('reused', 4), newer: toAddresses('newer', 5), reserved: toAddresses('reserved', 7) },
}
const expected = {
  database: { ...before.kept, ...before.gone, ...before.reused },
  zone: { ...before.kept, ...after.reused, ...after.newer, ...after.reserved },
}

describe.skipIf(shouldSkip(missingMachinePostgres) || shouldSkip(missingPowerdns))('restore drill', () => {
  test.each(['database', 'zone'] as const)(
    'nothing changes until an operator decides, the report names each difference, and trust in the %s is carried out',
    { timeout: 300_000 },
    async trust => {
      await using postgres = await startMachinePostgres()
      await using dns = await startPowerdns()
      await dns.createZone(pool)
      const url = await postgres.createDatabase(DATABASE)
      const readZone = async () => withoutZoneMarker(await dns.records(pool))
      const readAddresses = async () => {
        const sets = (await readZone()).filter(({ name }) => !name.startsWith('*'))
        return Object.fromEntries(sets.map(({ name, values }) => [name.slice(0, -pool.length - 1), values[0]]))
      }

      const first = await startService(url, dns)
      for (const [name, address] of Object.entries(expected.database)) await grant(first, name, address)
      const tokens = new Map<string, string>()
      for (const name of names('reserved')) tokens.set(name, await reserveToken(first, name))
      const file = await postgres.dump(DATABASE)
      for (const name of [...names('gone'), ...names('reused')]) expect((await release(first, name)).status).toBe(200)
      for (const [name, address] of Object.entries({ ...after.reused, ...after.newer }))
        await grant(first, name, address)
      for (const [name, address] of Object.entries(after.reserved))
        expect((await commit(first, name, tokens.get(name) ?? '', address)).status).toBe(200)
      expect(await readAddresses()).toEqual(expected.zone)
      await first.process.stop()

      await postgres.restore(DATABASE, file)
      const sql = createDatabaseClient(url, { maxConnections: 1, applicationName: 'tests' })
      const shift = sql`${HOUR_MS}::float8 * interval '1 millisecond'`
      await sql`
        update pool_allocations set reserved_at = reserved_at - ${shift}, committed_at = committed_at - ${shift}`
      await sql`update dns_names set changed_at = changed_at - ${shift}, applied_at = applied_at - ${shift}`
      await sql`update dns_zones set next_drift_check_at = next_drift_check_at - ${shift}`
      const zone = await readZone()

      const quiet = await startService(url, dns, { PDM_DNS_WRITES: 'off' })
      const difference =
        (action: string) =>
        ([subdomain, sides]: [string, object]) => ({ subdomain, ...sides, action })
      const sides = {
        gone: names('gone').map(name => [name, { databaseAddress: before.gone[name] }] as [string, object]),
        reused: names('reused').map(
          name => [name, { databaseAddress: before.reused[name], zoneAddress: after.reused[name] }] as [string, object],
        ),
        newer: Object.entries({ ...after.newer, ...after.reserved }).map(
          ([name, zoneAddress]) => [name, { zoneAddress }] as [string, object],
        ),
      }
      const [gone, reused, newer] =
        trust === 'database' ? ['publish', 'publish', 'withdraw'] : ['release', 'readdress', 'adopt']
      const differences = [
        ...[...sides.gone.map(difference(gone ?? '')), ...sides.reused.map(difference(reused ?? ''))],
        ...sides.newer.map(difference(newer ?? '')),
      ]
      const plan = await resume(quiet, trust, '?dryRun=true')
      expect(plan).toMatchObject({
        status: 200,
        body: { cause: 'database-older', differenceCount: differences.length },
      })
      const bySubdomain = (a: { subdomain: string }, b: { subdomain: string }) => (a.subdomain < b.subdomain ? -1 : 1)
      expect(plan.body.differences.toSorted(bySubdomain)).toEqual(differences.sort(bySubdomain))
      expect(await resume(quiet, trust)).toMatchObject({ status: 409, body: { error: 'dns-writes-off' } })
      await quiet.process.stop()

      // Names are due, drift checks run, and a client commits: the zone stays as it is.
      const apis = [await startService(url, dns), await startService(url, dns)] as const
      const late = await commit(apis[0], 'late', await reserveToken(apis[0], 'late'), '10.6.0.1')
      expect([late.status, late.body.dns]).toEqual([202, expect.objectContaining({ status: 'failing' })])
      await expect
        .poll(async () => (await sql`select from dns_names where failure = 'database-older'`).length)
        .toBe(2 * COUNT + 1)
      expect(await readZone()).toEqual(zone)

      const started = performance.now()
      const resumed = await resume(apis[1], trust)
      expect([200, 202]).toContain(resumed.status)
      await untilApplied(sql)
      const seconds = (performance.now() - started) / 1_000
      const wanted = { ...expected[trust], late: '10.6.0.1' }
      expect(await readAddresses()).toEqual(wanted)
      expect(await readZone()).toHaveLength(2 * Object.keys(wanted).length)
      const active = await sql<{ subdomain: string; address: string }[]>`
        select subdomain, host(load_balancer_ip) as address from pool_allocations where state = 'active'`
      expect(Object.fromEntries(active.map(({ subdomain, address }) => [subdomain, address]))).toEqual(wanted)
      for (const { process } of apis) await process.stop()
      await sql.end({ timeout: 1 })
      reportProof(
        `restore drill (Postgres ${postgres.version}, PowerDNS), trust in the ${trust}: ${differences.length} differences ` +
          `named, 0 record sets changed before the decision, resumed in ${seconds.toFixed(1)} s`,
      )
    },
  )
})
