import { timed, until } from '@pool/test-kit/poll.ts'
import type { Api, ApiResponse } from '@pool/test-kit/services.ts'
import { describe, expect } from 'vitest'
import { untilApplied } from '../support/consistency.ts'
import { type DynadotFixture, testWithDynadot } from '../support/dynadot-fixture.ts'
import { check, commit, pool, release, reserveToken } from '../support/operations.ts'

const BEFORE = '192.0.2.1'
const AFTER = '203.0.113.9'
/** Far longer than a response that does not wait takes on a busy machine. */
const LONG_WAIT = '40s'
const LONG_WAIT_MS = 40_000
const SHORT_WAIT_MS = 1_000
const RETRY_AFTER_MS = 2_000
const tooManyRequests = { status: 429, retryAfter: String(RETRY_AFTER_MS / 1_000) }
/** Longer than any pause between attempts. */
const RECOVERY_TIMEOUT_MS = 90_000

const print = (line: string) => process.stdout.write(`provider outage: ${line}\n`)

const get = (api: Api, subdomain: string) => api.call('GET', `/api/v1/pool/${pool}/allocations/${subdomain}`)
const getDns = async (api: Api, subdomain: string) => (await get(api, subdomain)).body.dns

/** Polls the API as a client does. Triggers nothing. */
const untilPublished = (api: Api, subdomain: string) =>
  until(
    `${subdomain} is published`,
    async () => (await getDns(api, subdomain)).status === 'published',
    RECOVERY_TIMEOUT_MS,
  )

const expectPending = ({ status, body }: ApiResponse) => {
  expect(status).toBe(202)
  expect(body).toMatchObject({ warning: 'dns-pending', detail: expect.stringMatching(/as soon as it can/) })
}

/** From the arrival of the first of so many rejected calls, before its response, to that of the next call after them. */
const measurePause = ({ arrivals }: DynadotFixture['double'], rejectedCalls: number): number =>
  (arrivals[rejectedCalls] ?? Number.NaN) - (arrivals[0] ?? Number.NaN)

const activate = async (api: Api, subdomain: string, address = BEFORE) => {
  expect((await commit(api, subdomain, await reserveToken(api, subdomain), address)).status).toBe(200)
}

/** Fails if a sync that starts now changes the records, for example because an earlier write is late. */
const expectStableRecords = async (fixture: DynadotFixture, addresses: Readonly<Record<string, string>>) => {
  await untilApplied(fixture.database.sql, RECOVERY_TIMEOUT_MS)
  fixture.expectRecords(addresses)
  await activate(fixture.api, 'unrelated')
  fixture.expectRecords({ ...addresses, unrelated: BEFORE })
}

