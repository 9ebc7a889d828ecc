import { describe, expect, test } from 'vitest'
import { createContractCall, createSteps, poolPath, startTestService, unknownToken } from '../support/service.ts'

const { api, call, database } = await startTestService({ PDM_OPERATOR_TOKENS: 'operator-token-of-tests' })
const { reserveName } = createSteps(call)
const callOperator = createContractCall(api.operatorUrl ?? '')
const operator = (method: string, path: string, body?: object) =>
  callOperator(method, path, body, { Authorization: 'Bearer operator-token-of-tests' })

const nameservers = ['ns1.cloud.example', 'ns2.cloud.example']
const ds = [{ keyTag: 12_345, algorithm: 13, digestType: 2, digest: 'AB'.repeat(32) }]
const forms: Readonly<Record<string, object>> = {
  ipv4: { loadBalancerIP: '203.0.113.20' },
  ipv6: { loadBalancerIPv6: '2001:db8::20' },
  addresses: {
    loadBalancerIP: '203.0.113.21',
    loadBalancerIPv6: '2001:db8::21',
    consoleLoadBalancerIP: '203.0.113.22',
  },
  hostname: { loadBalancerHostname: 'lb.cloud.example' },
  delegation: { nameservers, ds },
}
const texts: Readonly<Record<string, string>> = {
  ipv4: '203.0.113.20',
  ipv6: '2001:db8::20',
  addresses: '203.0.113.21, 2001:db8::21, console 203.0.113.22',
  hostname: 'lb.cloud.example',
  delegation: `ns1.cloud.example, ns2.cloud.example, DS digest: ${ds[0]?.digest}, keyTag: 12345, algorithm: 13, digestType: 2`,
}
const FIELDS = Object.keys(Object.assign({}, ...Object.values(forms)))
const targetOf = (body: object) => Object.fromEntries(Object.entries(body).filter(([field]) => FIELDS.includes(field)))
const commit = async (subdomain: string, target: object) => {
  const { reservationToken } = await reserveName(subdomain)
  const body = { subdomain, reservationToken, sovereignFQDN: `${subdomain}.pool.test`, ...target }
  return { reservationToken, ...(await call('POST', `${poolPath}/commit`, body)) }
}
const update = (subdomain: string, reservationToken: string, change: object, query = '') =>
  call('POST', `${poolPath}/update${query}`, { subdomain, reservationToken, ...change })
const get = async (subdomain: string) => (await call('GET', `${poolPath}/allocations/${subdomain}`)).body

test.each(Object.entries(forms))(
  '%s: commit, get, list, search, describe, export and release show its fields',
  async (form, target) => {
    const { status, body, reservationToken } = await commit(form, target)
    expect([status, targetOf(body), body.dns]).toEqual([200, target, { status: 'published' }])
    expect(await get(form)).toEqual(body)
    const { body: list } = await call('GET', `${poolPath}/list`)
    expect(list.allocations).toContainEqual(body)
    const { body: found } = await operator('GET', `/api/v1/names?q=${form}.pool`)
    expect(found.names.map(targetOf)).toEqual([target])
    const { body: details } = await operator('GET', `${poolPath}/names/${form}`)
    expect(targetOf(details)).toEqual(target)
    const { text } = await operator('GET', '/api/v1/export')
    const line = text.split('\n').find(row => row.includes('pool_allocations') && row.includes(`"${form}"`)) ?? '{}'
    const { row } = JSON.parse(line)
    expect(row.target ?? { loadBalancerIP: row.load_balancer_ip.replace('/32', '') }).toEqual(target)
    const { body: released } = await call('DELETE', `${poolPath}/release`, { subdomain: form, reservationToken })
    expect(targetOf(released.freed)).toEqual(target)
  },
)

const pairs = Object.keys(forms).flatMap(from => Object.keys(forms).flatMap(to => (from === to ? [] : [[from, to]])))
test.each(pairs)(
  'from %s to %s: a dry run, the update, its history, its records, and the same again',
  async (from = '', to = '') => {
    const subdomain = `${from}-${to}`
    const { reservationToken } = await commit(subdomain, forms[from] ?? {})
    const removed =
      from === 'hostname' || from === 'delegation'
        ? {}
        : { loadBalancerIP: null, loadBalancerIPv6: null, consoleLoadBalancerIP: null }
    const change = { ...removed, ...forms[to] }
    const { body: plan } = await update(subdomain, reservationToken, change, '?dryRun=true')
    expect(plan.action).toBe('update')
    expect(plan.changes.length).toBeGreaterThan(0)
    expect(targetOf(await get(subdomain))).toEqual(forms[from])
    const { status, body } = await update(subdomain, reservationToken, change)
    expect([status, targetOf(body), body.dns]).toEqual([200, forms[to], { status: 'published' }])
    const { body: again } = await update(subdomain, reservationToken, change)
    expect(again).toEqual(body)
    const { body: history } = await call('GET', `${poolPath}/history?sub=${subdomain}`)
    expect(
      history.entries.flatMap(({ event, detail }: Record<string, string>) => (event === 'updated' ? [detail] : [])),
    ).toEqual([`${texts[from]} replaced by ${texts[to]}`])
    const { body: compared } = await operator('GET', `${poolPath}/names/${subdomain}/records`)
    expect([compared.changes, compared.found]).toEqual([[], expect.arrayContaining(compared.desired)])
  },
)

