import { timed, until } from '@pool/test-kit/poll.ts'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createAllocationRepository } from '../../src/allocation/repository.ts'
import type { Api } from '../support/api.ts'
import { startApi } from '../support/api.ts'
import {
  activeNames,
  expectConsistentTables,
  expectDnsToMatch,
  recordNames,
  untilApplied,
} from '../support/consistency.ts'
import { createTestDatabase, missingDsn, type TestDatabase, testDsn } from '../support/database.ts'
import { type HeldLock, holdLock, untilSessionsWait } from '../support/locks.ts'
import { commit, pool, release, reserveToken } from '../support/operations.ts'
import { smallPoolEnv } from '../support/replicas.ts'

if (!testDsn) process.stderr.write(`${missingDsn}\n`)

/** Two lanes side by side, each with a database of its own; each kills three times at every place. */
const LANES = 2
const KILLS_PER_LANE = 12
const COMMITS_PER_KILL = 3

/** Fires the round's requests and waits until their rows are as asked for, with the records still due. */
type Fire = () => Promise<void>

/** The zone's own row: a write waits for it when it is all under way, as it does for another one's write. */
const holdWrites = (database: TestDatabase): Promise<HeldLock> =>
  holdLock(database.sql, async tx => {
    const rows = await tx`select from local_dns_zones for update`
    if (rows.length === 0) throw new Error('the zone has no row to hold yet')
  })

const places = {
  /** The provider cannot even be read: nothing is intended yet. */
  'before the read': async (database: TestDatabase, fire: Fire): Promise<HeldLock> => {
    const held = await holdLock(database.sql, tx => tx`lock table local_dns_record_sets in access exclusive mode`)
    await fire()
    await untilSessionsWait(database.sql, 1, '%local_dns_record_sets%')
    return held
  },
  /** The whole write is with the database, and will be carried out, whoever is still there to hear of it. */
  'past recall': async (database: TestDatabase, fire: Fire): Promise<HeldLock> => {
    const held = await holdWrites(database)
    await fire()
    await untilSessionsWait(database.sql, 1, '%insert into local_dns_record_sets%')
    return held
  },
  /** Intended, and the write begun: its tables cannot be had. */
  'in the write': async (database: TestDatabase, fire: Fire): Promise<HeldLock> => {
    const held = await holdLock(database.sql, tx => tx`lock table local_dns_record_sets in share mode`)
    await fire()
    await untilSessionsWait(database.sql, 1, '%insert into local_dns_record_sets%')
    return held
  },
  /** The records are at the provider, and nobody has been told. */
  'after the write': async (database: TestDatabase, fire: Fire): Promise<HeldLock> => {
    const held = await holdLock(database.sql, tx => tx`lock table local_dns_record_sets in share mode`)
    await fire()
    await untilSessionsWait(database.sql, 1, '%insert into local_dns_record_sets%')
    const progress = await holdLock(database.sql, tx => tx`lock table dns_names in exclusive mode`)
    await held.release()
    await untilSessionsWait(database.sql, 1, '%dns_names%')
    return progress
  },
}
const placeNames = Object.keys(places) as (keyof typeof places)[]

