import { operations } from '@pool/contract'
import { expect, test } from 'vitest'
import { toOperation } from './request-log.ts'

const verbs = operations.map(({ id, method, path }) => ({
  id,
  method: method.toUpperCase(),
  route: path.replaceAll(/\{([^}]+)\}/g, ':$1'),
}))

test('every operation with a counted outcome has a name', () => {
  const counted = verbs.map(({ method, route }) => toOperation(method, route)).filter(verb => verb !== undefined)
  expect(new Set(counted).size).toBe(counted.length)
  expect(verbs.filter(({ method, route }) => toOperation(method, route) === undefined).map(({ id }) => id)).toEqual([
    'listReservedLabels',
    'getAllocation',
    'getSession',
    'getSettings',
    'describeName',
    'listZones',
    'readOverview',
    'followChanges',
    'listWitnessLeases',
    'readWitnessHistory',
    'getHealth',
    'getLiveness',
    'getReadiness',
    'getMetrics',
    'getOpenApiDocument',
    'getApiReference',
    'getApiReferenceAsset',
  ])
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
