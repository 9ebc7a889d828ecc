import { timed, until } from '@pool/test-kit/poll.ts'
import { describe, expect } from 'vitest'
import type { Api, ApiResponse } from '../support/api.ts'
import { untilApplied } from '../support/consistency.ts'
import { missingDsn, testDsn } from '../support/database.ts'
import { apiKey, type DynadotStage, testOnStage, wrongKey } from '../support/dynadot-fixture.ts'
import { check, commit, pool, release, reserveToken } from '../support/operations.ts'

if (!testDsn) process.stderr.write(`${missingDsn}\n`)

const BEFORE = '192.0.2.1'
const AFTER = '203.0.113.9'
/** PDM_DNS_COMMIT_WAIT where nothing else is set. */
const DEFAULT_WAIT_MS = 5_000
const SHORT_WAIT_MS = 1_000
const RETRY_AFTER_MS = 2_000
const tooMany = { status: 429, retryAfter: String(RETRY_AFTER_MS / 1_000) }
/** For what is done without anybody's help: longer than any pause between attempts. */
const GENEROUS_MS = 30_000

const say = (line: string) => process.stdout.write(`provider outage: ${line}\n`)

const get = (api: Api, subdomain: string) => api.call('GET', `/api/v1/pool/${pool}/allocations/${subdomain}`)
const dnsOf = async (api: Api, subdomain: string) => (await get(api, subdomain)).body.dns

/** Asks as a client does, and changes nothing. */
const untilPublished = (api: Api, subdomain: string) =>
  until(`${subdomain} is published`, async () => (await dnsOf(api, subdomain)).status === 'published', GENEROUS_MS)

const expectPending = ({ status, body }: ApiResponse) => {
  expect(status).toBe(202)
  expect(body).toMatchObject({ warning: 'dns-pending', detail: expect.stringMatching(/Retrying automatically/) })
}

const active = async (api: Api, subdomain: string, address = BEFORE) => {
  expect((await commit(api, subdomain, await reserveToken(api, subdomain), address)).status).toBe(200)
}

/** A pass that begins now leaves everything as it is: nothing of what went before is still to come. */
const expectToStay = async (stage: DynadotStage, addressOf: Readonly<Record<string, string>>) => {
  await untilApplied(stage.database.sql, GENEROUS_MS)
  stage.expectRecords(addressOf)
  await active(stage.api, 'bystander')
  stage.expectRecords({ ...addressOf, bystander: BEFORE })
}

