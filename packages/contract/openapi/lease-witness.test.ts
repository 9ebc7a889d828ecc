import { expect, test } from 'vitest'
import type { Operation } from '../src/index.ts'
import { leaseOperations } from '../src/lease-operations.ts'
import { leaseErrorCodes } from '../src/lease-problem.ts'
import { leaseWitnessDocument } from './documents.ts'

const text = JSON.stringify(leaseWitnessDocument(), null, 2)

test('it is OpenAPI 3.1, and every reference resolves to a schema', () => {
  const { openapi, components } = JSON.parse(text)
  expect(openapi).toMatch(/^3\.1\.\d+$/)
  const names = [...text.matchAll(/"\$ref": "#\/components\/schemas\/([^"]+)"/g)].map(([, name]) => name ?? '')
  expect(names.length).toBeGreaterThan(10)
  expect(names.filter(name => !(name in components.schemas))).toEqual([])
})

test('the responses name every error code, except those that the description names', () => {
  const responses = Object.values<Operation>(leaseOperations).flatMap(one => Object.values(one.responses))
  const codes = new Set(responses.flatMap(({ codes = [] }) => codes))
  const ofEveryOperation = ['method-not-allowed', 'request-timeout', 'unsupported-encoding']
  expect(leaseErrorCodes.filter(code => !codes.has(code))).toEqual(ofEveryOperation)
  for (const code of ofEveryOperation) expect(text).toContain(`\`${code}\``)
})

test('a lease has an entity tag, a 401 has WWW-Authenticate, and a 503 has Retry-After', () => {
  const { paths } = JSON.parse(text)
  const getHeaders = (method: string, status: number) =>
    Object.keys(paths['/lease/{slot}'][method].responses[status].headers)
  for (const [method, status] of [
    ['get', 200],
    ['get', 304],
    ['put', 200],
    ['put', 412],
    ['delete', 412],
  ] as const) {
    expect(getHeaders(method, status), `${method} ${status}`).toContain('ETag')
  }
  for (const method of ['get', 'put', 'delete']) {
    expect(getHeaders(method, 412)).toEqual(expect.arrayContaining(['Lease-Remaining-Ms', 'Lease-Conflict']))
  }
  expect(getHeaders('delete', 204)).toContain('ETag')
  expect(getHeaders('get', 401)).toContain('WWW-Authenticate')
  expect(getHeaders('put', 503)).toContain('Retry-After')
  expect(getHeaders('options', 204)).toContain('Allow')
  expect(paths['/lease/{slot}'].options.security).toEqual([])
  expect(getHeaders('get', 404)).toContain('X-Request-Id')
})
