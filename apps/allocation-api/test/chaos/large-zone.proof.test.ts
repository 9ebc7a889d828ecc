import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { json } from 'node:stream/consumers'
import { startCloudflareDouble } from '@pool/test-kit/dns/cloudflare-double.ts'
import { missingPowerdns, startPowerdns } from '@pool/test-kit/dns/powerdns.ts'
import { shouldSkip } from '@pool/test-kit/optional-deps.ts'
import { timed, until } from '@pool/test-kit/poll.ts'
import { readRssMib } from '@pool/test-kit/processes.ts'
import { proofScale, proofSize, reportProof } from '@pool/test-kit/proof-size.ts'
import { type Api, startApi } from '@pool/test-kit/services.ts'
import { describe, expect, test } from 'vitest'
import { knot, startServer } from '../providers/support/rfc2136.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'

const LABELS = ['@', '*', 'console', 'api', 'gitea', 'harbor']
/** Every day just large enough not to be returned as a whole. */
const RECORD_SETS = proofSize(1_000_000, 18_000)
const NAMES = Math.floor(RECORD_SETS / LABELS.length)
const ORPHANS = 3
const ZONE = 'pool.test'
const SMALL_ZONE = 'small.test'
const MAX_MEMORY_MIB = 200
/** The process ends if it needs more. How far its heap grows below that depends on when V8 collects garbage. */
const HEAP_MIB = 128
const TOKEN = 'an-operator-token-of-the-large-zone'
const SAMPLE_MS = 200

const toSubdomain = (i: number): string => `tenant-${i}`
const toAddress = (i: number): string => `192.0.2.${i % 250}`

/** Owner name and address of each record of the names, and of the orphans. */
function* listRecords(): Generator<readonly [name: string, address: string]> {
  for (let i = 0; i < NAMES; i += 1)
    for (const label of LABELS) yield [`${label === '@' ? '' : `${label}.`}${toSubdomain(i)}.${ZONE}`, toAddress(i)]
}

/** The rows of all names but the first `ORPHANS`, as applied. */
const insertNames = ({ sql }: TestDatabase) => sql`
  with names as (
    select n, 'tenant-' || n as subdomain, '192.0.2.' || n % 250 as address from generate_series(${ORPHANS}::int, ${NAMES - 1}::int) n
  ), allocated as (
    insert into pool_allocations (pool_domain, subdomain, state, reserved_at, committed_at, token_hash, created_by,
      sovereign_fqdn, load_balancer_ip)
    select ${ZONE}, subdomain, 'active', now(), now(), sha256(subdomain::bytea), '', subdomain || '.' || ${ZONE}, address::inet
    from names
  )
  insert into dns_names (zone, subdomain, version, applied_version, attempted_version, applied_at, desired, owned, changed_at,
    next_attempt_at)
  select ${ZONE}, subdomain, 1, 1, 1, now() - interval '1 hour', records,
    (select jsonb_agg(record - 'ttl' - 'values') from jsonb_array_elements(records) record), now(), now()
  from names, lateral (
    select jsonb_agg(jsonb_build_object(
      'name', case label when '@' then '' else label || '.' end || subdomain || '.' || ${ZONE},
      'type', 'A', 'ttl', 300, 'values', jsonb_build_array(address))) as records
    from unnest(string_to_array(${LABELS.join(' ')}, ' ')) label
  ) r`

/** Resident memory of the process over time, as one line of text. */
const plot = (samples: readonly number[], width = 60): string => {
  const [low, high] = [Math.min(...samples), Math.max(...samples)]
  const bars = '▁▂▃▄▅▆▇█'
  const length = Math.min(width, samples.length)
  return Array.from({ length }, (_, i) => {
    const part = samples.slice(
      Math.floor((i * samples.length) / length),
      Math.ceil(((i + 1) * samples.length) / length),
    )
    return bars[Math.min(7, Math.floor((8 * (Math.max(...part) - low)) / (high - low + 1)))]
  }).join('')
}

