import { describe, expect, test } from 'vitest'
import { Creations, findUnsaved } from './creations.ts'
import type { CreationEvent } from './output.ts'

const saved = (address: string, id: string, isDeposed = false) => ({ address, attributes: { id }, isDeposed })
const started = (address: string): CreationEvent => ({ kind: 'started', address })
const complete = (address: string): CreationEvent => ({ kind: 'complete', address, type: 'm', id: `${address}-1` })
const failed = (address: string): CreationEvent => ({ kind: 'failed', address })
const lost: CreationEvent = { kind: 'provider-lost' }

describe('what may exist without being in the state', () => {
  test.each<
    readonly [string, readonly CreationEvent[], exitCode: number | null, ReturnType<typeof saved>[], readonly string[]]
  >([
    ['nothing was created', [], null, [], []],
    ['it is complete, and the state has it', [started('a'), complete('a')], 0, [saved('a', 'a-1')], []],
    ['it is complete, and the state has it not', [started('a'), complete('a')], 0, [], ['a']],
    [
      'it has the identifier of the one that it replaces',
      [started('old'), complete('old')],
      0,
      [saved('old', 'before')],
      [],
    ],
    ['it is complete, and the command says that it failed', [started('a'), complete('a')], 1, [], []],
    ['it failed', [started('a'), failed('a')], 1, [], []],
    ['it failed because its provider ended', [started('a'), failed('a'), lost], 1, [], ['a']],
    ['it has no end', [started('a'), started('b'), complete('b')], 1, [], ['a']],
    ['Terraform was killed during it', [started('a')], null, [], ['a']],
    ['Terraform was killed after it failed', [started('a'), failed('a')], null, [], ['a']],
    ['Terraform was killed before a complete one was saved', [started('a'), complete('a')], null, [], ['a']],
    ['Terraform was killed after it was saved', [started('a')], null, [saved('a', 'a-1')], []],
    ['the state has only the one that it replaces', [started('old')], null, [saved('old', 'before')], ['old']],
    ['the state has the replacement', [started('old')], null, [saved('old', 'after')], []],
    ['the state has only the deposed one', [started('a')], null, [saved('a', 'a-0', true)], ['a']],
  ])('%s', (_, events, exitCode, state, expected) => {
    const creations = new Creations([saved('old', 'before'), saved('deposed', 'x', true)])
    for (const event of events) creations.add(event)
    const addresses = findUnsaved(creations.findDoubtful(exitCode, true), state).map(({ address }) => address)
    expect(addresses).toEqual(expected)
  })

  test('a replacement with the identifier of the one before is not there while the state has not changed', () => {
    const creations = new Creations([saved('old', 'before')])
    for (const event of [started('old'), complete('old')]) creations.add(event)
    expect(findUnsaved(creations.findDoubtful(0, false), [saved('old', 'before')])).toHaveLength(1)
  })
})
