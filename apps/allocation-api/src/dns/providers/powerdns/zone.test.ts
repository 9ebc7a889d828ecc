import { expect, test } from 'vitest'
import { isSecondary, splitRecords } from './zone.ts'

test('contentsOf: what is served, normalised, apart from what is disabled', () => {
  const record = (content: string, disabled = false) => ({ content, disabled })
  const rrsets = [
    { name: 'WWW.pool.test.', type: 'A', ttl: 60, records: [record('192.0.2.2'), record('192.0.2.1')] },
    { name: 'twice.pool.test.', type: 'A', ttl: 60, records: [record('192.0.2.1'), record('192.0.2.1')] },
    { name: 'half.pool.test.', type: 'A', ttl: 60, records: [record('192.0.2.1', true), record('192.0.2.2')] },
    { name: 'off.pool.test.', type: 'A', ttl: 61, records: [record('192.0.2.2', true), record('192.0.2.1', true)] },
    { name: 'comment-only.pool.test.', type: 'A', ttl: 0, records: [] },
    { name: 'mail.pool.test.', type: 'MX', ttl: 60, records: [record('10 MX.example.')] },
  ]
  const { served, unserved } = splitRecords({ rrsets })
  expect(served).toEqual([
    { name: 'www.pool.test', type: 'A', ttl: 60, values: ['192.0.2.1', '192.0.2.2'] },
    { name: 'twice.pool.test', type: 'A', ttl: 60, values: ['192.0.2.1'] },
    { name: 'half.pool.test', type: 'A', ttl: 60, values: ['192.0.2.2'] },
    { name: 'mail.pool.test', type: 'MX', ttl: 60, values: ['10 MX.example.'] },
  ])
  expect([...unserved]).toEqual([
    ['half.pool.test A', { ttl: 60, values: ['192.0.2.1'] }],
    ['off.pool.test A', { ttl: 61, values: ['192.0.2.1', '192.0.2.2'] }],
  ])
})

test.each([
  ['Native', false],
  ['Master', false],
  ['Primary', false],
  ['Slave', true],
  ['Secondary', true],
  ['Consumer', true],
  ['Producer', true],
])('a zone of the kind %s is a copy: %s', (kind, expected) => {
  expect(isSecondary({ kind, rrsets: [] })).toBe(expected)
})
