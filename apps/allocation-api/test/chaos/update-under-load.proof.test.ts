import { setTimeout as sleep } from 'node:timers/promises'
import { missingPowerdns, startPowerdns } from '@pool/test-kit/dns/powerdns.ts'
import { shouldSkip } from '@pool/test-kit/optional-deps.ts'
import { proofSize, reportProof } from '@pool/test-kit/proof-size.ts'
import { startApi } from '@pool/test-kit/services.ts'
import { describe, expect, test } from 'vitest'
import { bind } from '../providers/support/rfc2136/bind.ts'
import { knot } from '../providers/support/rfc2136/knot.ts'
import { startServer } from '../providers/support/rfc2136/server.ts'
import { createTestDatabase } from '../support/database.ts'
import { createDnsClient } from '../support/dns.ts'
import { commit, pool, release, reserve } from '../support/operations.ts'

const UPDATES = proofSize(500, 30)
const QUERY_PAUSE_MS = 2
/** Other names that are committed and released all the time. */
const OTHERS = 3

const toAddress = (index: number): string => `203.0.${113 + (index >> 8)}.${index & 255}`

/** `dnsPort`: of the server; absent: the API's own. Returns the figures. */
const updateUnderLoad = async (env: Record<string, string>, dnsPort?: number): Promise<string> => {
  await using cleanup = new AsyncDisposableStack()
  const database = await createTestDatabase()
  cleanup.defer(() => database.drop())
  const api = await startApi(database.url, {
    ...{ DNSPROVIDER_RECORD_NAMES: '@,*', PDM_DRIFT_INTERVAL: '1s' },
    ...{ PDM_DATABASE_TIMEOUT: '1m', PDM_DNS_COMMIT_WAIT: '1m', ...env },
  })
  cleanup.defer(async () => void (await api.process.kill()))
  const { reservationToken } = (await reserve(api, 'acme')).body
  expect((await commit(api, 'acme', reservationToken, toAddress(0))).status).toBe(200)

  let isOver = false
  /** The last address of which an update was sent, and the last one whose records were reported as published. */
  let sent = 0
  let published = 0
  const wrong: string[] = []
  let queries = 0
  // A server that is overloaded may drop a query.
  const query = createDnsClient(dnsPort ?? api.dnsPort, { tries: 10, timeoutMs: 5_000 })
  const watch = async (name: string): Promise<void> => {
    while (!isOver) {
      const oldest = published
      const answer = await query(name)
      queries += 1
      const allowed = Array.from({ length: sent - oldest + 1 }, (_, i) => toAddress(oldest + i))
      if (!Array.isArray(answer) || answer.length !== 1 || !allowed.includes(answer[0] ?? ''))
        wrong.push(`${name}: ${answer}, expected ${allowed.join(' or ')}`)
      await sleep(QUERY_PAUSE_MS)
    }
  }
  const load = async (name: string): Promise<void> => {
    while (!isOver) {
      const token = (await reserve(api, name)).body.reservationToken
      await commit(api, name, token, '198.51.100.1')
      await release(api, name)
    }
  }
  const background = Promise.all([
    watch(`acme.${pool}`),
    watch(`any.acme.${pool}`),
    ...Array.from({ length: OTHERS }, (_, i) => load(`other${i}`)),
  ])
  const path = `/api/v1/pool/${pool}/update`
  const statuses: number[] = []
  for (let index = 1; index <= UPDATES; index += 1) {
    sent = index
    const body = { subdomain: 'acme', reservationToken, loadBalancerIP: toAddress(index) }
    const { status } = await api.call('POST', path, body)
    statuses.push(status)
    if (status === 200) published = index
  }
  isOver = true
  await background
  expect(new Set(statuses)).toEqual(new Set([200]))
  expect(wrong.slice(0, 5), `${wrong.length} of ${queries} queries`).toEqual([])
  return `${UPDATES} updates, ${queries} queries`
}

describe('an update under load: every query has the old address or the new one', {
  timeout: 120_000 + 2_000 * UPDATES,
}, () => {
  test('local', async () => {
    reportProof(`update at local: ${await updateUnderLoad({})}`)
  })

  test.skipIf(shouldSkip(missingPowerdns))('powerdns', async () => {
    await using server = await startPowerdns()
    await server.createZone(pool)
    const { url, apiKey } = server.options
    const env = {
      DNSPROVIDER_KIND: 'powerdns',
      DNSPROVIDER_POWERDNS_URL: url,
      DNSPROVIDER_POWERDNS_API_KEY: apiKey,
    }
    reportProof(`update at PowerDNS: ${await updateUnderLoad(env, server.dnsPort)}`)
  })

  for (const kind of [knot, bind])
    test.skipIf(shouldSkip(kind.missingPrograms))(`rfc2136 with ${kind.name}`, async () => {
      await using server = await startServer(kind, [pool])
      const env = {
        DNSPROVIDER_KIND: 'rfc2136',
        DNSPROVIDER_RFC2136_HOST: '127.0.0.1',
        DNSPROVIDER_RFC2136_PORT: String(server.port),
        DNSPROVIDER_RFC2136_TSIG_NAME: 'full.key.test',
        DNSPROVIDER_RFC2136_TSIG_SECRET: server.secret,
      }
      reportProof(`update at ${kind.name}: ${await updateUnderLoad(env, server.port)}`)
    })
})
