import { expect, test } from 'vitest'
import { parseNameSearch } from './name-query.ts'
import { NO_FILTER } from './route.ts'

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
