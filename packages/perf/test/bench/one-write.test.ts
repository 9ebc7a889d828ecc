import { type Config, readConfig } from 'allocation-api/src/config/config.ts'
import { type RecordSet, recordKey } from 'allocation-api/src/dns/domain/rrset.ts'
import type { DnsProvider } from 'allocation-api/src/dns/provider.ts'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Cluster, startCluster } from '../../src/bench/environment/cluster.ts'
import { createOneWrite } from '../../src/bench/sections/one-write.ts'
import { createNames, reserveAgain } from '../../src/bench/sections/provider-names.ts'
import { endedOf } from '../../src/bench/sections/provider-subjects.ts'

const zone = 'pool.test'
const never = () => false

const cleanup = new AsyncDisposableStack()
let cluster: Cluster
let config: Config
beforeAll(async () => {
  cluster = await startCluster(cleanup)
  const read = readConfig({ PDM_DATABASE_URL: 'postgres://127.0.0.1/' })
  if ('config' in read) config = read.config
}, 60_000)
afterAll(() => cleanup.disposeAsync())

/** A zone in memory; it notices calls that overlap, and refuses every change when it is told to. */
const createZone = () => {
  const records = new Map<string, RecordSet>()
  const seen = { calls: 0, atOnce: 0, most: 0 }
  const state = { refuses: false }
  const call = async <Result>(result: () => Result): Promise<Result> => {
    seen.calls += 1
    seen.atOnce += 1
    seen.most = Math.max(seen.most, seen.atOnce)
    await new Promise(resolve => setImmediate(resolve))
    seen.atOnce -= 1
    return result()
  }
  const provider: DnsProvider = {
    read: () => call(() => ({ kind: 'read', records: [...records.values()] })),
    apply: (_, changes) =>
      call(() => {
        const sets = changes.flatMap(change => (change.kind === 'upsert' ? [change.set] : []))
        if (state.refuses) return { kind: 'applied', refused: sets.map(({ name }) => ({ name, reason: 'no' })) }
        for (const set of sets) records.set(recordKey(set), set)
        return { kind: 'applied', refused: [] }
      }),
    close: async () => {},
  }
  const addresses = () => [...records.values()].map(({ values }) => values.join())
  return { provider, seen, state, addresses }
}

const open = async (count: number) => {
  const database = await cluster.database(10)
  const { sql } = database
  const names = await createNames(sql, zone, count)
  const { provider, seen, state, addresses } = createZone()
  const { commit, publish } = createOneWrite({ sql, zone, provider, config, recordNames: ['@'] })
  const applied = async () => (await sql`select from dns_names where applied_version = version`).length
  return {
    database,
    sql,
    names,
    seen,
    state,
    addresses,
    commit,
    publish,
    applied,
    again: () => reserveAgain(sql, zone),
  }
}

describe('one write a commit', () => {
  it('reads and writes for each commit, one at a time, and the database knows it', async () => {
    const { database, names, seen, addresses, commit, publish, applied, again } = await open(8)
    await publish(names)
    expect([seen.calls, await applied()]).toEqual([2, 8])
    expect(addresses()).toEqual(Array(8).fill('203.0.113.10'))
    for (const address of ['203.0.113.11', '203.0.113.10']) {
      await again()
      seen.calls = 0
      expect(await Promise.all(names.map(name => commit(name, never)))).toEqual(Array(8).fill('done'))
      expect(addresses()).toEqual(Array(8).fill(address))
      expect(seen).toEqual({ calls: 16, atOnce: 0, most: 1 })
      expect(await applied()).toBe(8)
    }
    await database[Symbol.asyncDispose]()
  })

  it('gives up when the time is over, and writes the same the next time', async () => {
    const { database, names, seen, addresses, commit, publish, applied, again } = await open(1)
    const [name] = names
    await publish(names)
    await again()
    seen.calls = 0
    expect(name && (await commit(name, () => true))).toBe('given up')
    expect([seen.calls, await applied()]).toEqual([0, 0])
    await again()
    expect(name && (await commit(name, never))).toBe('done')
    expect(addresses()).toEqual(['203.0.113.11'])
    await database[Symbol.asyncDispose]()
  })

  it('is an error when the records are not out', async () => {
    const { database, names, state, commit } = await open(1)
    state.refuses = true
    const [name] = names
    await expect(name && commit(name, never)).rejects.toThrow(/was refused: no/)
    await database[Symbol.asyncDispose]()
  })
})

describe('a commit of the API', () => {
  it.each([
    [200, 'done'],
    [202, 'late'],
    [503, { fault: 'status 503: {}' }],
  ])('that is answered %d', (status, ended) => {
    expect(endedOf({ status, body: '{}' })).toEqual(ended)
  })
})