// Each on a stage of its own, and most of the time waiting.
describe.skipIf(!testDsn).concurrent('the provider is away', () => {
  testOnStage('a commit is answered 202 with the reason, and published when the provider is back', {}, async stage => {
    const { api, double } = stage
    const token = await reserveToken(api, 'acme')
    await double.stop()
    const { result, ms } = await timed(() => commit(api, 'acme', token))
    expectPending(result)
    expect(result.body).toMatchObject({ state: 'active' })
    expect(ms).toBeLessThan(DEFAULT_WAIT_MS)
    const { detail } = await until('it is failing', async () => {
      const dns = await dnsOf(api, 'acme')
      return dns.status === 'failing' && dns
    })
    expect(detail).toMatch(/could not be reached \(ECONNREFUSED\)/)

    await double.start()
    const back = await timed(() => untilPublished(api, 'acme'))
    stage.expectRecords({ acme: BEFORE })
    say(`a commit was answered 202 after ${Math.round(ms)} ms; published ${Math.round(back.ms)} ms after the return`)
  })

  const briefly = { hasProxy: true, env: { PDM_DNS_COMMIT_WAIT: `${SHORT_WAIT_MS}ms` } }
  testOnStage('a commit waits no longer than it is meant to for a provider that hangs', briefly, async stage => {
    const { api, proxy } = stage
    const token = await reserveToken(api, 'acme')
    proxy.freeze()
    const { result, ms } = await timed(() => commit(api, 'acme', token))
    expectPending(result)
    expect(ms).toBeGreaterThanOrEqual(SHORT_WAIT_MS - 10)
    expect(ms).toBeLessThan(SHORT_WAIT_MS + 2_000)
    expect((await dnsOf(api, 'acme')).status).not.toBe('published')
    stage.expectRecords({})

    proxy.thaw()
    const back = await timed(() => untilPublished(api, 'acme'))
    stage.expectRecords({ acme: BEFORE })
    say(
      `one that hangs: 202 after ${Math.round(ms)} ms of ${SHORT_WAIT_MS}; ` +
        `published ${Math.round(back.ms)} ms after it went on`,
    )
  })

  testOnStage('a release frees the name at once, and its records go when the provider is back', {}, async stage => {
    const { api, double } = stage
    for (const name of ['acme', 'again', 'other']) await active(api, name)
    await double.stop()
    for (const name of ['acme', 'again']) {
      const { result, ms } = await timed(() => release(api, name))
      expectPending(result)
      expect(result.body).toMatchObject({ freed: { subdomain: name } })
      expect(ms).toBeLessThan(DEFAULT_WAIT_MS)
      expect((await check(api, name)).body).toMatchObject({ available: true })
      expect((await release(api, name)).status).toBe(404)
    }
    await reserveToken(api, 'again')
    stage.expectRecords({ acme: BEFORE, again: BEFORE, other: BEFORE })

    await double.start()
    const isGone = () => double.domain(pool).sub.every(({ host }) => host !== 'acme' && host !== 'again')
    const back = await timed(() => until('the records are gone', isGone, GENEROUS_MS))
    stage.expectRecords({ other: BEFORE })
    expect((await get(api, 'again')).body).toMatchObject({ state: 'reserved' })
    expect((await check(api, 'acme')).body).toMatchObject({ available: true })
    say(`two withdrawals were made ${Math.round(back.ms)} ms after the return`)
  })

  const two = { processes: 2 }
  testOnStage('a name taken again while its withdrawal fails gets its new address, and keeps it', two, async stage => {
    const { api, apis, double } = stage
    const [first = api, second = api] = apis
    await active(first, 'acme')
    await double.stop()
    expectPending(await release(first, 'acme'))
    expectPending(await commit(second, 'acme', await reserveToken(second, 'acme'), AFTER))
    stage.expectRecords({ acme: BEFORE })

    await double.start()
    const back = await timed(() => untilPublished(first, 'acme'))
    stage.expectRecords({ acme: AFTER })
    await expectToStay(stage, { acme: AFTER })
    say(`a name taken again was published ${Math.round(back.ms)} ms after the return`)
  })

  for (const nth of [1, 2, 3]) {
    const slow = { processes: 2, hasProxy: true, callMs: 50 }
    testOnStage(`so does one taken again in call ${nth} of its withdrawal`, slow, async stage => {
      const { api, apis, double, proxy, callCount } = stage
      const [first = api, second = api] = apis
      await active(first, 'acme')
      double.resetCalls()
      const withdrawal = release(first, 'acme')
      await until(`call ${nth} came`, () => callCount() === nth)
      // The answer is held back until the new address stands in the database.
      proxy.freeze()
      const commitment = commit(second, 'acme', await reserveToken(second, 'acme'), AFTER)
      await until('it is active again', async () => (await get(second, 'acme')).body.state === 'active')
      proxy.thaw()
      for (const { status } of await Promise.all([withdrawal, commitment])) expect(status).toBe(200)
      stage.expectRecords({ acme: AFTER })
      await expectToStay(stage, { acme: AFTER })
    })
  }

  testOnStage('whoever is told to come back later makes no call before', { callMs: 50 }, async stage => {
    const { api, double, callCount } = stage
    const token = await reserveToken(api, 'acme')
    double.resetCalls()
    double.fail('get_dns', tooMany)
    const answer = commit(api, 'acme', token)
    await until('the first call came', () => callCount() === 1)
    // The answer to it is still to come: a clock that starts here and has it all cannot have started late.
    const { ms } = await timed(() => until('there is another', () => callCount() > 1))
    expectPending(await answer)
    expect(ms).toBeGreaterThanOrEqual(RETRY_AFTER_MS)
    await untilPublished(api, 'acme')
    stage.expectRecords({ acme: BEFORE })
    say(`the next call came ${Math.round(ms)} ms after one that was told to come back after ${RETRY_AFTER_MS}`)
  })

  // What was asked for holds for the account, not for the one name. A process learns it by a call of its own.
  for (const [whose, index, told] of [
    ['for another name', 0, 1],
    ['in another process, once it was told itself', 1, 2],
  ] as const) {
    testOnStage(`nor does a commit ${whose}`, { processes: 2, callMs: 50 }, async stage => {
      const { api, apis, double, callCount } = stage
      const other = apis[index] ?? api
      const tokens = await Promise.all(['acme', 'other'].map(name => reserveToken(api, name)))
      double.resetCalls()
      for (let call = 0; call < told; call += 1) double.fail('get_dns', tooMany)
      const last = until('the last one that is told came', () => callCount() === told).then(() => performance.now())
      const next = until('there is another', () => callCount() > told).then(() => performance.now())
      expectPending(await commit(api, 'acme', tokens[0] ?? ''))
      expectPending(await commit(other, 'other', tokens[1] ?? ''))
      expect((await next) - (await last)).toBeGreaterThanOrEqual(RETRY_AFTER_MS)
      for (const name of ['acme', 'other']) await untilPublished(api, name)
      stage.expectRecords({ acme: BEFORE, other: BEFORE })
    })
  }

  // Every test here searches for keys; these two are about the ways in which a provider could bring one up.
  testOnStage('the API key is not told where the provider quotes it', {}, async ({ api, double }) => {
    const token = await reserveToken(api, 'acme')
    double.fail('get_dns', { error: `account ${apiKey} is locked` })
    const answer = await commit(api, 'acme', token)
    expectPending(answer)
    expect(answer.body.detail).toMatch(/Dynadot rejected get_dns/)
    await untilPublished(api, 'acme')
  })

  const refused = { env: { DNSPROVIDER_DYNADOT_API_KEY: wrongKey } }
  testOnStage('nor is one that the provider refuses', refused, async ({ api }) => {
    const answer = await commit(api, 'acme', await reserveToken(api, 'acme'))
    expectPending(answer)
    expect(answer.body.detail).toMatch(/rejected the API key/)
  })
})
