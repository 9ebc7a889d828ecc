import type { Exit } from '@pool/dev/process'
import { startDedicatedPostgres } from '@pool/test-kit/dedicated-postgres.ts'
import { timed, until } from '@pool/test-kit/poll.ts'
import { type Api, startApi } from '@pool/test-kit/services.ts'
import { describe, expect, test } from 'vitest'
import { expectConsistentTables, untilApplied } from '../support/consistency.ts'
import { createTestDatabase } from '../support/database.ts'
import { holdLock, untilSessionsWait } from '../support/locks.ts'
import { commit, reserve, reserveToken } from '../support/operations.ts'

// The timeouts of a stop. The tests run concurrently.

const MAX_STOP_MS = 20_000
/** Stops the API, which must exit in time and without a SIGKILL. */
const expectTimelyStop = async (api: Api, what: string): Promise<Exit> => {
  const { result, ms } = await timed(() => api.process.stop('SIGTERM', 2 * MAX_STOP_MS))
  process.stdout.write(`SIGTERM with ${what}: ${JSON.stringify(result)} after ${Math.round(ms)} ms\n`)
  expect(result.signal).toBeNull()
  expect(ms).toBeLessThan(MAX_STOP_MS)
  return result
}

describe.concurrent('a graceful stop', () => {
  test('ends in time while a commit waits for its records, and the records are published later', async () => {
    const database = await createTestDatabase({ connections: 3 })
    const api = await startApi(database.url, { PDM_DNS_COMMIT_WAIT: '30s' })
    const token = await reserveToken(api, 'blocked')
    const held = await holdLock(database.sql, tx => tx`lock table local_dns_record_sets in share mode`)
    const response = commit(api, 'blocked', token).catch(() => null)
    await untilSessionsWait(database.sql, 1, '%insert into local_dns_record_sets%')
    await expectTimelyStop(api, 'DNS blocked')
    await held.release()
    expect([202, undefined]).toContain((await response)?.status)
    const next = await startApi(database.url)
    await untilApplied(database.sql)
    await expectConsistentTables(database.sql)
    await next.process.kill()
    await database.drop()
  })

  test('ends in time with requests in flight to a Postgres that hangs or is stopped', async () => {
    const postgres = await startDedicatedPostgres()
    try {
      const first = await startApi(postgres.url, { PDM_DATABASE_TIMEOUT: '1s' })
      await reserveToken(first, 'before')
      postgres.freeze()
      const hanging = Promise.allSettled([
        reserve(first, 'plain'),
        reserve(first, 'keyed', { 'Idempotency-Key': 'keyed' }),
        ...Array.from({ length: 30 }, (_, i) => reserve(first, `more-${i}`)),
      ])
      await until('the hang is detected', async () => (await first.call('GET', '/readyz')).status === 503)
      await expectTimelyStop(first, 'Postgres frozen')
      postgres.thaw()

      const second = await startApi(postgres.url)
      await reserveToken(second, 'again')
      await postgres.stop('fast')
      const failing = Promise.allSettled(Array.from({ length: 30 }, (_, i) => reserve(second, `down-${i}`)))
      await expectTimelyStop(second, 'Postgres stopped')
      for (const response of [...(await hanging), ...(await failing)]) {
        if (response.status === 'fulfilled') expect(response.value.status).toBe(503)
      }
    } finally {
      await postgres.remove()
    }
  })
})
