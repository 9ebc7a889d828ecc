import type { NamesQuery } from '@pool/contract'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  chooseNameOrder,
  formatNamePosition,
  type NameOrder,
  parseNamePosition,
  readsByPool,
  toNameFilter,
  toPrefixRange,
} from './name-filter.ts'

const pools = ['a.test', 'pool.example', 'pool.test']
const all = { pools, hasPool: false, subdomain: null, address: null, createdBy: null, state: null, dns: null }

describe('the conditions of a query', () => {
  test.each([
    [{}, all],
    [{ q: '' }, all],
    [{ q: 'acm' }, { ...all, subdomain: { from: 'acm', to: 'acn' } }],
    [{ q: 'a-z' }, { ...all, subdomain: { from: 'a-z', to: 'a-{' } }],
    [{ q: 'acme.' }, { ...all, subdomain: { from: 'acme', to: 'acme\u0001' } }],
    [{ q: 'acme.pool.te' }, { ...all, pools: ['pool.test'], subdomain: { from: 'acme', to: 'acme\u0001' } }],
    [{ q: 'acme.pool.test.' }, { ...all, pools: ['pool.test'], subdomain: { from: 'acme', to: 'acme\u0001' } }],
    [{ pool: 'a.test' }, { ...all, pools: ['a.test'], hasPool: true }],
    [{ address: '203.0.113.9' }, { ...all, address: { first: '203.0.113.9', last: '203.0.113.9' } }],
    [{ address: '203.0' }, { ...all, address: { first: '203.0.0.0', last: '203.0.255.255' } }],
    [{ address: '203.' }, { ...all, address: { first: '203.0.0.0', last: '203.255.255.255' } }],
    [{ createdBy: 'ci' }, { ...all, createdBy: { from: 'ci', to: 'cj' } }],
    [{ createdBy: '' }, all],
    [
      { state: 'active', dns: 'failing' },
      { ...all, state: 'active', dns: 'failing' },
    ],
  ] as const)('%j', (query, filter) => {
    expect(toNameFilter(query, pools)).toEqual(filter)
  })

  test.each<NamesQuery>([
    { q: 'a_b' },
    { q: 'ä' },
    { q: 'a b' },
    { q: '.pool.test' },
    { q: 'x.other' },
    { pool: 'other.test' },
    { q: 'x.pool.test', pool: 'a.test' },
    { address: '203', state: 'reserved' },
    { dns: 'published', state: 'held' },
  ])('no name can meet %j', query => expect(toNameFilter(query, pools)).toBeNull())
})

test.each([
  [{}, 'name', true],
  [{ state: 'active' }, 'name', true],
  [{ dns: 'published' }, 'name', true],
  [{ q: 'a', createdBy: 'ci' }, 'name', true],
  [{ state: 'reserved' }, 'state', false],
  [{ state: 'held', pool: 'a.test' }, 'state', true],
  [{ state: 'held', q: 'a' }, 'state', true],
  [{ state: 'held', createdBy: 'ci' }, 'state', false],
  [{ q: 'a', createdBy: 'ci', state: 'reserved' }, 'state', true],
  [{ createdBy: 'ci', state: 'reserved' }, 'creator', false],
  [{ createdBy: 'ci', pool: 'a.test' }, 'creator', false],
  [{ dns: 'failing' }, 'unpublished', false],
  [{ dns: 'failing', q: 'a' }, 'unpublished', true],
  [{ dns: 'pending', address: '203' }, 'address', false],
] as const)('%j is answered in the order of %s, one pool at a time: %s', (query, order, isByPool) => {
  const filter = toNameFilter(query, pools)
  if (!filter) throw new Error('no name can meet it')
  expect([chooseNameOrder(filter), readsByPool(filter, order)]).toEqual([order, isByPool])
})

describe('the texts that begin with a prefix', () => {
  const text = fc.string({ unit: 'binary', maxLength: 6 })
  const compare = (a: string, b: string) => Buffer.compare(Buffer.from(a), Buffer.from(b))

  test('are exactly those in its range, by the bytes of UTF-8', () => {
    fc.assert(
      fc.property(text, text, (prefix, other) => {
        const { from, to } = toPrefixRange(prefix)
        const isIn = (value: string) => compare(value, from) >= 0 && (to === null || compare(value, to) < 0)
        return isIn(prefix + other) && isIn(other) === other.startsWith(prefix)
      }),
    )
  })

  test.each([
    ['a', 'b'],
    ['\ud7ff', '\ue000'],
    ['a\u{10ffff}', 'b'],
    ['\u{10ffff}', null],
    ['', null],
  ])('%j ends before %j', (prefix, to) => expect(toPrefixRange(prefix)).toEqual({ from: prefix, to }))
})

describe('a cursor', () => {
  const positions: readonly { order: NameOrder; keys: readonly string[] }[] = [
    { order: 'name', keys: ['pool.test', 'acme'] },
    { order: 'name', keys: ['pool.test', ''] },
    { order: 'address', keys: ['203.0.113.1', 'pool.test', 'acme'] },
    { order: 'creator', keys: ['Zoë !~/:%', 'pool.test', 'acme'] },
    { order: 'creator', keys: ['', 'pool.test', 'acme'] },
    { order: 'unpublished', keys: ['pool.test', 'acme'] },
    { order: 'state', keys: ['pool.test', 'acme'] },
  ]
  test.each(positions)('of %j is ASCII and leads back to it', position => {
    const text = formatNamePosition(position)
    expect(text).toMatch(/^[\w%.!~*'():-]+$/)
    expect(parseNamePosition(text, position.order)).toEqual(position)
  })

  test.each([
    ['', 'name'],
    ['name', 'name'],
    ['name:a', 'name'],
    ['name:a:b:c', 'name'],
    ['creator:x:a:b', 'address'],
    ['address:nonsense:a:b', 'address'],
    ['address:256.0.0.1:a:b', 'address'],
    ['name:a:%00', 'name'],
    ['name:a:%', 'name'],
    ['name:a:%ff', 'name'],
  ] as const)('%j is none of the order %s', (text, order) => expect(parseNamePosition(text, order)).toBeNull())
})
