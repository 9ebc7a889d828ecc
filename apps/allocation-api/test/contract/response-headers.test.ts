import { operationList } from '@pool/contract'
import { expect, test } from 'vitest'
import { poolPath, startTestService } from '../support/service.ts'

const token = 'operator-token-of-this-test'
const { api } = await startTestService({ PDM_OPERATOR_TOKENS: token })

const routes = [
  ...operationList.map(({ method, path }) => [method.toUpperCase(), path] as const),
  ['GET', '/no-such-route'],
  ['OPTIONS', `${poolPath}/reserve`],
  ['HEAD', `${poolPath}/list`],
  ['POST', `${poolPath}/list`],
] as const
const senders = [
  ['the in-cluster listener', api.url, {}],
  ['the operator listener', api.operatorUrl, { Authorization: `Bearer ${token}` }],
  ['the operator listener without a token', api.operatorUrl, {}],
  ['a page of another origin', api.url, { 'Sec-Fetch-Site': 'cross-site' }],
] as const

test.each(routes)('no cache keeps, and no page shows, a response: %s %s', async (method, path) => {
  const target = path
    .replace('{domain}', 'pool.test')
    .replace('{asset}', 'start.js')
    .replaceAll(/\{\w+\}/g, 'unknown')
  for (const [sender, url, headers] of senders) {
    const body = method === 'GET' || method === 'HEAD' ? {} : { body: '{}' }
    const response = await fetch(url + target, { method, headers, ...body })
    await response.body?.cancel()
    expect(response.headers.get('cache-control'), sender).toBe('no-store')
    expect(response.headers.get('x-content-type-options'), sender).toBe('nosniff')
    const policy = response.headers.get('content-security-policy')
    for (const directive of ['frame-ancestors', 'base-uri', 'form-action'])
      expect(policy, sender).toContain(`${directive} 'none'`)
  }
})
