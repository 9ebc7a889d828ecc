import { expect, test } from 'vitest'
import { diffChanges, formatEventId, parseEventId } from './change.ts'

const state = { names: '12', zones: '-5', deployments: '7.3', samples: '1700000000' }

test.each([
  ['nothing', { ...state }, []],
  ['names', { ...state, names: '13' }, ['names']],
  ['two topics', { ...state, deployments: '8.3', zones: '4' }, ['zones', 'deployments']],
])('a change of %s', (_, after, topics) => {
  expect(diffChanges(state, after)).toEqual(topics)
})

test('without an earlier state, everything may have changed', () => {
  expect(diffChanges(null, state)).toEqual(['names', 'zones', 'deployments', 'samples'])
})

test('any replica continues from the id of an event', () => {
  expect(parseEventId(formatEventId(state))).toEqual(state)
})

test.each([undefined, '', '1', '1~2~3', '1~2~3~4~5', 'a b~2~3~4', `${'9'.repeat(41)}~1~2~3`])(
  '%j is not the id of an event',
  id => expect(parseEventId(id)).toBeNull(),
)
