import { expect, test } from 'vitest'
import { validateChange } from './provider.ts'

const upsert = (name: string, type: string, ttl: number, ...values: string[]) =>
  ({ kind: 'upsert', set: { name, type, ttl, values } }) as const

test.each([
  [upsert('a.pool.test', 'A', 60, '192.0.2.1'), undefined],
  [upsert('*.a.pool.test', 'A', 0, '192.0.2.1'), undefined],
  [upsert('pool.test', 'A', 60, '192.0.2.1'), undefined],
  [{ kind: 'delete', name: 'a.pool.test', type: 'SRV' } as const, undefined],
  [upsert('a.test', 'A', 60, '192.0.2.1'), /not a name of this zone/],
  [upsert('a b.pool.test', 'A', 60, '192.0.2.1'), /not a name of this zone/],
  [upsert('pool.test', 'NS', 60, 'ns.example.'), /NS and SOA/],
  [upsert('a.pool.test', 'A', -1, '192.0.2.1'), /TTL/],
  [upsert('a.pool.test', 'A', 2 ** 31, '192.0.2.1'), /TTL/],
  [upsert('a.pool.test', 'A', 60), /no value/],
  [upsert('a.pool.test', 'A', 60, '192.0.2.1', 'x'), /does not support/],
  [upsert('a.pool.test', 'CNAME', 60, 'a.example', 'b.example'), /only one CNAME/],
])('%j: %s', (change, reason) => {
  const result = validateChange('pool.test', change)
  if (reason === undefined) expect(result).toBeUndefined()
  else expect(result).toMatch(reason)
})
