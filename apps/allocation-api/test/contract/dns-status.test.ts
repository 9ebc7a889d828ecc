import { startApi } from '@pool/test-kit/services.ts'
import { afterAll, describe, expect, test } from 'vitest'
import { createContractCall, createSteps, poolPath, startTestService } from '../support/service.ts'

const { api, call, database } = await startTestService({ PDM_DNS_COMMIT_WAIT: '5s' })
const impatientApi = await startApi(database.url, { PDM_DNS_COMMIT_WAIT: '0s', PDM_SWEEPER_INTERVAL: '1h' })
const impatient = createSteps(createContractCall(impatientApi.url))
const { reserveName, reserveAndCommit, check, commitBody } = createSteps(call)
afterAll(() => impatientApi.process.stop())

const get = async (name: string) => (await call('GET', `${poolPath}/allocations/${name}`)).body
const breakProvider = () => database.sql`alter table local_dns_zones rename to local_dns_zones_away`
const repairProvider = () => database.sql`alter table local_dns_zones_away rename to local_dns_zones`
/** Makes all pending names due now. */
const advancePastBackoff = () => database.advance(3_600_000)

test('published: commit is 200 once the records are published', async () => {
  expect((await reserveAndCommit('out')).allocation.dns).toEqual({ status: 'published' })
})

test('pending: commit is 202 with warning and detail if the wait ends before the records are published', async () => {
  const { reservationToken } = await impatient.reserveName('soon')
  const { status, body } = await createContractCall(impatientApi.url)(
    'POST',
    `${poolPath}/commit`,
    commitBody('soon', reservationToken),
  )
  expect(status).toBe(202)
  expect(body).toMatchObject({ state: 'active', dns: { status: 'pending' }, warning: 'dns-pending' })
  await expect.poll(async () => (await get('soon')).dns).toEqual({ status: 'published' })
})

describe('failing, while the provider rejects writes', () => {
  test('commit is 202: active in the database, with a detail why the records are not published', async () => {
    const { reservationToken } = await reserveName('stuck')
    await reserveAndCommit('leaving')
    await breakProvider()
    const { status, body } = await call('POST', `${poolPath}/commit`, commitBody('stuck', reservationToken))
    expect(status).toBe(202)
    expect(body).toMatchObject({
      state: 'active',
      subdomain: 'stuck',
      sovereignFQDN: 'stuck.pool.test',
      dns: { status: 'failing', detail: expect.any(String) },
      warning: 'dns-pending',
      detail: expect.any(String),
    })
    expect(await check('stuck')).toMatchObject({ reason: 'active-state' })
  })

  test('get and list return the status and its reason', async () => {
    const dns = { status: 'failing', detail: expect.any(String) }
    expect((await get('stuck')).dns).toEqual(dns)
    const { allocations } = (await call('GET', `${poolPath}/list`)).body
    expect(allocations.find((one: { subdomain: string }) => one.subdomain === 'stuck').dns).toEqual(dns)
  })

  test('no response contains the error text of the database', async () => {
    expect((await call('GET', `${poolPath}/list`)).text).not.toMatch(/local_dns|relation|42P01|select/i)
  })

  test('release is 202: the row is deleted, but not all of its records', async () => {
    const { status, body } = await call('DELETE', `${poolPath}/release?sub=leaving`)
    expect(status).toBe(202)
    expect(body).toMatchObject({ freed: { subdomain: 'leaving', state: 'active' }, warning: 'dns-pending' })
    expect(await check('leaving')).toMatchObject({ available: true })
  })

  test('the metrics show the oldest pending change and the failing names', async () => {
    const { text } = await call('GET', '/metrics')
    expect(text).toMatch(/^pdm_dns_failing_names\{zone="pool\.test",cause="provider"\} 2$/m)
    expect(text).toMatch(/^pdm_dns_circuit_open [01]$/m)
    expect(text).toMatch(/^pdm_dns_oldest_pending_seconds\{zone="pool\.test"\} 0*[.\d]*[1-9]/m)
  })

  test('a later commit with the same Idempotency-Key replays, with the current status of the records', async () => {
    const { reservationToken } = await reserveName('retried')
    const commit = () =>
      call('POST', `${poolPath}/commit`, commitBody('retried', reservationToken), { 'Idempotency-Key': 'retried' })
    expect((await commit()).status).toBe(202)
    expect((await commit()).status).toBe(202)
    await repairProvider()
    await advancePastBackoff()
    await expect.poll(async () => (await commit()).status).toBe(200)
  })

  test('the reconciler retries until the records are published', async () => {
    await advancePastBackoff()
    await expect.poll(async () => (await get('stuck')).dns).toEqual({ status: 'published' })
    // A drift check may have deleted the row.
    await expect
      .poll(() => database.sql`select from dns_names where subdomain = 'leaving' and owned <> '[]'`)
      .toHaveLength(0)
  })
})

test('the log of a failing provider contains no error text of the database', () => {
  expect(api.lines.filter(line => /does not exist|insert into|select /i.test(line))).toEqual([])
})
