import { describe, expect, test } from 'vitest'
import type { Answer } from './support/api.ts'
import { activeNames, expectDnsToAgree, expectTablesToAgree } from './support/at-rest.ts'
import { createTestDatabase, lacksDsn, testDsn } from './support/database.ts'
import { startFleet } from './support/fleet.ts'
import { isSkippedFor } from './support/parts.ts'
import { lacksPgbouncer, pgbouncerVersion, startPgbouncer } from './support/pgbouncer.ts'
import { commit, countStatuses, pool, release, reserve } from './support/verbs.ts'

if (!testDsn) process.stderr.write(`${lacksDsn}\n`)

/** From 1.21 on it carries prepared statements in transaction mode. */
const carriesPrepared = pgbouncerVersion && (pgbouncerVersion.major > 1 || pgbouncerVersion.minor >= 21)

const isSkipped = isSkippedFor(pgbouncerVersion ? undefined : lacksPgbouncer) || !testDsn

/**
 * Asks as a client has to: an answer of 503 says that the outcome is unknown, and the same key asks for it again. Between
 * the driver without prepared statements and PgBouncer 1.18 a statement gets lost now and then (seen 2026-11-21, in 3 of
 * some 70 runs; every connection of the server is idle then): its caller is told 503 when its time is over.
 */
const asked = async (key: string, ask: (headers: Record<string, string>) => Promise<Answer>): Promise<Answer> => {
  const headers = { 'Idempotency-Key': key }
  const answer = await ask(headers)
  if (answer.status !== 503) return answer
  process.stderr.write(`behind PgBouncer: ${key} was answered 503, and is asked again\n`)
  return ask(headers)
}

describe.skipIf(isSkipped)('behind PgBouncer in transaction mode', () => {
  test.each([
    { how: 'without prepared statements', query: '?prepare=false' },
    ...(carriesPrepared ? [{ how: 'with prepared statements', query: '' }] : []),
  ])('two processes serve every verb, concurrent commits included, $how', async ({ query }) => {
    const database = await createTestDatabase()
    const pgbouncer = await startPgbouncer(database.url)
    const fleet = await startFleet(pgbouncer.url + query, 2, { PDM_DATABASE_POOL_SIZE: '10' }).catch(async error => {
      await pgbouncer.stop()
      await database.drop()
      throw error
    })
    try {
      const [api, other] = [fleet.next(), fleet.next()]
      const reserved = await Promise.all(
        Array.from({ length: 100 }, (_, i) => asked(`one-${i}`, key => reserve(fleet.next(), 'one', key))),
      )
      expect(countStatuses(reserved)).toEqual({ 201: 1, 409: 99 })

      const names = Array.from({ length: 50 }, (_, i) => `many-${i}`)
      const taken = await Promise.all(
        names.map(name => asked(`reserve-${name}`, key => reserve(fleet.next(), name, key))),
      )
      expect(countStatuses(taken)).toEqual({ 201: names.length })
      const commits = await Promise.all(
        names.map((name, i) =>
          asked(`commit-${name}`, key => commit(fleet.next(), name, taken[i]?.body.reservationToken, '192.0.2.1', key)),
        ),
      )
      expect(countStatuses(commits)).toEqual({ 200: names.length })

      const released = await Promise.all(
        Array.from({ length: 20 }, () => asked('release-many-0', key => release(fleet.next(), 'many-0', key))),
      )
      expect(countStatuses(released)).toEqual({ 200: 20 })
      expect((await release(other, 'many-1')).status).toBe(200)
      expect((await release(api, 'many-1')).status).toBe(404)

      const listed = await api.call('GET', `/api/v1/pool/${pool}/list`)
      expect(listed.body.allocations.map((one: { subdomain: string }) => one.subdomain)).toEqual(
        ['one', ...names.slice(2)].sort(),
      )
      expect((await other.call('GET', '/readyz')).status).toBe(200)
      await expectTablesToAgree(database.sql)
      await expectDnsToAgree(other.dnsPort, await activeNames(database.sql), [`many-0.${pool}`, `one.${pool}`])
    } finally {
      await fleet.stop()
      await pgbouncer.stop()
      await database.drop()
    }
  })
})
