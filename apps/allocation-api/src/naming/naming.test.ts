import { describe, expect, test } from 'vitest'
import { toFqdn, validateName, validatePool } from './naming.ts'

const managed = ['pool.test', 'eu.pool.test', 'a.b.other.test', 'other.test']
const validate = (poolDomain: string, subdomain: string) =>
  validateName(poolDomain, subdomain, managed)?.kind ?? 'valid'

test('the FQDN is the label and the pool domain', () => {
  expect(toFqdn('pool.test', 'acme')).toBe('acme.pool.test')
})

describe('validatePool', () => {
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

describe('validateName', () => {
  test.each([
    ['an ordinary label', 'pool.test', 'acme', 'valid'],
    ['a reserved label', 'pool.test', 'www', 'reserved'],
    ['an unmanaged pool', 'x.test', 'acme', 'unsupported-pool'],
    ['a reserved label in an unmanaged pool', 'x.test', 'www', 'unsupported-pool'],
    ['a label that is another managed pool', 'pool.test', 'eu', 'reserved'],
    ['a label that would stand above another managed pool', 'other.test', 'b', 'reserved'],
    ['a label that is only a text suffix of a pool', 'pool.test', 'u', 'valid'],
    ['a label that only starts like a pool', 'pool.test', 'eur', 'valid'],
    ['the same label in a pool where it covers nothing', 'other.test', 'eu', 'valid'],
    ['a label below the deeper pool', 'eu.pool.test', 'eu', 'valid'],
    ['a reserved label below the deeper pool', 'eu.pool.test', 'api', 'reserved'],
  ])('%s', (_, poolDomain, subdomain, kind) => {
    expect(validate(poolDomain, subdomain)).toBe(kind)
  })
})
