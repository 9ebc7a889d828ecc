import { timed, until } from '@pool/test-kit/poll.ts'
import { proofSize, reportProof } from '@pool/test-kit/proof-size.ts'
import type { Api } from '@pool/test-kit/services.ts'
import { smallPoolEnv, startApi } from '@pool/test-kit/services.ts'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createAllocationRepository } from '../../src/allocation/repository.ts'
import {
  activeNames,
  expectConsistentTables,
  expectDnsToMatch,
  recordNames,
  untilApplied,
} from '../support/consistency.ts'
import { createTestDatabase, createTestWriter, repositoryOptions, type TestDatabase } from '../support/database.ts'
import { type HeldLock, holdLock, untilSessionsWait } from '../support/locks.ts'
import { commit, pool, release, reserveToken } from '../support/operations.ts'

/** The workers run concurrently, each on its own database. */
const WORKERS = Math.min(2, proofSize(2, 1))
/** At least one kill at each crash point. */
const KILLS_PER_WORKER = proofSize(25, 4)
const COMMITS_PER_KILL = 3

/** For writes that wait for as long as the test holds a lock. */
const PATIENT_ENV = { PDM_DATABASE_TIMEOUT: '1m', PDM_DNS_COMMIT_WAIT: '1m' }

/** Sends the round's requests and waits until their rows are committed and their records are still due. */
type SendRequests = () => Promise<void>

/** Locks the row of the zone. A DNS write locks it last, when the database has the whole write. */
const blockDnsWrites = (database: TestDatabase): Promise<HeldLock> =>
  holdLock(database.sql, async tx => {
    const rows = await tx`select from local_dns_zones for update`
    if (rows.length === 0) throw new Error('no zone has a row to lock yet')
  })

const crashPoints = {
  /** The provider cannot be read, so no write is recorded as attempted. */
  'before the read': async (database: TestDatabase, sendRequests: SendRequests): Promise<HeldLock> => {
    const held = await holdLock(database.sql, tx => tx`lock table local_dns_record_sets in access exclusive mode`)
    await sendRequests()
    await untilSessionsWait(database.sql, 1, '%local_dns_record_sets%')
    return held
  },
  /** The database has the whole write and will execute it, although the client is dead. */
  'after the write was sent': async (database: TestDatabase, sendRequests: SendRequests): Promise<HeldLock> => {
    const held = await blockDnsWrites(database)
    await sendRequests()
    await untilSessionsWait(database.sql, 1, '%insert into local_dns_record_sets%')
    return held
  },
  /** The write is recorded as attempted, and it waits for its table. */
  'during the write': async (database: TestDatabase, sendRequests: SendRequests): Promise<HeldLock> => {
    const held = await holdLock(database.sql, tx => tx`lock table local_dns_record_sets in share mode`)
    await sendRequests()
    await untilSessionsWait(database.sql, 1, '%insert into local_dns_record_sets%')
    return held
  },
  /** The provider has the records, and the row does not say so yet. */
  'after the write': async (database: TestDatabase, sendRequests: SendRequests): Promise<HeldLock> => {
    const held = await holdLock(database.sql, tx => tx`lock table local_dns_record_sets in share mode`)
    await sendRequests()
    await untilSessionsWait(database.sql, 1, '%insert into local_dns_record_sets%')
    const progress = await holdLock(database.sql, tx => tx`lock table dns_names in exclusive mode`)
    await held.release()
    await untilSessionsWait(database.sql, 1, '%dns_names%')
    return progress
  },
}
const crashPointNames = Object.keys(crashPoints) as (keyof typeof crashPoints)[]

