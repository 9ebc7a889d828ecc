import { expect, test } from 'vitest'
import { selectZone } from './zone-lookup.ts'

const zone = { id: 'i', name: 'z.example', status: 'active', type: 'full', plan: { legacy_id: 'free' } }
const zoneUnavailable = (reason: string) => ({
  kind: 'unavailable',
  reason: expect.stringContaining(reason),
  scope: 'zone',
})

test.each([
  ['a zone', [zone], { id: 'i', name: 'z.example', batchLimit: 200, pages: 1 }],
  ['in capitals', [{ ...zone, name: 'Z.Example' }], { id: 'i', name: 'z.example', batchLimit: 200, pages: 1 }],
  [
    'on a larger plan',
    [{ ...zone, plan: { legacy_id: 'pro' } }],
    { id: 'i', name: 'z.example', batchLimit: 3_500, pages: 1 },
  ],
  ['on an unknown plan', [{ ...zone, plan: undefined }], { id: 'i', name: 'z.example', batchLimit: 200, pages: 1 }],
  [
    'the active one of two',
    [{ ...zone, id: 'p', status: 'pending' }, zone],
    { id: 'i', name: 'z.example', batchLimit: 200, pages: 1 },
  ],
  [
    'one that is not active yet',
    [{ ...zone, status: 'pending' }],
    { id: 'i', name: 'z.example', batchLimit: 200, pages: 1 },
  ],
  ['another zone', [{ ...zone, name: 'other.z.example' }], zoneUnavailable('no zone z.example')],
  ['no zones', [], zoneUnavailable('no zone z.example')],
  ['no list', undefined, zoneUnavailable('no zone z.example')],
  ['without an id', [{ ...zone, id: undefined }], zoneUnavailable('no zone z.example')],
  ['a secondary zone', [{ ...zone, type: 'secondary' }], zoneUnavailable('secondary')],
])('%s', (_, zones, expected) => {
  expect(selectZone('z.example', zones)).toEqual(expected)
})
