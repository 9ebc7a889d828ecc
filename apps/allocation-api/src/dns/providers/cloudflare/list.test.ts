import { expect, test } from 'vitest'
import type { Success } from './errors.ts'
import { PageCheck, toSuffixes } from './list.ts'

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
