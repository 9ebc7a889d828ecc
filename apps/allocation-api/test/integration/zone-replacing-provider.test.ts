import { startDynadotDouble } from '@pool/test-kit/dns/dynadot-double.ts'
import { timed } from '@pool/test-kit/poll.ts'
import { describe, expect, test } from 'vitest'
import type { Api } from '../support/api.ts'
import { missingDsn, testDsn } from '../support/database.ts'
import { apiKey, foreign, testOnStage } from '../support/dynadot-fixture.ts'
import { createNaiveClient } from '../support/naive-dynadot-client.ts'
import { check, commit, countStatuses, pool, release, reserveToken } from '../support/operations.ts'

if (!testDsn) process.stderr.write(`${missingDsn}\n`)

/** What a call is taken to last. What is promised is promised in multiples of it. */
const CALL_MS = 300
const COMMITS = 100
const WRITERS = 4
const MOST_CALLS = 8
const MOST_CALL_TIMES = 10
/** Shorter, for it changes nothing but the time: two calls an addition would take a minute at the length above. */
const BASELINE_CALL_MS = 10

const names = Array.from({ length: COMMITS }, (_, i) => `n${i}`)
const addressOf = Object.fromEntries(names.map((name, i) => [name, `192.0.2.${i + 1}`]))

const say = (line: string) => process.stdout.write(`whole set: ${line}\n`)

describe.skipIf(!testDsn)('a provider that only takes the whole record set', () => {
  const title = `${COMMITS} commits at once over ${WRITERS} processes: all there in time, in a handful of calls`
  testOnStage(title, { processes: WRITERS, callMs: CALL_MS, foreignSub: [] }, async stage => {
    const { double, apis, callCount } = stage
    const apiOf = (index: number): Api => apis[index % apis.length] ?? stage.api
    // Each process has spoken with its database by then, and on as many connections as it may.
    const tokens = await Promise.all(names.map((name, i) => reserveToken(apiOf(i), name)))
    const unknown = '11111111-2222-4333-8444-555555555555'
    await Promise.all(names.map((name, i) => commit(apiOf(i), name, unknown)))
    await Promise.all(names.map((name, i) => check(apiOf(i), name)))
    stage.expectRecords({})

    double.resetCalls()
    const commits = await Promise.all(
      names.map((name, i) => timed(() => commit(apiOf(i), name, tokens[i] ?? '', addressOf[name]))),
    )
    const { get_dns: reads, set_dns2: writes } = double.calls
    const total = callCount()
    const slowest = Math.max(...commits.map(({ ms }) => ms))
    say(
      `${COMMITS} commits over ${WRITERS} processes at ${CALL_MS} ms a call: ` +
        `${total} calls (${reads} get, ${writes} set), the slowest after ${Math.round(slowest)} ms`,
    )
    expect(countStatuses(commits.map(({ result }) => result))).toEqual({ 200: COMMITS })
    expect(commits.every(({ result }) => result.body.dns.status === 'published')).toBe(true)
    stage.expectRecords(addressOf)
    expect(total).toBeLessThanOrEqual(MOST_CALLS)
    expect(double.calls.busy).toBe(0)
    expect(slowest).toBeLessThanOrEqual(MOST_CALL_TIMES * CALL_MS)

    // The domain was full. Of the room that some leave, somebody else takes one part and others get another.
    const leavers = names.slice(0, 10)
    const left = await Promise.all(leavers.map((name, i) => release(apiOf(i), name)))
    expect(countStatuses(left)).toEqual({ 200: leavers.length })
    double.change(pool, { sub: [...foreign.sub, ...double.domain(pool).sub] })
    const comers = names.slice(0, WRITERS)
    const fresh = await Promise.all(comers.map((name, i) => reserveToken(apiOf(i), name)))
    const again = await Promise.all(comers.map((name, i) => commit(apiOf(i), name, fresh[i] ?? '', '203.0.113.9')))
    expect(countStatuses(again)).toEqual({ 200: WRITERS })
    const stayed = Object.fromEntries(names.slice(leavers.length).map(name => [name, addressOf[name] ?? '']))
    stage.expectRecords({ ...stayed, ...Object.fromEntries(comers.map(name => [name, '203.0.113.9'])) }, foreign.sub)
  })

  test(`the same ${COMMITS} by ${WRITERS} workers that each read, add and write: some are lost`, async () => {
    await using double = await startDynadotDouble({ domains: [pool], apiKey, delayMs: BASELINE_CALL_MS })
    double.change(pool, { main: foreign.main })
    const add = createNaiveClient({ url: double.url, apiKey, domain: pool, pauseMs: BASELINE_CALL_MS })
    const due = names.values()
    const work = async () => {
      for (const name of due) await add(name, addressOf[name] ?? '')
    }
    await Promise.all(Array.from({ length: WRITERS }, work))
    const { main, sub } = double.domain(pool)
    const { get_dns: reads, set_dns2: writes, busy } = double.calls
    const lost = COMMITS - sub.length
    say(
      `${COMMITS} additions by ${WRITERS} plain clients: ${lost} lost, ${reads + writes + busy} calls ` +
        `(${reads} get, ${writes} set, ${busy} busy)`,
    )
    // It does what it is written to do: every write was taken, and nothing but the records added is missing.
    expect(writes).toBe(COMMITS)
    expect(main).toEqual(foreign.main)
    expect(lost).toBeGreaterThan(0)
  })
})
