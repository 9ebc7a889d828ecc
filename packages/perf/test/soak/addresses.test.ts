import { expect, it } from 'vitest'
import { type AddressReading, findWrongAddresses, type RecordEdit } from '../../src/soak/checks/addresses.ts'
import { at, commitment, grant, type Operations, release, update } from './operations.ts'

const operations = [grant([0, 1], 'a'), commitment([2, 3], 'a', '10.0.0.1'), update([10, 12], 'a', '10.0.0.2')]
const reading = (seconds: number, ...addresses: readonly string[]): AddressReading => ({
  name: 'acme',
  token: 'a',
  start: at(seconds),
  end: at(seconds + 0.1),
  addresses,
})
const edit = (start: number, end: number): RecordEdit => ({ name: 'acme', start: at(start), end: at(end) })
const published = reading(5, '10.0.0.1')

it.each<readonly [string, Operations, readonly AddressReading[], readonly RecordEdit[]]>([
  [
    'the old address, then the new one',
    operations,
    [published, reading(11, '10.0.0.1'), reading(11.5, '10.0.0.2')],
    [],
  ],
  ['none before the first publication', operations, [reading(4), published], []],
  ['none after an edit', operations, [published, reading(11)], [edit(10, 10.5)]],
  ['none after the release', [...operations, release([20, 21], 'a')], [published, reading(20.5)], []],
  [
    'an update without a response',
    [...operations, update([13, 14], 'a', '10.0.0.3', false)],
    [published, reading(15, '10.0.0.3')],
    [],
  ],
])('accepted: %s', (_, own, readings, edits) => {
  expect(findWrongAddresses(readings, own, edits)).toEqual([])
})

it.each<readonly [string, readonly AddressReading[], readonly RecordEdit[], RegExp]>([
  ['none during the update', [published, reading(11)], [], /acme of owner of a had no address/],
  ['two addresses', [published, reading(11, '10.0.0.1', '10.0.0.2')], [], /had 10.0.0.1 and 10.0.0.2/],
  ['the new address before the update', [published, reading(8, '10.0.0.2')], [], /had 10.0.0.2/],
  ['none after an edit was restored', [published, reading(8, '10.0.0.1'), reading(11)], [edit(6, 7)], /no address/],
])('caught: %s', (_, readings, edits, violation) => {
  expect(findWrongAddresses(readings, operations, edits).join('\n')).toMatch(violation)
})
