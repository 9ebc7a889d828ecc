import { describe, expect, test } from 'vitest'
import { toFqdn, validateName, validatePool } from './naming.ts'

const managed = ['pool.test', 'eu.pool.test', 'a.b.other.test', 'other.test']
const kindOf = (poolDomain: string, subdomain: string) => validateName(poolDomain, subdomain, managed)?.kind ?? 'good'

test('the fqdn is the label before the pool', () => {
  expect(toFqdn('pool.test', 'acme')).toBe('acme.pool.test')
})

describe('refusePool', () => {
  test.each([
    ['pool.test', true],
    ['eu.pool.test', true],
    ['test', false],
    ['a.pool.test', false],
    ['Pool.test', false],
    ['pool.test.', false],
    ['', false],
    ['__proto__', false],
  ])('%j', (domain, isManaged) => {
    expect(validatePool(domain, managed)).toEqual(
      isManaged ? null : { kind: 'unsupported-pool', detail: expect.stringContaining('eu.pool.test') },
    )
  })
})

describe('refuseName', () => {
  test.each([
    ['a label like any other', 'pool.test', 'acme', 'good'],
    ['a reserved label', 'pool.test', 'www', 'reserved'],
    ['a foreign pool', 'x.test', 'acme', 'unsupported-pool'],
    ['a foreign pool comes before a reserved label', 'x.test', 'www', 'unsupported-pool'],
    ['a label that is another managed pool', 'pool.test', 'eu', 'reserved'],
    ['a label that would stand above another managed pool', 'other.test', 'b', 'reserved'],
    ['a label whose text only ends like a pool', 'pool.test', 'u', 'good'],
    ['a label whose text only begins like one', 'pool.test', 'eur', 'good'],
    ['the same label in a pool where it covers nothing', 'other.test', 'eu', 'good'],
    ['a label below the deeper pool', 'eu.pool.test', 'eu', 'good'],
    ['a reserved label below the deeper pool', 'eu.pool.test', 'api', 'reserved'],
  ])('%s', (_, poolDomain, subdomain, kind) => {
    expect(kindOf(poolDomain, subdomain)).toBe(kind)
  })
})
