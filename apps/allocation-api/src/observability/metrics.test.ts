import { operationList } from '@pool/contract'
import { Registry } from '@prometheus-io/client'
import { expect, test } from 'vitest'
import { toRoute } from './domain/observer.ts'
import { createMetrics, toOperation } from './metrics.ts'

test('no two operations are counted under one name', () => {
  const names = operationList.flatMap(({ method, path }) => toOperation(method.toUpperCase(), toRoute(path)) ?? [])
  expect(names.length).toBeGreaterThan(30)
  expect(names).toEqual([...new Set(names)])
})

test.each([
  ['HEAD', '/api/v1/deployments/:id', 'get-deployment'],
  ['DELETE', '/api/v1/deployments/:id', 'remove-deployment'],
  ['PUT', '/api/v1/deployments/:id', undefined],
  ['HEAD', '/api/v1/deployments', 'list-deployments'],
  ['POST', '/api/v1/credentials/validate', 'validate-token'],
  ['GET', 'none', undefined],
  ['GET', 'constructor', undefined],
])('%s %s is counted as %s', (method, route, verb) => {
  expect(toOperation(method, route)).toBe(verb)
})

test('a failed probe is no error of the service', () => {
  const metrics = createMetrics(new Registry(), { version: '1', nodeVersion: '24', providerKind: 'local' })
  const request = { requestId: '', listener: 'operator', address: null, method: 'GET', status: 503, seconds: 0 }
  for (const route of ['/readyz', '/healthz', '/api/v1/zones']) metrics.countRequest({ ...request, route, outcome: '' })
  expect(metrics.totals()).toMatchObject({ requests: 3, errors: 1 })
})