describe('an update of addresses', () => {
  test('changes what it names, and null removes one; one stays', async () => {
    const { reservationToken } = await commit('merged', { loadBalancerIP: '203.0.113.1' })
    const change = async (fields: object) => {
      const { status, body } = await update('merged', reservationToken, fields)
      return status === 200 ? targetOf(body) : [status, body.error]
    }
    const both = { loadBalancerIP: '203.0.113.1', loadBalancerIPv6: '2001:db8::1' }
    expect(await change({ loadBalancerIPv6: '2001:db8::1' })).toEqual(both)
    expect(await change({ consoleLoadBalancerIP: '203.0.113.9' })).toEqual({
      ...both,
      consoleLoadBalancerIP: '203.0.113.9',
    })
    expect(await change({ consoleLoadBalancerIP: null })).toEqual(both)
    expect(await change({ loadBalancerIP: null })).toEqual({ loadBalancerIPv6: '2001:db8::1' })
    expect(await change({ loadBalancerIPv6: null })).toEqual([422, 'invalid-target'])
    expect((await update('merged', reservationToken, { loadBalancerIPv6: null }, '?dryRun=true')).body.error).toBe(
      'invalid-target',
    )
    expect((await update('merged', unknownToken, { loadBalancerIPv6: null })).body.error).toBe('token-mismatch')
    expect(targetOf(await get('merged'))).toEqual({ loadBalancerIPv6: '2001:db8::1' })
  })

  test('at the same time as others loses nothing, and a repetition under its key replays it', async () => {
    const { reservationToken } = await commit('raced', { loadBalancerIP: '203.0.113.1' })
    const send = (fields: object, key: string) =>
      call(
        'POST',
        `${poolPath}/update`,
        { subdomain: 'raced', reservationToken, ...fields },
        { 'Idempotency-Key': key },
      )
    const changes = [
      { loadBalancerIP: '203.0.113.2' },
      { loadBalancerIPv6: '2001:db8::2' },
      { consoleLoadBalancerIP: '203.0.113.3' },
    ]
    const responses = await Promise.all(changes.map((change, i) => send(change, `raced-${i}`)))
    expect(responses.map(({ status }) => status)).toEqual([200, 200, 200])
    expect(targetOf(await get('raced'))).toEqual(Object.assign({}, ...changes))
    expect((await send(changes[1] ?? {}, 'raced-1')).body).toMatchObject(targetOf(responses[1]?.body ?? {}))
    expect((await send({ loadBalancerIPv6: '2001:db8::3' }, 'raced-1')).body.error).toBe('idempotency-key-reused')
  })
})

test.each<[object, string]>([
  [{ loadBalancerHostname: 'refused.pool.test' }, 'invalid-lb-hostname'],
  [{ loadBalancerHostname: 'lb.refused.pool.test.' }, 'invalid-lb-hostname'],
  [{ nameservers: ['ns1.refused.pool.test', 'ns.cloud.example'] }, 'invalid-nameservers'],
  [{ loadBalancerHostname: 'lb.cloud.example', loadBalancerIP: '203.0.113.1' }, 'invalid-target'],
  [{ consoleLoadBalancerIP: '203.0.113.1' }, 'invalid-target'],
  [{ loadBalancerHostname: 'lb.refused.pool.test', sovereignFQDN: 'other.pool.test' }, 'invalid-lb-hostname'],
])('%j is 422 %s, and the name stays reserved', async (target, error) => {
  const { reservationToken } = (await call('POST', `${poolPath}/reserve`, { subdomain: 'refused' })).body
  const body = { subdomain: 'refused', reservationToken, sovereignFQDN: 'refused.pool.test', ...target }
  const response = await call('POST', `${poolPath}/commit`, body)
  expect([response.status, response.body.error]).toEqual([422, error])
  await call('DELETE', `${poolPath}/release`, { subdomain: 'refused', reservationToken })
})

describe('a build that does not know targets', () => {
  const setAddress = (subdomain: string, address: string) =>
    database.sql`update pool_allocations set load_balancer_ip = ${address}::text::inet where subdomain = ${subdomain}`

  test('gives a name another address, which is then its target', async () => {
    await commit('older', { loadBalancerIP: '203.0.113.1', loadBalancerIPv6: '2001:db8::1' })
    await setAddress('older', '203.0.113.1')
    expect(targetOf(await get('older'))).toEqual({ loadBalancerIP: '203.0.113.1', loadBalancerIPv6: '2001:db8::1' })
    await setAddress('older', '203.0.113.2')
    expect(targetOf(await get('older'))).toEqual({ loadBalancerIP: '203.0.113.2' })
  })

  test('cannot give an address to a name without one, whose records it would not write', async () => {
    await commit('newer', { loadBalancerHostname: 'lb.cloud.example' })
    await expect(setAddress('newer', '203.0.113.2')).rejects.toThrow('does not know the target')
    expect(targetOf(await get('newer'))).toEqual({ loadBalancerHostname: 'lb.cloud.example' })
  })

  test('reserves a released name for another client, without the former target', async () => {
    await commit('reused', { loadBalancerIP: '203.0.113.1', loadBalancerIPv6: '2001:db8::1' })
    await database.sql`
      update pool_allocations set state = 'reserved', expires_at = reserved_at + interval '1 hour', sovereign_fqdn = null,
        load_balancer_ip = null, committed_at = null where subdomain = 'reused'`
    const [row] = await database.sql`select target from pool_allocations where subdomain = 'reused'`
    expect(row).toEqual({ target: null })
  })
})
