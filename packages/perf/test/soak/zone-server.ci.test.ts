import { missingPowerdns } from '@pool/test-kit/dns/powerdns.ts'
import { describe, expect, it } from 'vitest'
import { LogSecretScanner } from '../../src/soak/environment/log-secrets.ts'
import { FIXED_RECORDS, startZone, ZONE } from '../../src/soak/environment/zone.ts'

describe.skipIf(missingPowerdns)(`direct access to the zone (${missingPowerdns ?? 'real PowerDNS'})`, () => {
  it('waits for the restart of a stopped server, then reads and edits', async () => {
    await using cleanup = new AsyncDisposableStack()
    // Only the local provider, the fallback without PowerDNS, needs the database.
    const { server, edit, records } = await startZone(undefined as never, new LogSecretScanner(() => {}), cleanup)
    await server?.stop()
    const put = { name: `a.${ZONE}`, type: 'A' as const, ttl: 60, values: ['192.0.2.1'] }
    const edited = edit({ remove: [], put: [put] })
    const read = records()
    await server?.start()
    await edited
    expect((await read).length).toBeGreaterThanOrEqual(FIXED_RECORDS.length)
    expect(await records()).toContainEqual(put)
  })
})