// Each test has its own fixture and mostly waits.
describe.concurrent('a provider outage', () => {
  testWithDynadot(
    'a commit returns 202 with the reason, and is published when the provider has recovered',
    { env: { PDM_DNS_COMMIT_WAIT: LONG_WAIT } },
    async fixture => {
      const { api, double } = fixture
      const token = await reserveToken(api, 'acme')
      await double.stop()
      const { result, ms } = await timed(() => commit(api, 'acme', token))
      expectPending(result)
      expect(result.body).toMatchObject({ state: 'active' })
      expect(ms).toBeLessThan(LONG_WAIT_MS)
      const { detail } = await until('the name is failing', async () => {
        const dns = await getDns(api, 'acme')
        return dns.status === 'failing' && dns
      })
      expect(detail).toMatch(/could not be reached \(ECONNREFUSED\)/)

      await double.start()
      const recovery = await timed(() => untilPublished(api, 'acme'))
      fixture.expectRecords({ acme: BEFORE })
      print(
        `a commit returned 202 after ${Math.round(ms)} ms; published ${Math.round(recovery.ms)} ms after the recovery`,
      )
    },
  )

  const shortWait = { env: { PDM_DNS_COMMIT_WAIT: `${SHORT_WAIT_MS}ms` } }
  testWithDynadot(
    'a commit waits no longer than PDM_DNS_COMMIT_WAIT for a provider that hangs',
    { ...shortWait, hasProxy: true },
    async fixture => {
      const { api, proxy } = fixture
      const token = await reserveToken(api, 'acme')
      proxy.freeze()
      const { result, ms } = await timed(() => commit(api, 'acme', token))
      expectPending(result)
      expect(ms).toBeGreaterThanOrEqual(SHORT_WAIT_MS - 10)
      expect((await getDns(api, 'acme')).status).not.toBe('published')
      fixture.expectRecords({})

      proxy.thaw()
      const recovery = await timed(() => untilPublished(api, 'acme'))
      fixture.expectRecords({ acme: BEFORE })
      print(
        `a hanging provider: 202 after ${Math.round(ms)} ms of ${SHORT_WAIT_MS}; ` +
          `published ${Math.round(recovery.ms)} ms after it continued`,
      )
    },
  )

  testWithDynadot(
    'a release frees the name immediately, and its records are deleted when the provider has recovered',
    { env: { PDM_DNS_COMMIT_WAIT: LONG_WAIT } },
    async fixture => {
      const { api, double } = fixture
      for (const name of ['acme', 'again', 'other']) await activate(api, name)
      await double.stop()
      for (const name of ['acme', 'again']) {
        const { result, ms } = await timed(() => release(api, name))
        expectPending(result)
        expect(result.body).toMatchObject({ freed: { subdomain: name } })
        expect(ms).toBeLessThan(LONG_WAIT_MS)
        expect((await check(api, name)).body).toMatchObject({ available: true })
        expect((await release(api, name)).status).toBe(404)
      }
      await reserveToken(api, 'again')
      fixture.expectRecords({ acme: BEFORE, again: BEFORE, other: BEFORE })

      await double.start()
      const areDeleted = () => double.domain(pool).sub.every(({ host }) => host !== 'acme' && host !== 'again')
      const recovery = await timed(() => until('the records are deleted', areDeleted, RECOVERY_TIMEOUT_MS))
      fixture.expectRecords({ other: BEFORE })
      expect((await get(api, 'again')).body).toMatchObject({ state: 'reserved' })
      expect((await check(api, 'acme')).body).toMatchObject({ available: true })
      print(`two names were withdrawn ${Math.round(recovery.ms)} ms after the recovery`)
    },
  )

  const twoProcesses = { processes: 2 }
  testWithDynadot(
    'a name committed again while its withdrawal fails gets its new address and keeps it',
    twoProcesses,
    async fixture => {
      const { api, apis, double } = fixture
      const [first = api, second = api] = apis
      await activate(first, 'acme')
      await double.stop()
      expectPending(await release(first, 'acme'))
      expectPending(await commit(second, 'acme', await reserveToken(second, 'acme'), AFTER))
      fixture.expectRecords({ acme: BEFORE })

      await double.start()
      const recovery = await timed(() => untilPublished(first, 'acme'))
      fixture.expectRecords({ acme: AFTER })
      await expectStableRecords(fixture, { acme: AFTER })
      print(`a name committed again was published ${Math.round(recovery.ms)} ms after the recovery`)
    },
  )

  testWithDynadot(
    'a name committed again during any of the three calls of its withdrawal gets its new address and keeps it',
    { processes: 2, hasProxy: true, callMs: 50 },
    async fixture => {
      const { api, apis, double, proxy, callCount } = fixture
      const [first = api, second = api] = apis
      const addresses: Record<string, string> = {}
      for (const nth of [1, 2, 3]) {
        const name = `acme-${nth}`
        await activate(first, name)
        await untilApplied(fixture.database.sql, RECOVERY_TIMEOUT_MS)
        double.resetCalls()
        const withdrawal = release(first, name)
        await until(`call ${nth} has arrived`, () => callCount() === nth)
        // Delays the response until the database has the new address.
        proxy.freeze()
        const commitment = commit(second, name, await reserveToken(second, name), AFTER)
        await until('the name is active again', async () => (await get(second, name)).body.state === 'active')
        proxy.thaw()
        for (const { status } of await Promise.all([withdrawal, commitment])) expect(status).toBe(200)
        addresses[name] = AFTER
        fixture.expectRecords(addresses)
        await expectStableRecords(fixture, addresses)
        expect((await release(first, 'unrelated')).status).toBe(200)
      }
    },
  )

  // Retry-After applies to the account, not to one name.
  const expectPause = async (
    { api, database, double, expectRecords }: DynadotFixture,
    { other, rejectedCalls }: { readonly other: Api; readonly rejectedCalls: number },
  ) => {
    const token = await reserveToken(api, 'acme')
    const otherToken = await reserveToken(api, 'other')
    double.resetCalls()
    for (let call = 0; call < rejectedCalls; call += 1) double.fail('get_dns', tooManyRequests)
    expectPending(await commit(api, 'acme', token))
    expectPending(await commit(other, 'other', otherToken))
    await until('another call has arrived', () => double.arrivals.length > rejectedCalls)
    expect(measurePause(double, rejectedCalls)).toBeGreaterThanOrEqual(RETRY_AFTER_MS)
    for (const name of ['acme', 'other']) await untilPublished(api, name)
    expectRecords({ acme: BEFORE, other: BEFORE })
    await untilApplied(database.sql, RECOVERY_TIMEOUT_MS)
  }
  // A short wait: a commit that waits for the end of the pause is published.
  // With one process: another one may sync the second name before the first one has stored that it must wait.
  testWithDynadot('after a Retry-After, no call is made for another name', { ...shortWait, callMs: 50 }, fixture =>
    expectPause(fixture, { other: fixture.api, rejectedCalls: 1 }),
  )
  // Each process learns it from its own call, so the pause of the first one may end before that of the other.
  testWithDynadot(
    'after a Retry-After, no call is made by another process after its own Retry-After',
    { ...shortWait, processes: 2, callMs: 50 },
    fixture => expectPause(fixture, { other: fixture.apis[1] ?? fixture.api, rejectedCalls: 2 }),
  )
})
