import { describe, expect, it } from 'vitest'
import { type Followed, streamFaults } from '../../src/soak/checks/log-stream.ts'

const read = (reader: string, ids: readonly number[], data = (id: number) => `line ${id}`): Followed => ({
  deployment: 'd',
  reader,
  lines: ids.map(id => ({ id, data: data(id) })),
  isDone: true,
})

describe('every line of a log once, in order', () => {
  it('is so for two that got the same, as far as they got', () => {
    expect(
      streamFaults([read('a', [1, 2, 3]), read('b', [1, 2]), { ...read('c', [1], () => 'x'), deployment: 'e' }]),
    ).toEqual([])
  })

  it.each([
    ['a line that is missing', [read('a', [1, 3])], ['d: a got line 3 as its 2th']],
    ['a line that came twice', [read('a', [1, 1])], ['d: a got line 1 as its 2th']],
    ['another text', [read('a', [1]), read('b', [1], () => 'y')], ['d: line 1 reads y for b, line 1 before']],
  ])('caught: %s', (_, followed, faults) => {
    expect(streamFaults(followed)).toEqual(faults)
  })
})
