import { timed, until } from '@pool/test-kit/poll.ts'
import type { Api } from '@pool/test-kit/services.ts'
import { describe, expect } from 'vitest'
import { foreign, testWithDynadot } from '../support/dynadot-fixture.ts'
import { holdLock } from '../support/locks.ts'
import { check, commit, countStatuses, pool, release, reserveToken } from '../support/operations.ts'

/** Duration of a provider call. */
const CALL_MS = 300
/** The domain holds 100 records below it; one is the marker of the zone. */
const COMMITS = 99
const WRITERS = 4
const MAX_CALLS = 8

const names = Array.from({ length: COMMITS }, (_, i) => `n${i}`)
const addresses = Object.fromEntries(names.map((name, i) => [name, `192.0.2.${i + 1}`]))

const print = (line: string) => process.stdout.write(`whole zone: ${line}\n`)

describe('a provider that only replaces whole zones', () => {
  const title = `${COMMITS} concurrent commits over ${WRITERS} processes are all published, with few calls`
  // The number of calls limits the time of the commits, on a machine of any speed.
  const env = { PDM_DATABASE_TIMEOUT: '1m', PDM_DNS_COMMIT_WAIT: '1m' }
  testWithDynadot(title, { processes: WRITERS, callMs: CALL_MS, foreignSub: [], env }, async fixture => {
    const { database, double, apis, callCount } = fixture
    const getApi = (index: number): Api => apis[index % apis.length] ?? fixture.api
    // Warms up each process with all of its database connections.
    const tokens = await Promise.all(names.map((name, i) => reserveToken(getApi(i), name)))
    const unknown = '11111111-2222-4333-8444-555555555555'
    await Promise.all(names.map((name, i) => commit(getApi(i), name, unknown)))
    await Promise.all(names.map((name, i) => check(getApi(i), name)))
    fixture.expectRecords({})

    double.resetCalls()
    // No process writes the zone before all commits are stored, so that the machine does not spread them.
    const zone = await holdLock(database.sql, tx => tx`select from zone_leases for update`)
    const started = names.map((name, i) => timed(() => commit(getApi(i), name, tokens[i] ?? '', addresses[name])))
    await until('all commits are stored', async () => {
      const [row] = await database.sql<{ count: number }[]>`
        select count(*) from dns_names where applied_version < version`
      return row?.count === COMMITS
    }).finally(() => zone.release())
    const commits = await Promise.all(started)
    const { get_dns: reads, set_dns2: writes } = double.calls
    const total = callCount()
    const slowest = Math.max(...commits.map(({ ms }) => ms))
    print(
      `${COMMITS} commits over ${WRITERS} processes at ${CALL_MS} ms a call: ` +
        `${total} calls (${reads} get, ${writes} set), the slowest after ${Math.round(slowest)} ms`,
    )
    expect(countStatuses(commits.map(({ result }) => result))).toEqual({ 200: COMMITS })
    expect(commits.every(({ result }) => result.body.dns.status === 'published')).toBe(true)
    fixture.expectRecords(addresses)
    expect(total).toBeLessThanOrEqual(MAX_CALLS)
    expect(double.calls.busy).toBe(0)

    // The domain is full. Foreign records take some of the places that the releases free, and new commits take the others.
    const releasedNames = names.slice(0, 10)
    const releases = await Promise.all(releasedNames.map((name, i) => release(getApi(i), name)))
    expect(countStatuses(releases)).toEqual({ 200: releasedNames.length })
    double.change(pool, { sub: [...foreign.sub, ...double.domain(pool).sub] })
    const reusedNames = names.slice(0, WRITERS)
    const newTokens = await Promise.all(reusedNames.map((name, i) => reserveToken(getApi(i), name)))
    const again = await Promise.all(
      reusedNames.map((name, i) => commit(getApi(i), name, newTokens[i] ?? '', '203.0.113.9')),
    )
    expect(countStatuses(again)).toEqual({ 200: WRITERS })
    const unchanged = Object.fromEntries(names.slice(releasedNames.length).map(name => [name, addresses[name] ?? '']))
    fixture.expectRecords(
      { ...unchanged, ...Object.fromEntries(reusedNames.map(name => [name, '203.0.113.9'])) },
      foreign.sub,
    )
  })
})
