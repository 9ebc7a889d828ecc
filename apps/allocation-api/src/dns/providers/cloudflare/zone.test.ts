import { expect, test } from 'vitest'
import type { Success } from './api.ts'
import { PageCheck, selectZone, toSuffixes } from './zone.ts'

test.each([
  [[], []],
  [['acme.z', '*.acme.z', 'api.acme.z'], ['acme.z']],
  [['*.acme.z'], ['acme.z']],
  [
    ['xacme.z', 'acme.z'],
    ['xacme.z', 'acme.z'],
  ],
])('suffixes of %j', (names, suffixes) => {
  expect(toSuffixes(names)).toEqual(suffixes)
})

const page = (total_count: number, ...ids: string[]): Success => ({
  kind: 'done',
  info: { total_count },
  result: ids.map(id => ({ id, name: 'a.z', type: 'A', ttl: 300, content: '192.0.2.1' })),
})

test.each([
  ['one page', [page(2, 'a', 'b')], ['a', 'b']],
  ['two', [page(3, 'a', 'b'), page(3, 'c')], ['a', 'b', 'c']],
  ['no records', [page(0)], []],
  ['one record twice, so that another is missing', [page(3, 'a', 'b'), page(3, 'b')], undefined],
  ['a total that changed', [page(2, 'a'), page(3, 'b')], undefined],
  ['an invalid record', [{ ...page(1), result: [{ id: 'a' }] }], undefined],
])('the pages of one list: %s', (_, [first, ...others], ids) => {
  if (!first) throw new Error('there is no page')
  const check = new PageCheck(first)
  const records = [first, ...others].flatMap(page => check.add(page) ?? [])
  expect(check.isComplete()).toBe(ids !== undefined)
  if (ids) expect(records.map(({ id }) => id)).toEqual(ids)
})

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
  ['another zone', [{ ...zone, name: 'other.z.example' }], zoneUnavailable('no zone z.example')],
  ['no zones', [], zoneUnavailable('no zone z.example')],
  ['no list', undefined, zoneUnavailable('no zone z.example')],
  ['without an id', [{ ...zone, id: undefined }], zoneUnavailable('no zone z.example')],
  ['one that is not active yet', [{ ...zone, status: 'pending' }], zoneUnavailable('its status is "pending"')],
  ['one that is no longer active', [{ ...zone, status: 'moved' }], zoneUnavailable('its status is "moved"')],
  ['a secondary zone', [{ ...zone, type: 'secondary' }], zoneUnavailable('secondary')],
])('%s', (_, zones, expected) => {
  expect(selectZone('z.example', zones)).toEqual(expected)
})