describe.skipIf(!testDsn)('kill -9', () => {
  const databases: TestDatabase[] = []
  const running = new Set<Api>()

  const start = async (database: TestDatabase, env: Record<string, string> = {}): Promise<Api> => {
    const api = await startApi(database.url, { ...smallPoolEnv, ...env })
    running.add(api)
    return api
  }
  const kill = async (api: Api): Promise<void> => {
    running.delete(api)
    await api.process.kill()
  }
  const busyWith = async (database: TestDatabase, pattern: string) => {
    const [row] = await database.sql<{ count: number }[]>`
      select count(*) from pg_stat_activity
      where datname = current_database() and state <> 'idle' and query like ${pattern} and pid <> pg_backend_pid()`
    return row?.count
  }
  /** By a replica of which nothing else is seen here. */
  const releaseInDatabase = (database: TestDatabase, subdomain: string) =>
    createAllocationRepository(database.sql, { timeoutMs: 5_000 }).release(
      { poolDomain: pool, subdomain },
      { actor: 'in-cluster', address: null, requestId: 'kill' },
    )
  const stateOf = async (database: TestDatabase, subdomain: string) => {
    const [row] = await database.sql<{ state: string; version: number | null; applied: number | null }[]>`
      select state, version, applied_version as applied from pool_allocations
      left join dns_names using (subdomain) where subdomain = ${subdomain}`
    return row
  }

  beforeAll(async () => {
    for (let lane = 0; lane < LANES + 5; lane += 1) databases.push(await createTestDatabase())
  })
  afterAll(async () => {
    for (const api of running) await api.process.kill()
    for (const database of databases) await database.drop()
  })
  const databaseOf = (index: number): TestDatabase => {
    const database = databases[index]
    if (!database) throw new Error('no such database')
    return database
  }

  /**
   * Every fourth round at each place; each fifth kill also catches the release of an earlier name, and names released
   * are taken again with another address. What stands in the way of the write is a lock that the test holds, so the
   * place of each kill is seen and not hoped for.
   */
  const killAgainAndAgain = async (lane: number): Promise<void> => {
    const database = databaseOf(lane)
    let api = await start(database)
    expect((await commit(api, 'first', await reserveToken(api, 'first'), '192.0.2.250')).status).toBe(200)
    const addressOf = new Map([['first', '192.0.2.250']])
    const absent = new Set<string>()
    for (let round = 0; round < KILLS_PER_LANE; round += 1) {
      const place = placeNames[(round + lane) % placeNames.length] ?? 'in the write'
      const again = [...absent].find(name => name.startsWith('n'))
      const names = Array.from({ length: COMMITS_PER_KILL }, (_, i) => `n${lane}-${round}-${i}`)
      if (again && round % 2 === 0) names[0] = again
      const address = `192.0.${lane}.${round + 1}`
      const leaver = round % 5 === 1 ? [...addressOf.keys()].at(-2) : undefined

      const tokens = new Map<string, string>()
      for (const name of names) tokens.set(name, await reserveToken(api, name))
      await reserveToken(api, `r${lane}-${round}`)
      absent.add(`r${lane}-${round}`)

      const doomed = api
      const fates: Promise<unknown>[] = []
      const held = await places[place](database, async () => {
        for (const [name, token] of tokens) fates.push(commit(doomed, name, token, address).catch(() => 'cut off'))
        if (leaver) fates.push(release(doomed, leaver).catch(() => 'cut off'))
        await until('every row is as it was asked for', async () => {
          const states = await Promise.all(names.map(name => stateOf(database, name)))
          const isDue = states.every(row => row?.state === 'active' && (row.applied ?? 0) < (row.version ?? 0))
          return isDue && !(leaver && (await stateOf(database, leaver)))
        })
      })
      await kill(api)
      await held.release()
      await Promise.all(fates)

      for (const name of names) {
        addressOf.set(name, address)
        absent.delete(name)
      }
      if (leaver) {
        addressOf.delete(leaver)
        absent.add(leaver)
      }
      api = await start(database)
      await untilApplied(database.sql)
      await expectConsistentTables(database.sql)
      const active = await activeNames(database.sql)
      expect(new Map(active.map(row => [row.subdomain, row.address]))).toEqual(addressOf)
      const lately = active.filter(row => names.includes(row.subdomain))
      await expectDnsToMatch(api.dnsPort, lately, leaver ? [`${leaver}.${pool}`] : [])
    }
    await expectDnsToMatch(
      api.dnsPort,
      await activeNames(database.sql),
      [...absent].map(name => `${name}.${pool}`),
    )
    await kill(api)
  }

  test(`${LANES * KILLS_PER_LANE} kills between the row and its records: afterwards active names resolve, nothing else does`, {
    timeout: 180_000,
  }, async () => {
    const { ms } = await timed(() => Promise.all(Array.from({ length: LANES }, (_, lane) => killAgainAndAgain(lane))))
    process.stdout.write(`kill -9: ${LANES * KILLS_PER_LANE} kills, ${Math.round(ms / 1_000)} s\n`)
  })

  test('a writer that dies in its write loses the zone to another replica within seconds', async () => {
    const database = databaseOf(LANES)
    const writer = await start(database)
    const token = await reserveToken(writer, 'acme')
    const held = await holdLock(database.sql, tx => tx`lock table local_dns_record_sets in share mode`)
    const cutOff = commit(writer, 'acme', token).catch(() => 'cut off')
    await untilSessionsWait(database.sql, 1, '%insert into local_dns_record_sets%')
    const successor = await start(database)
    await untilSessionsWait(database.sql, 1, '%from dns_zone_locks%')

    await kill(writer)
    const { ms } = await timed(() => untilSessionsWait(database.sql, 2, '%insert into local_dns_record_sets%', 10_000))
    await held.release()
    await untilApplied(database.sql, 10_000)
    process.stdout.write(`kill -9: the successor wrote ${Math.round(ms)} ms after its predecessor's death\n`)
    expect(await cutOff).toBe('cut off')
    await expectConsistentTables(database.sql)
    await expectDnsToMatch(successor.dnsPort, await activeNames(database.sql), [`other.${pool}`])
    await kill(successor)
  })

  test('a write that outlives its process does not bring back the records of a name that was released meanwhile', async () => {
    const database = databaseOf(LANES + 3)
    const writer = await start(database)
    await commit(writer, 'first', await reserveToken(writer, 'first'))
    const token = await reserveToken(writer, 'acme')
    const held = await holdWrites(database)
    const cutOff = commit(writer, 'acme', token).catch(() => 'cut off')
    await untilSessionsWait(database.sql, 1, '%insert into local_dns_record_sets%')
    await kill(writer)
    expect(await cutOff).toBe('cut off')
    // What was sent still waits in the database, and is carried out whenever the lock goes.
    await releaseInDatabase(database, 'acme')
    const successor = await start(database)
    await Promise.race([
      untilApplied(database.sql),
      untilSessionsWait(database.sql, 2, '%insert into local_dns_record_sets%'),
    ])
    await held.release()
    await until('no write is under way', async () => (await busyWith(database, '%local_dns_record_sets%')) === 0)
    await untilApplied(database.sql)
    await expectConsistentTables(database.sql)
    await expectDnsToMatch(successor.dnsPort, await activeNames(database.sql), [`acme.${pool}`])
    await kill(successor)
  })

  test('records that were written but not noted are withdrawn when their name is released before anybody looks', async () => {
    const database = databaseOf(LANES + 4)
    const writer = await start(database)
    const token = await reserveToken(writer, 'acme')
    const held = await places['after the write'](database, async () => {
      void commit(writer, 'acme', token).catch(() => 'cut off')
      await until('it is active', async () => (await stateOf(database, 'acme'))?.state === 'active')
    })
    await kill(writer)
    await held.release()
    await until('no statement is under way', async () => (await busyWith(database, '%dns_names%')) === 0)
    // As if its "applied" had never been sent.
    await database.sql`update dns_names set applied_version = 0`
    await releaseInDatabase(database, 'acme')
    expect(await database.sql`select from local_dns_record_sets`).toHaveLength(recordNames.length)
    const successor = await start(database)
    await untilApplied(database.sql)
    await expectConsistentTables(database.sql)
    await kill(successor)
  })

  test('a reserve that is cut off leaves a row or none, and a row can be released', async () => {
    const database = databaseOf(LANES + 1)
    const api = await start(database)
    const held = await holdLock(database.sql, tx => tx`lock table pool_allocations in share mode`)
    const answers = Promise.allSettled(['one', 'two', 'three'].map(name => reserveToken(api, name)))
    await untilSessionsWait(database.sql, 1, '%insert into pool_allocations%')
    await kill(api)
    await held.release()
    expect((await answers).every(answer => answer.status === 'rejected')).toBe(true)
    const again = await start(database)
    for (const name of ['one', 'two', 'three']) {
      await until(`${name} can be had again`, async () => {
        const answer = await release(again, name)
        if (answer.status !== 200 && answer.status !== 404) throw new Error(`${answer.status} ${answer.text}`)
        return reserveToken(again, name).catch(() => undefined)
      })
    }
    await kill(again)
  })

  test('a commit whose records cannot go out is answered 202 in time, seen by all, and published without help', async () => {
    const database = databaseOf(LANES + 2)
    const api = await start(database, { PDM_DNS_COMMIT_WAIT: '500ms' })
    const token = await reserveToken(api, 'acme')
    const held = await holdLock(database.sql, tx => tx`lock table local_dns_record_sets in share mode`)
    const { result, ms } = await timed(() => commit(api, 'acme', token))
    expect(result.status).toBe(202)
    expect(result.body).toMatchObject({ state: 'active', warning: 'dns-pending' })
    expect(ms).toBeGreaterThanOrEqual(490)
    expect(ms).toBeLessThan(3_000)

    const dnsOf = async () => (await api.call('GET', `/api/v1/pool/${pool}/allocations/acme`)).body.dns.status
    const pendingSeconds = async () => {
      const { text } = await api.call('GET', '/metrics')
      return Number(/^pdm_dns_oldest_pending_seconds\{zone="pool\.test"\} (\S+)$/m.exec(text)?.[1])
    }
    expect(['pending', 'failing']).toContain(await dnsOf())
    expect(await pendingSeconds()).toBeGreaterThan(0)
    await held.release()
    await until('it is published', async () => (await dnsOf()) === 'published')
    expect(await pendingSeconds()).toBe(0)
    await expectConsistentTables(database.sql)
    await kill(api)
  })
})
