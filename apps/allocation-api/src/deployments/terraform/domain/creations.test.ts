import { describe, expect, test } from 'vitest'
import { Creations, findUnsaved } from './creations.ts'
import type { CreationEvent } from './output.ts'

const saved = (address: string, id: string, isDeposed = false) => ({ address, attributes: { id }, isDeposed })
const started = (address: string): CreationEvent => ({ kind: 'started', address })
const complete = (address: string): CreationEvent => ({ kind: 'complete', address, type: 'm', id: `${address}-1` })
const failed = (address: string): CreationEvent => ({ kind: 'failed', address })
const lost: CreationEvent = { kind: 'provider-lost' }

describe('what may exist without being in the state', () => {
  test.each<readonly [string, readonly CreationEvent[], boolean, ReturnType<typeof saved>[], readonly string[]]>([
    ['nothing was created', [], true, [], []],
    ['it is complete', [started('a'), complete('a')], false, [], []],
    ['it failed', [started('a'), failed('a')], false, [], []],
    ['it failed because its provider ended', [started('a'), failed('a'), lost], false, [], ['a']],
    ['it has no end', [started('a'), started('b'), complete('b')], false, [], ['a']],
    ['Terraform was killed during it', [started('a')], true, [], ['a']],
    ['Terraform was killed before a complete one was saved', [started('a'), complete('a')], true, [], ['a']],
    ['Terraform was killed after it was saved', [started('a')], true, [saved('a', 'a-1')], []],
    ['the state has only the one that it replaces', [started('old')], true, [saved('old', 'before')], ['old']],
    ['the state has the replacement', [started('old')], true, [saved('old', 'after')], []],
    ['the state has only the deposed one', [started('a')], true, [saved('a', 'a-0', true)], ['a']],
  ])('%s', (_, events, wasKilled, state, expected) => {
    const creations = new Creations([saved('old', 'before'), saved('deposed', 'x', true)])
    for (const event of events) creations.add(event)
    const addresses = findUnsaved(creations.findDoubtful(wasKilled), state).map(({ address }) => address)
    expect(addresses).toEqual(expected)
  })
})
