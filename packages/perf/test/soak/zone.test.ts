import { describe, expect, it } from 'vitest'
import type { TableRow } from '../../src/soak/checks/history.ts'
import { findZoneDifferences, toDesiredZone } from '../../src/soak/checks/zone.ts'

const template = { names: ['@', '*'], ttl: 300 }
const foreign = [{ name: 'pool.test', type: 'TXT', ttl: 60, values: ['"theirs"'] }]
const active: TableRow = { subdomain: 'acme', state: 'active', owner: 'a', address: '10.0.0.1' }
const reserved: TableRow = { subdomain: 'globex', state: 'reserved', owner: 'b', address: null }
const record = (name: string, values = ['10.0.0.1'], ttl = 300) => ({ name, type: 'A', ttl, values })
const whole = [...foreign, record('acme.pool.test'), record('*.acme.pool.test')]

describe('zone equal to desired', () => {
  it('the desired zone has the records of active names and the foreign records', () => {
    expect(toDesiredZone('pool.test', [active, reserved], template, foreign)).toEqual(whole)
  })

  it('accepts exactly the desired records in any order', () => {
    expect(findZoneDifferences(whole.toReversed(), whole)).toEqual([])
    const two = [record('a', ['10.0.0.2', '10.0.0.1'])]
    expect(findZoneDifferences(two, [record('a', ['10.0.0.1', '10.0.0.2'])])).toEqual([])
  })

  it.each([
    ['a missing record', whole.slice(0, 2), ['missing in the zone: *.acme.pool.test 300 A 10.0.0.1']],
    [
      'an unexpected record',
      [...whole, record('old.pool.test')],
      ['unexpected in the zone: old.pool.test 300 A 10.0.0.1'],
    ],
    ['a missing foreign record', whole.slice(1), ['missing in the zone: pool.test 60 TXT "theirs"']],
  ])('caught: %s', (_, present, faults) => {
    expect(findZoneDifferences(present, whole)).toEqual(faults)
  })
})
