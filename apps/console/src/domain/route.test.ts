import { describe, expect, test } from 'vitest'
import { NO_FILTER, parseNameSearch, parseRoute, type Route, toAddress, toTitle } from './route.ts'

const routes: readonly Route[] = [
  { page: 'overview' },
  { page: 'names', filter: NO_FILTER },
  { page: 'names', filter: { text: '203.0.113.10 & more', pool: 'pool.test', state: 'cooling-off', dns: 'failing' } },
  { page: 'name', pool: 'pool.test', subdomain: 'acme' },
  { page: 'zones' },
  { page: 'zone', pool: 'pool.test' },
  { page: 'deployments', status: '' },
  { page: 'deployments', status: 'failed' },
  { page: 'deployments', status: '', text: 'acme' },
  { page: 'new-deployment' },
  { page: 'deployment', id: '3f2b8f8e-0000-4000-8000-000000000000' },
  { page: 'buckets' },
  { page: 'leases', prefix: 'region-pair/' },
  { page: 'lease', slot: 'region-pair/primary?x#ü' },
]

test.each(routes)('an address leads back to its page: $page', route => {
  const { pathname, search } = new URL(toAddress(route), 'http://localhost')
  expect(parseRoute(pathname, search)).toEqual(route)
})

describe('parseRoute', () => {
  test.each([
    ['/console/', { page: 'overview' }],
    ['/console/nothing', { page: 'not-found' }],
    ['/console/names/pool.test', { page: 'not-found' }],
    ['/consoles', { page: 'not-found' }],
    ['/console/leases/%ff', { page: 'not-found' }],
  ])('%s', (path, route) => expect(parseRoute(path, '')).toEqual(route))

  test('ignores values that a filter does not have', () =>
    expect(parseRoute('/console/names', '?state=gone&dns=%3Cscript%3E')).toEqual({ page: 'names', filter: NO_FILTER }))
})

test('the title names the page first', () =>
  expect(toTitle({ page: 'name', pool: 'pool.test', subdomain: 'acme' })).toBe('acme.pool.test · Operator console'))

test.each([
  ['', {}],
  ['  acm ', { q: 'acm' }],
  ['acme.pool.te', { q: 'acme.pool.te' }],
  ['203.0.113', { address: '203.0.113' }],
  ['ip:203', { address: '203' }],
  ['by:Ops Team ', { createdBy: 'Ops Team' }],
  ['acme 203.0.113.10 by:ops', { q: 'acme', address: '203.0.113.10', createdBy: 'ops' }],
  ['standby:x', { q: 'standby:x' }],
])('the search %j', (text, search) => expect(parseNameSearch({ ...NO_FILTER, text })).toEqual(search))

test('the filters', () =>
  expect(parseNameSearch({ text: 'a', pool: 'pool.test', state: 'active', dns: 'failing' })).toEqual({
    q: 'a',
    pool: 'pool.test',
    state: 'active',
    dns: 'failing',
  }))
