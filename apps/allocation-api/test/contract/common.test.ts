import { expect, test } from 'vitest'
import { createSteps, poolPath, startTestService } from '../support/service.ts'

const { api, call } = await startTestService({ DNSPROVIDER_MANAGED_DOMAINS: 'Pool.Test. , second.test\tpool.test' })
const { reserveName } = createSteps(call)
/** 96 random bits of the process, and the number of the request. */
const newId = /^[0-9a-f]{24}-[1-9][0-9]*$/

test('healthz is 200 with status ok and the managed domains: in lower case, without duplicates and without trailing dots', async () => {
  const { status, body } = await call('GET', '/healthz')
  expect([status, body]).toEqual([200, { status: 'ok', managedDomains: ['pool.test', 'second.test'] }])
})

test.each(['/livez', '/readyz'])('%s is 200 with status ok', async path => {
  const { status, body } = await call('GET', path)
  expect([status, body]).toEqual([200, { status: 'ok' }])
})

test.each(['a', 'order-17/3', 'A1._:/+=@-', '7f3c'.repeat(32)])('a safe X-Request-Id is preserved: %s', async id => {
  const { headers } = await call('GET', '/livez', undefined, { 'X-Request-Id': id })
  expect(headers.get('x-request-id')).toBe(id)
})

test.each([
  ['empty', ''],
  ['with a space', 'a b'],
  ['too long', 'a'.repeat(129)],
  ['with a quote', 'a"b'],
  ['with a brace', '{"level":"fatal"}'],
  ['beyond ASCII', 'caf\xe9'],
  ['given twice', 'a, b'],
])('an invalid X-Request-Id is replaced: %s', async (_, id) => {
  const { headers } = await call('GET', '/livez', undefined, { 'X-Request-Id': id })
  expect(headers.get('x-request-id')).toMatch(newId)
})

test('each request without an X-Request-Id gets an id of its own', async () => {
  const requests = Array.from({ length: 20 }, () => call('GET', '/livez'))
  const ids = (await Promise.all(requests)).map(({ headers }) => headers.get('x-request-id'))
  for (const id of ids) expect(id).toMatch(newId)
  expect(new Set(ids).size).toBe(ids.length)
})

test('two processes share no request id', async () => {
  const other = await startTestService()
  const ids = await Promise.all([call('GET', '/livez'), other.call('GET', '/livez')])
  const [first, second] = ids.map(({ headers }) => headers.get('x-request-id')?.split('-')[0])
  expect(first).not.toBe(second)
})

test.each([
  ['200', 'GET', '/api/v1/reserved'],
  ['404', 'GET', '/nope'],
  ['405', 'PUT', `${poolPath}/reserve`],
  ['400', 'POST', `${poolPath}/reserve`],
  ['422', 'GET', '/api/v1/pool/x.test/list'],
])('the request id is in the header of a %s and in one log line', async (status, method, path) => {
  const id = `log-${status}`
  const answer = await call(method, path, undefined, { 'X-Request-Id': id })
  expect([String(answer.status), answer.headers.get('x-request-id')]).toEqual([status, id])
  const logged = () => api.lines.filter(line => line.includes(`"${id}"`)).map(line => JSON.parse(line))
  await expect.poll(logged).toMatchObject([{ requestId: id, method, status: answer.status, level: 'info' }])
})

test.each([
  [404, 'POST', '/nope'],
  [405, 'PUT', `${poolPath}/reserve`],
])('the limit of a body applies where one is read: %i to %s %s', async (status, method, path) => {
  expect((await call(method, path, 'x'.repeat(70_000))).status).toBe(status)
})

test('the log has the route pattern, not the path', async () => {
  await call('GET', `${poolPath}/check?sub=marked-label`)
  await call('GET', `${poolPath}/allocations/marked-label`)
  await call('GET', '/marked-label')
  await expect.poll(() => api.lines.some(line => line.includes('/allocations/:subdomain'))).toBe(true)
  expect(api.lines.filter(line => line.includes('marked-label'))).toEqual([])
})

test('the metrics count requests by route and status, outcomes by operation, and allocations by pool and state', async () => {
  await reserveName('counted')
  await call('POST', `${poolPath}/reserve`, { subdomain: 'counted' })
  const { headers, text } = await call('GET', '/metrics')
  expect(headers.get('content-type')).toMatch(/^text\/plain; version=0\.0\.4/)
  for (const line of [
    /^pdm_http_request_duration_seconds_count\{.*route="\/api\/v1\/pool\/:domain\/reserve",status="201"\} 1$/m,
    /^pdm_operations_total\{operation="reserve",outcome="granted"\} 1$/m,
    /^pdm_operations_total\{operation="reserve",outcome="conflict"\} 1$/m,
    /^pdm_allocations\{pool="pool\.test",state="reserved"\} 1$/m,
    /^pdm_sweeper_deleted_total 0$/m,
    /^pdm_build_info\{version="1\.0\.0",.*\} 1$/m,
    /^# TYPE pdm_dns_operation_duration_seconds histogram$/m,
    /^# TYPE pdm_dns_oldest_pending_seconds gauge$/m,
    /^# TYPE pdm_dns_last_sync_timestamp_seconds gauge$/m,
  ]) {
    expect(text).toMatch(line)
  }
})