describe('a zone with many record sets', { timeout: 900_000 }, () => {
  const prove = async (kind: string, env: Record<string, string>): Promise<void> => {
    const database = await createTestDatabase()
    await insertNames(database)
    await database.sql`analyze`
    const api: Api = await startApi(database.url, {
      PDM_OPERATOR_TOKENS: TOKEN,
      DNSPROVIDER_MANAGED_DOMAINS: `${ZONE},${SMALL_ZONE}`,
      DNSPROVIDER_RECORD_NAMES: LABELS.join(','),
      PDM_DNS_COMMIT_WAIT: '60s',
      ...(proofScale() <= 1 ? { NODE_OPTIONS: `--max-old-space-size=${HEAP_MIB}` } : {}),
      ...env,
    })
    const samples: number[] = []
    const sampler = setInterval(() => samples.push(readRssMib(api.process.pid)), SAMPLE_MS)
    const operator = async (path: string) => {
      // Not `fetch`, which gives up when the headers take longer than five minutes.
      const sent = request(`${api.operatorUrl}/api/v1/pool/${ZONE}/${path}`, {
        method: 'POST',
        headers: { Authorization: `Bearer ${TOKEN}` },
      }).end()
      const [response] = (await once(sent, 'response')) as [IncomingMessage]
      return { status: response.statusCode, body: (await json(response)) as Record<string, unknown> }
    }
    const commit = async (zone: string, subdomain: string): Promise<number> => {
      const reserved = await api.call('POST', `/api/v1/pool/${zone}/reserve`, { subdomain, createdBy: 'proof' })
      const command = {
        subdomain,
        reservationToken: reserved.body.reservationToken,
        sovereignFQDN: `${subdomain}.${zone}`,
        loadBalancerIP: '203.0.113.1',
      }
      const { result, ms } = await timed(() => api.call('POST', `/api/v1/pool/${zone}/commit`, command))
      expect(result.body.dns).toEqual({ status: 'published' })
      return ms
    }
    try {
      await commit(SMALL_ZONE, 'first')
      const earlier = samples.length
      const idle = await until('the memory has settled', () => {
        const [before, last] = samples.slice(earlier).slice(-2)
        return before !== undefined && last !== undefined && Math.abs(last - before) < 1 && last
      })
      const firstCommit = await commit(ZONE, 'first')
      const comparing = timed(() => operator('converge?dryRun=true'))
      const others: number[] = []
      let isComparing = true
      void comparing.finally(() => {
        isComparing = false
      })
      for (let i = 0; isComparing; i += 1) others.push(await commit(SMALL_ZONE, `during-${i}`))
      const compared = await comparing
      expect([compared.result.status, compared.result.body]).toMatchObject([
        200,
        { changeCount: 0, conflictCount: 0, orphanCount: ORPHANS },
      ])
      const secondCommit = await commit(ZONE, 'second')
      const released = await timed(() =>
        api.call('DELETE', `/api/v1/pool/${ZONE}/release`, { subdomain: toSubdomain(ORPHANS) }),
      )
      expect([released.result.status, released.result.body]).toMatchObject([200, {}])
      const adopted = await timed(() => operator('orphans/adopt'))
      expect([adopted.result.status, adopted.result.body]).toMatchObject([200, { changedCount: ORPHANS }])
      const peak = Math.max(...samples)
      if (proofScale() <= 1) expect(peak - idle).toBeLessThan(MAX_MEMORY_MIB)
      // Each was published without a wait for the end of the comparison.
      expect(others.length).toBeGreaterThan(1)
      const seconds = (ms: number): string => `${(ms / 1_000).toFixed(1)} s`
      reportProof(
        `${kind}: ${NAMES * LABELS.length} record sets compared in ${seconds(compared.ms)} with ${others.length} commits in another zone during it, the slowest ${seconds(Math.max(...others))}; commits ${seconds(firstCommit)} and ${seconds(secondCommit)}, release ${seconds(released.ms)}, adoption ${seconds(adopted.ms)}; memory ${idle.toFixed(0)} MiB idle, ${peak.toFixed(0)} MiB at most`,
      )
      reportProof(`${kind}, resident memory: ${plot(samples)}`)
    } finally {
      clearInterval(sampler)
      await api.process.stop()
      await database.drop()
    }
  }

  test.skipIf(shouldSkip(missingPowerdns))('powerdns', async () => {
    await using server = await startPowerdns()
    for (const zone of [ZONE, SMALL_ZONE]) await server.createZone(zone)
    // Otherwise each write takes as long as a read of the whole zone, because the server rectifies it.
    await server.call('PUT', `/zones/${ZONE}.`, { api_rectify: false })
    server.fill(ZONE, listRecords())
    await prove('PowerDNS', {
      DNSPROVIDER_KIND: 'powerdns',
      DNSPROVIDER_POWERDNS_URL: server.options.url,
      DNSPROVIDER_POWERDNS_API_KEY: server.options.apiKey,
    })
  })

  test.skipIf(shouldSkip(knot.missingPrograms))('rfc2136 with Knot', async () => {
    const lines = Array.from(listRecords(), ([name, address]) => `${name}. 300 IN A ${address}\n`)
    await using server = await startServer(knot, [ZONE, SMALL_ZONE], [lines.join(''), ''])
    const { tsig } = server.options()
    await prove('Knot', {
      DNSPROVIDER_KIND: 'rfc2136',
      DNSPROVIDER_RFC2136_HOST: '127.0.0.1',
      DNSPROVIDER_RFC2136_PORT: String(server.port),
      DNSPROVIDER_RFC2136_TSIG_NAME: tsig.name,
      DNSPROVIDER_RFC2136_TSIG_SECRET: tsig.secret,
    })
  })

  // A double: the records come in pages, as from the real API.
  test('cloudflare', async () => {
    await using double = await startCloudflareDouble()
    for (const zone of [ZONE, SMALL_ZONE]) double.addZone(zone, 'pro')
    double.fill(ZONE, listRecords())
    await prove('Cloudflare double', {
      DNSPROVIDER_KIND: 'cloudflare',
      PDM_TEST_SETTINGS: JSON.stringify({ providerUrl: double.url }),
      DNSPROVIDER_CLOUDFLARE_API_TOKEN: double.token,
    })
  })
})