describe('crash recovery', () => {
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
  const countRunningStatements = async (database: TestDatabase, pattern: string) => {
    const [row] = await database.sql<{ count: number }[]>`
      select count(*) from pg_stat_activity
      where datname = current_database() and state <> 'idle' and query like ${pattern} and pid <> pg_backend_pid()`
    return row?.count
  }
  /** The sessions whose write of records waits for a lock. */
  const listWritingSessions = async ({ sql }: TestDatabase): Promise<number[]> => {
    const rows = await sql<{ pid: number }[]>`
      select pid from pg_stat_activity
      where datname = current_database() and wait_event_type = 'Lock' and query like '%insert into local_dns_record_sets%'`
    return rows.map(({ pid }) => pid)
  }
  /** The database ends the write of a dead client after some seconds, so the number of writing sessions says nothing. */
  const untilAnotherSessionWrites = (database: TestDatabase, former: readonly number[]) =>
    until('another session writes', async () =>
      (await listWritingSessions(database)).some(pid => !former.includes(pid)),
    )
  const untilWaitsForZone = (api: Api) =>
    until('the replica has found the zone locked', async () =>
      /^pdm_dns_syncs_total\{[^}]*outcome="busy"\} [1-9]/m.test((await api.call('GET', '/metrics')).text),
    )
  /** Stands for a replica without a DNS reconciler. */
  const releaseInDatabase = (database: TestDatabase, subdomain: string) =>
    createAllocationRepository(createTestWriter(database.sql), repositoryOptions).release({
      poolDomain: pool,
      subdomain,
      caller: { actor: 'in-cluster', address: null, requestId: 'kill' },
    })
  const findState = async (database: TestDatabase, subdomain: string) => {
    const [row] = await database.sql<{ state: string; version: number | null; applied: number | null }[]>`
      select state, version, applied_version as applied from pool_allocations
      left join dns_names using (subdomain) where subdomain = ${subdomain}`
    return row
  }

  beforeAll(async () => {
    for (let index = 0; index < WORKERS + 6; index += 1) databases.push(await createTestDatabase())
  })
  afterAll(async () => {
    for (const api of running) await api.process.kill()
    for (const database of databases) await database.drop()
  })
  const getDatabase = (index: number): TestDatabase => {
    const database = databases[index]
    if (!database) throw new Error(`no database ${index}`)
    return database
  }

  /**
   * The rounds take the crash points in turn. Every fifth round also releases an earlier name, and later rounds reserve
   * released names with another address. The test blocks each write with a lock, so the process dies at a known point.
   */
  const killRepeatedly = async (worker: number): Promise<void> => {
    const database = getDatabase(worker)
    let api = await start(database)
    expect((await commit(api, 'first', await reserveToken(api, 'first'), '192.0.2.250')).status).toBe(200)
    const addresses = new Map([['first', '192.0.2.250']])
    const absent = new Set<string>()
    for (let round = 0; round < KILLS_PER_WORKER; round += 1) {
      const crashPoint = crashPointNames[(round + worker) % crashPointNames.length] ?? 'during the write'
      const releasedName = [...absent].find(name => name.startsWith('n'))
      const names = Array.from({ length: COMMITS_PER_KILL }, (_, i) => `n${worker}-${round}-${i}`)
      if (releasedName && round % 2 === 0) names[0] = releasedName
      const address = `192.0.${worker}.${round + 1}`
      const nameToRelease = round % 5 === 1 ? [...addresses.keys()].at(-2) : undefined

      const tokens = new Map<string, string>()
      for (const name of names) tokens.set(name, await reserveToken(api, name))
      await reserveToken(api, `r${worker}-${round}`)
      absent.add(`r${worker}-${round}`)

      const victim = api
      const responses: Promise<unknown>[] = []
      const held = await crashPoints[crashPoint](database, async () => {
        for (const [name, token] of tokens)
          responses.push(commit(victim, name, token, address).catch(() => 'connection closed'))
        if (nameToRelease) responses.push(release(victim, nameToRelease).catch(() => 'connection closed'))
        await until('every request has changed its row', async () => {
          const states = await Promise.all(names.map(name => findState(database, name)))
          const isDue = states.every(row => row?.state === 'active' && (row.applied ?? 0) < (row.version ?? 0))
          return isDue && !(nameToRelease && (await findState(database, nameToRelease)))
        })
      })
      await kill(api)
      await held.release()
      await Promise.all(responses)

      for (const name of names) {
        addresses.set(name, address)
        absent.delete(name)
      }
      if (nameToRelease) {
        addresses.delete(nameToRelease)
        absent.add(nameToRelease)
      }
      api = await start(database)
      await untilApplied(database.sql)
      await expectConsistentTables(database.sql)
      const active = await activeNames(database.sql)
      expect(new Map(active.map(row => [row.subdomain, row.address]))).toEqual(addresses)
      const ofThisRound = active.filter(row => names.includes(row.subdomain))
      await expectDnsToMatch(api.dnsPort, ofThisRound, nameToRelease ? [`${nameToRelease}.${pool}`] : [])
    }
    await expectDnsToMatch(
      api.dnsPort,
      await activeNames(database.sql),
      [...absent].map(name => `${name}.${pool}`),
    )
    await kill(api)
  }

  test(`after each of ${WORKERS * KILLS_PER_WORKER} kills between the row and its records, exactly the active names resolve`, {
    timeout: 120_000 + 15_000 * KILLS_PER_WORKER,
  }, async () => {
    const { ms } = await timed(() =>
      Promise.all(Array.from({ length: WORKERS }, (_, worker) => killRepeatedly(worker))),
    )
    reportProof(`crash recovery: ${WORKERS * KILLS_PER_WORKER} kills in ${Math.round(ms / 1_000)} s`)
  })

  test('when a writer dies during its write, another replica locks the zone within seconds', async () => {
    const database = getDatabase(WORKERS)
    const writer = await start(database, PATIENT_ENV)
    const token = await reserveToken(writer, 'acme')
    const held = await holdLock(database.sql, tx => tx`lock table local_dns_record_sets in share mode`)
    const response = commit(writer, 'acme', token).catch(() => 'connection closed')
    await untilSessionsWait(database.sql, 1, '%insert into local_dns_record_sets%')
    const writingSessions = await listWritingSessions(database)
    const successor = await start(database, PATIENT_ENV)
    await untilWaitsForZone(successor)

    await kill(writer)
    const { ms } = await timed(() => untilAnotherSessionWrites(database, writingSessions))
    await held.release()
    await untilApplied(database.sql)
    process.stdout.write(`crash recovery: the successor wrote ${Math.round(ms)} ms after the kill\n`)
    expect(await response).toBe('connection closed')
    await expectConsistentTables(database.sql)
    await expectDnsToMatch(successor.dnsPort, await activeNames(database.sql), [`other.${pool}`])
    await kill(successor)
  })

  test('a write that outlives its process does not restore the records of a name that was released meanwhile', async () => {
    const database = getDatabase(WORKERS + 3)
    const writer = await start(database)
    await commit(writer, 'first', await reserveToken(writer, 'first'))
    const token = await reserveToken(writer, 'acme')
    const held = await blockDnsWrites(database)
    const response = commit(writer, 'acme', token).catch(() => 'connection closed')
    await untilSessionsWait(database.sql, 1, '%insert into local_dns_record_sets%')
    const writingSessions = await listWritingSessions(database)
    await kill(writer)
    expect(await response).toBe('connection closed')
    // The database still has the write and executes it when the lock is released, or has noticed that its client is gone.
    await releaseInDatabase(database, 'acme')
    const successor = await start(database)
    await untilAnotherSessionWrites(database, writingSessions)
    await held.release()
    await until(
      'no write is in flight',
      async () => (await countRunningStatements(database, '%local_dns_record_sets%')) === 0,
    )
    await untilApplied(database.sql)
    await expectConsistentTables(database.sql)
    await expectDnsToMatch(successor.dnsPort, await activeNames(database.sql), [`acme.${pool}`])
    await kill(successor)
  })

  test('a writer that is paused during its write, for longer than its lease, changes nothing when it continues', async () => {
    const database = getDatabase(WORKERS + 5)
    const writer = await start(database, PATIENT_ENV)
    await commit(writer, 'first', await reserveToken(writer, 'first'))
    const token = await reserveToken(writer, 'acme')
    const held = await blockDnsWrites(database)
    const committed = commit(writer, 'acme', token)
    await untilSessionsWait(database.sql, 1, '%insert into local_dns_record_sets%')
    const writingSessions = await listWritingSessions(database)
    process.kill(writer.process.pid, 'SIGSTOP')
    await releaseInDatabase(database, 'acme')
    const successor = await start(database, PATIENT_ENV)
    await untilAnotherSessionWrites(database, writingSessions)
    await held.release()
    await untilApplied(database.sql)
    await expectConsistentTables(database.sql)
    process.kill(writer.process.pid, 'SIGCONT')
    expect((await committed).status).toBeLessThan(300)
    await until('the paused sync ends without its lock', () =>
      writer.lines.find(line => line.includes('zone lock lost')),
    )
    expect((await commit(writer, 'later', await reserveToken(writer, 'later'))).status).toBe(200)
    await expectConsistentTables(database.sql)
    await expectDnsToMatch(successor.dnsPort, await activeNames(database.sql), [`acme.${pool}`])
    await Promise.all([kill(writer), kill(successor)])
  })

  test('records that were written but not recorded as applied are deleted after a release before the next sync', async () => {
    const database = getDatabase(WORKERS + 4)
    const writer = await start(database)
    const token = await reserveToken(writer, 'acme')
    const held = await crashPoints['after the write'](database, async () => {
      void commit(writer, 'acme', token).catch(() => 'connection closed')
      await until('the name is active', async () => (await findState(database, 'acme'))?.state === 'active')
    })
    await kill(writer)
    await held.release()
    await until('no statement is in flight', async () => (await countRunningStatements(database, '%dns_names%')) === 0)
    // As if the process had died before it recorded the version as applied.
    await database.sql`update dns_names set applied_version = 0`
    await releaseInDatabase(database, 'acme')
    expect(await database.sql`select from local_dns_record_sets where type = 'A'`).toHaveLength(recordNames.length)
    const successor = await start(database)
    await untilApplied(database.sql)
    await expectConsistentTables(database.sql)
    await kill(successor)
  })

  test('an aborted reserve leaves a row or no row, and the row can be released', async () => {
    const database = getDatabase(WORKERS + 1)
    const api = await start(database)
    const held = await holdLock(database.sql, tx => tx`lock table pool_allocations in share mode`)
    const answers = Promise.allSettled(['one', 'two', 'three'].map(name => reserveToken(api, name)))
    await untilSessionsWait(database.sql, 1, '%insert into pool_allocations%')
    await kill(api)
    await held.release()
    expect((await answers).every(answer => answer.status === 'rejected')).toBe(true)
    const successor = await start(database)
    for (const name of ['one', 'two', 'three']) {
      await until(`${name} can be reserved again`, async () => {
        const answer = await release(successor, name)
        if (answer.status !== 200 && answer.status !== 404) throw new Error(`${answer.status} ${answer.text}`)
        return reserveToken(successor, name).catch(() => undefined)
      })
    }
    await kill(successor)
  })

  test('a commit whose records cannot be written returns 202 in time, shows as pending, and is published later', async () => {
    const database = getDatabase(WORKERS + 2)
    const api = await start(database, { PDM_DNS_COMMIT_WAIT: '500ms' })
    const token = await reserveToken(api, 'acme')
    const held = await holdLock(database.sql, tx => tx`lock table local_dns_record_sets in share mode`)
    const { result, ms } = await timed(() => commit(api, 'acme', token))
    expect(result.status).toBe(202)
    expect(result.body).toMatchObject({ state: 'active', warning: 'dns-pending' })
    expect(ms).toBeGreaterThanOrEqual(490)

    const getDnsStatus = async () => (await api.call('GET', `/api/v1/pool/${pool}/allocations/acme`)).body.dns.status
    const pendingSeconds = async () => {
      const { text } = await api.call('GET', '/metrics')
      return Number(/^pdm_dns_oldest_pending_seconds\{zone="pool\.test"\} (\S+)$/m.exec(text)?.[1])
    }
    expect(['pending', 'failing']).toContain(await getDnsStatus())
    expect(await pendingSeconds()).toBeGreaterThan(0)
    await held.release()
    await until('the name is published', async () => (await getDnsStatus()) === 'published')
    // A scrape whose query does not finish in time lacks the metric.
    await until('the metric is 0', async () => (await pendingSeconds()) === 0)
    await expectConsistentTables(database.sql)
    await kill(api)
  })
})
