import { describe, expect, it } from 'vitest'
import { type FollowedLog, findLogStreamErrors } from '../../src/soak/checks/log-stream.ts'

const read = (reader: string, ids: readonly number[], data = (id: number) => `line ${id}`): FollowedLog => ({
  deployment: 'd',
  reader,
  lines: ids.map(id => ({ id, data: data(id) })),
  isDone: true,
})

describe('log lines arrive once, in order', () => {
  it('accepts two readers with the same lines, one of them incomplete', () => {
    expect(
      findLogStreamErrors([read('a', [1, 2, 3]), read('b', [1, 2]), { ...read('c', [1], () => 'x'), deployment: 'e' }]),
    ).toEqual([])
  })

  it.each([
    ['a missing line', [read('a', [1, 3])], ['d: a received line 3 at position 2']],
    ['a duplicate line', [read('a', [1, 1])], ['d: a received line 1 at position 2']],
    [
      'different text for two readers',
      [read('a', [1]), read('b', [1], () => 'y')],
      ['d: line 1 is y for b and line 1 for another reader'],
    ],
  ])('caught: %s', (_, followed, faults) => {
    expect(findLogStreamErrors(followed)).toEqual(faults)
  })
})
