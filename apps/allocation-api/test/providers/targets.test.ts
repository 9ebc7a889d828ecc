import { createDatabaseClient } from '@pool/runtime/database/client'
import { expect, test } from 'vitest'
import { createRecords } from '../../src/dns/domain/target.ts'
import { createLocalProvider, createZoneTable } from '../../src/dns/providers/local/provider.ts'
import { startDnsServer } from '../../src/dns/providers/local/server.ts'
import { createTestDatabase } from '../support/database.ts'
import { startCloudflareSubject } from './support/cloudflare.ts'
import { signal, startDynadotSubject } from './support/dynadot.ts'
import { describeTargets, FORMS } from './support/targets.ts'

describeTargets('cloudflare', async () => ({ ...(await startCloudflareSubject()), dnsPort: null }))

describeTargets('local', async () => {
  const database = await createTestDatabase()
  const sql = createDatabaseClient(database.url, { maxConnections: 4, applicationName: 'provider' })
  const table = createZoneTable(sql)
  const zone = 'pool.test'
  const server = await startDnsServer({ listZones: () => [zone], lookup: table.lookup, onError: () => {} })
  return {
    provider: createLocalProvider({ table, server, onError: () => {} }),
    zone,
    dnsPort: server.port,
    async remove(name, type) {
      await table.apply(zone, [{ kind: 'delete', name, type }], (await table.read(zone, [])).serial)
    },
    async [Symbol.asyncDispose]() {
      await sql.end({ timeout: 1 })
      await database.drop()
    },
  }
})

test('a change of form is one batch at Cloudflare, and one write at Dynadot, which has no delegations', async () => {
  const template = { names: ['@', '*', 'console'], ttl: 300 }
  await using cloudflare = await startCloudflareSubject()
  const acme = `acme.${cloudflare.zone}`
  const [ipv4, hostname] = [createRecords(acme, FORMS.ipv4, template), createRecords(acme, FORMS.hostname, template)]
  const toChanges = (from: typeof ipv4, to: typeof ipv4) => [
    ...from.map(({ name, type }) => ({ kind: 'delete', name, type }) as const),
    ...to.map(set => ({ kind: 'upsert', set }) as const),
  ]
  await cloudflare.provider.apply(cloudflare.zone, toChanges([], ipv4), signal())
  const batches = cloudflare.double.count('batch')
  await cloudflare.provider.apply(cloudflare.zone, toChanges(ipv4, hostname), signal())
  expect(cloudflare.double.count('batch') - batches).toBe(1)

  await using dynadot = await startDynadotSubject()
  const { provider, zone, double } = dynadot
  const at = (form: keyof typeof FORMS) => createRecords(`acme.${zone}`, FORMS[form], template)
  const expected = { kind: 'applied', rejected: [] }
  expect(await provider.apply(zone, toChanges([], at('addresses')), signal())).toEqual(expected)
  const writes = double.calls.set_dns2
  expect(await provider.apply(zone, toChanges(at('addresses'), at('hostname')), signal())).toEqual(expected)
  expect(double.calls.set_dns2 - writes).toBe(1)
  expect(provider.hasNoDelegations).toBe(true)
  expect(await provider.apply(zone, toChanges(at('hostname'), at('delegation')), signal())).toMatchObject({
    rejected: [{ name: `acme.${zone}`, reason: "Dynadot's API does not support a DS record at this name" }],
  })
})
