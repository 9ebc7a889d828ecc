import { once } from 'node:events'
import { createServer } from 'node:net'
import { fileURLToPath } from 'node:url'
import { type Exit, startNode } from '@pool/dev-server/process'
import { startOwnPostgres } from '@pool/test-kit/dedicated-postgres.ts'
import { timed, until } from '@pool/test-kit/poll.ts'
import { describe, expect, test } from 'vitest'
import { type Api, startApi } from '../support/api.ts'
import { expectConsistentTables, untilApplied } from '../support/consistency.ts'
import { createTestDatabase, missingDsn, testDsn } from '../support/database.ts'
import { holdLock, untilSessionsWait } from '../support/locks.ts'
import { commit, reserve, reserveToken } from '../support/operations.ts'

// What a process waits for when it starts and when it stops, for as long as it says. All at the same time.

if (!testDsn) process.stderr.write(`${missingDsn}\n`)

const PROMISED_MS = 20_000

/** A start that gives up: how long after, how, and with which lines. */
const startInVain = async (port: number) => {
  const lines: string[] = []
  const { result, ms } = await timed(
    () =>
      startNode({
        entry: fileURLToPath(new URL('../../src/main.ts', import.meta.url)),
        env: {
          PORT: '0',
          PDM_DATABASE_URL: `postgres://user:mark-password@127.0.0.1:${port}/db`,
          PDM_LOG_LEVEL: 'fatal',
        },
        onLine: line => lines.push(line),
      }).exited,
  )
  return { code: result.code, lines, seconds: ms / 1_000 }
}

/** Neither killed nor late. */
const stopInTime = async (api: Api, what: string): Promise<Exit> => {
  const { result, ms } = await timed(() => api.process.stop('SIGTERM', 2 * PROMISED_MS))
  process.stdout.write(`SIGTERM with ${what}: ${JSON.stringify(result)} after ${Math.round(ms)} ms\n`)
  expect(result.signal).toBeNull()
  expect(ms).toBeLessThan(PROMISED_MS)
  return result
}

describe.concurrent('exit code 1 within about 30 s when the database cannot be reached, with one line that says so', () => {
  test('nobody listens there', async () => {
    const { code, lines, seconds } = await startInVain(1)
    expect(lines).toEqual([expect.stringContaining('PDM_DATABASE_URL')])
    expect(lines[0]).not.toContain('mark-password')
    expect(code).toBe(1)
    expect(seconds).toBeGreaterThan(28)
    expect(seconds).toBeLessThan(36)
  })

  test('somebody listens there and says nothing', async () => {
    const silent = createServer().listen(0)
    await once(silent, 'listening')
    const address = silent.address()
    const { code, lines, seconds } = await startInVain(typeof address === 'object' && address ? address.port : 0)
    silent.close()
    expect(lines).toEqual([expect.stringContaining('PDM_DATABASE_URL')])
    expect(lines[0]).not.toContain('mark-password')
    expect(code).toBe(1)
    expect(seconds).toBeLessThan(36)
  })
})

describe.skipIf(!testDsn).concurrent('an orderly stop', () => {
  test('with a commit whose records cannot go out it ends in time, with what it did kept and published later', async () => {
    const database = await createTestDatabase({ connections: 3 })
    const api = await startApi(database.url, { PDM_DNS_COMMIT_WAIT: '30s' })
    const token = await reserveToken(api, 'blocked')
    const held = await holdLock(database.sql, tx => tx`lock table local_dns_record_sets in share mode`)
    const answer = commit(api, 'blocked', token).catch(() => null)
    await untilSessionsWait(database.sql, 1, '%insert into local_dns_record_sets%')
    await stopInTime(api, 'DNS blocked')
    await held.release()
    expect([202, undefined]).toContain((await answer)?.status)
    const next = await startApi(database.url)
    await untilApplied(database.sql)
    await expectConsistentTables(database.sql)
    await next.process.kill()
    await database.drop()
  })

  test('with requests under way and a Postgres that hangs, then one that is stopped, it ends in time', async () => {
    const postgres = await startOwnPostgres()
    try {
      const first = await startApi(postgres.url)
      await reserveToken(first, 'before')
      postgres.freeze()
      const hanging = Promise.allSettled([
        reserve(first, 'plain'),
        reserve(first, 'keyed', { 'Idempotency-Key': 'keyed' }),
        ...Array.from({ length: 30 }, (_, i) => reserve(first, `more-${i}`)),
      ])
      await until('it is known to hang', async () => (await first.call('GET', '/readyz')).status === 503)
      await stopInTime(first, 'Postgres frozen')
      postgres.thaw()

      const second = await startApi(postgres.url)
      await reserveToken(second, 'again')
      await postgres.stop('fast')
      const refused = Promise.allSettled(Array.from({ length: 30 }, (_, i) => reserve(second, `down-${i}`)))
      await stopInTime(second, 'Postgres stopped')
      for (const answer of [...(await hanging), ...(await refused)]) {
        if (answer.status === 'fulfilled') expect(answer.value.status).toBe(503)
      }
    } finally {
      await postgres.remove()
    }
  })
})
