import { test } from 'vitest'
import { useDnsFixture } from '../support/dns-fixture.ts'
import { startCloudflareHost, startDynadotHost, startLocalHost } from '../support/random/hosts.ts'
import { expectHiddenPool, HIDING_RECORDS, HOST_ZONE } from './support/hidden-pool.ts'

const IDN_POOL = `xn--bcher-kva.${HOST_ZONE}`
const fixture = useDnsFixture()

test.each([
  // Each pool is a zone.
  ['local', startLocalHost, { pool: 'pool.test', zone: 'pool.test', records: [['DNAME', 'pool.test']] }],
  // It has no DNAME.
  ['cloudflare', startCloudflareHost, { records: HIDING_RECORDS.filter(([type]) => type === 'NS') }],
  ['cloudflare, an internationalized pool', startCloudflareHost, { pool: IDN_POOL, records: [['NS', IDN_POOL]] }],
  ['dynadot', startDynadotHost, {}],
] as const)(
  'a record at or above the pool hides all of its names, until it is deleted: %s',
  async (_, start, options) => {
    await using host = await start(fixture.sql)
    await expectHiddenPool(fixture, host, options)
  },
)
