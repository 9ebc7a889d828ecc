import { shouldSkip } from '@pool/test-kit/optional-deps.ts'
import { missingPgbouncer, startPgbouncer } from '@pool/test-kit/pgbouncer.ts'
import { timed } from '@pool/test-kit/poll.ts'
import { isProof, reportProof } from '@pool/test-kit/proof-size.ts'
import { startApi, startReplicas } from '@pool/test-kit/services.ts'
import { describe, expect, test } from 'vitest'
import { expectConsistentTables } from '../support/consistency.ts'
import { createTestDatabase } from '../support/database.ts'
import { countStatuses } from '../support/operations.ts'

const SIZES = isProof ? [2, 5, 20, 100] : [2]
const POOLS = isProof ? [1, 16, 60] : [16]
const PROCESSES = isProof ? [1, 2, 3] : [2]
/** Of each process in each pool, all at once. In a proof, not more than two cores execute in time. */
const COMMITS = isProof ? 1 : 3
/** On idle cores. */
const MAX_COMMIT_MS = 2_000

const cases = SIZES.flatMap(size => POOLS.flatMap(pools => PROCESSES.map(processes => ({ size, pools, processes }))))

describe.skipIf(shouldSkip(missingPgbouncer))('through PgBouncer in transaction mode', () => {
  test.each(cases)(
    '$size server connections, $pools pools, $processes processes: every commit is published',
    async ({ size, pools, processes }) => {
      await using cleanup = new AsyncDisposableStack()
      const database = await createTestDatabase()
      cleanup.defer(() => database.drop())
      const pgbouncer = await startPgbouncer(database.url, size)
      cleanup.defer(() => pgbouncer.stop())
      const domains = Array.from({ length: pools }, (_, i) => `p${i}.test`)
      const env = { DNSPROVIDER_MANAGED_DOMAINS: domains.join(), PDM_DNS_COMMIT_WAIT: '1m' }
      const fleet = await startReplicas(processes, () => startApi(`${pgbouncer.url}?prepare=false`, env))
      cleanup.defer(() => fleet.kill())

      const requests = []
      for (const [process, api] of fleet.replicas.entries())
        for (const domain of domains)
          for (let i = 0; i < COMMITS; i += 1) {
            const subdomain = `n${process}-${i}`
            const { status, body } = await api.call('POST', `/api/v1/pool/${domain}/reserve`, { subdomain })
            expect(status).toBe(201)
            const { reservationToken } = body
            const names = { subdomain, sovereignFQDN: `${subdomain}.${domain}`, loadBalancerIP: '192.0.2.1' }
            requests.push(() => api.call('POST', `/api/v1/pool/${domain}/commit`, { ...names, reservationToken }))
          }
      const commits = await Promise.all(requests.map(send => timed(send)))
      expect(countStatuses(commits.map(({ result }) => result))).toEqual({ 200: requests.length })
      const slowest = Math.round(Math.max(...commits.map(({ ms }) => ms)))
      reportProof(
        `${size} server connections, ${pools} pools, ${processes} processes: ${requests.length} commits are 200, the slowest after ${slowest} ms`,
      )
      if (isProof) expect(slowest).toBeLessThan(MAX_COMMIT_MS)
      for (const api of fleet.replicas) {
        expect((await api.call('GET', '/readyz')).status).toBe(200)
        expect(api.lines.filter(line => line.includes('circuit'))).toEqual([])
      }
      await expectConsistentTables(database.sql)
    },
  )
})
