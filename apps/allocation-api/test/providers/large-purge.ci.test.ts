import { missingPowerdns, startPowerdns, type ZoneEdit } from '@pool/test-kit/dns/powerdns.ts'
import { withoutZoneMarker } from '@pool/test-kit/dns/zone-marker.ts'
import { shouldSkip } from '@pool/test-kit/optional-deps.ts'
import { timed } from '@pool/test-kit/poll.ts'
import { reportProof } from '@pool/test-kit/proof-size.ts'
import { describe, expect, test } from 'vitest'
import type { RecordSet } from '../../src/dns/domain/rrset.ts'
import type { DnsProvider } from '../../src/dns/provider.ts'
import { createPowerdnsProvider } from '../../src/dns/providers/powerdns/index.ts'
import { createRfc2136Provider } from '../../src/dns/providers/rfc2136/index.ts'
import { poolDomain, useDnsFixture } from '../support/dns-fixture.ts'
import { bind, knot, startServer } from './support/rfc2136.ts'

/** More than one sync deletes. */
const RECORD_SETS = 1_500
const EDIT_SIZE = 500
const WAIT_MS = 120_000

interface Subject {
  readonly provider: DnsProvider
  readonly edit: (zone: string, edit: ZoneEdit) => Promise<void>
  readonly records: (zone: string) => Promise<readonly RecordSet[]>
}

describe('many records of other writers below a released name', { timeout: 2 * WAIT_MS }, () => {
  const fixture = useDnsFixture()
  const { replica, activate, release } = fixture

  const purge = async (kind: string, { provider, edit, ...subject }: Subject): Promise<void> => {
    const records = async (zone: string) => withoutZoneMarker(await subject.records(zone))
    const { dns } = replica({ provider, waitMs: WAIT_MS, callTimeoutMs: 60_000 })
    await dns.waitUntilApplied(await activate('acme'))
    const many = Array.from(
      { length: RECORD_SETS },
      (_, i): RecordSet => ({ name: `n${i}.acme.pool.test`, type: 'TXT', ttl: 60, values: [`"${i}"`] }),
    )
    for (let i = 0; i < many.length; i += EDIT_SIZE)
      await edit(poolDomain, { remove: [], put: many.slice(i, i + EDIT_SIZE) })
    expect(await records(poolDomain)).toHaveLength(RECORD_SETS + 2)
    const released = await release('acme')
    const { ms } = await timed(async () => {
      expect(await dns.waitUntilApplied(released)).toEqual({ status: 'published' })
    })
    expect(await records(poolDomain)).toEqual([])
    const [listed] = await fixture.sql<{ count: number }[]>`
      select count(distinct deleted) from allocation_history, jsonb_array_elements(deleted_records) deleted
      where event = 'withdrawn'`
    expect(listed?.count).toBe(RECORD_SETS)
    reportProof(`${kind}: ${RECORD_SETS} record sets below a released name deleted in ${(ms / 1_000).toFixed(1)} s`)
  }

  test.skipIf(shouldSkip(missingPowerdns))('powerdns', async () => {
    await using server = await startPowerdns()
    await server.createZone(poolDomain)
    const { edit, records } = server
    await purge('PowerDNS', { provider: createPowerdnsProvider(server.options), edit, records })
  })

  for (const kind of [knot, bind])
    test.skipIf(shouldSkip(kind.missingPrograms))(`rfc2136 with ${kind.name}`, async () => {
      await using server = await startServer(kind, [poolDomain])
      const { edit, records } = server
      await purge(kind.name, { provider: createRfc2136Provider(server.options()), edit, records })
    })
})
