import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { copyKey, legacyKeys, parseLegacyKey } from './keys.ts'

describe('keys in Workers KV', () => {
  test('the key of a copy contains the decoded slot', () => {
    expect(copyKey('ns/name')).toBe('lease:ns/name')
  })

  test.each<readonly [rule: string, encoded: string, slot: string, keys: string[]]>([
    ['a plain name has no legacy key', 'name', 'name', []],
    ['a slash, plain', 'ns/name', 'ns/name', ['lease:ns%2Fname', 'lease:ns%2fname']],
    ['a slash, encoded', 'ns%2Fname', 'ns/name', ['lease:ns%2Fname', 'lease:ns%2fname']],
    ['a slash, encoded in lower case', 'ns%2fname', 'ns/name', ['lease:ns%2Fname', 'lease:ns%2fname']],
    ['only the encoding of the request', 'n%61me', 'name', ['lease:n%61me']],
    [
      'a slash and a letter outside ASCII: encoded as a whole or by segment, in both cases',
      'x/%C3%A4',
      'x/ä',
      ['lease:x%2F%C3%A4', 'lease:x%2f%c3%a4', 'lease:x/%C3%A4', 'lease:x/%c3%a4'],
    ],
    ['a percent sign', '%25', '%', ['lease:%25']],
  ])('legacy keys: %s', (_, encoded, slot, keys) => {
    expect(legacyKeys({ slot, encoded }).toSorted()).toEqual(keys.toSorted())
  })

  test('no legacy key exceeds the maximum length of a key', () => {
    const slot = '/'.repeat(506)
    expect(legacyKeys({ slot, encoded: slot })).toEqual([])
    const fits = '/'.repeat(168)
    expect(legacyKeys({ slot: fits, encoded: fits }).map(key => key.length)).toEqual([510, 510])
    const edge = `xx${fits}`
    expect(legacyKeys({ slot: edge, encoded: edge }).map(key => key.length)).toEqual([512, 512])
    const over = `xxx${fits}`
    expect(legacyKeys({ slot: over, encoded: over })).toEqual([])
  })

  test.each([
    ['lease:ns%2Fname', 'ns/name'],
    ['lease:ns/name', 'ns/name'],
    ['lease:%', undefined],
    ['lease:', undefined],
  ])('the legacy key %s stands for the slot %s', (key, slot) => {
    expect(parseLegacyKey(key)).toBe(slot)
  })

  test('a legacy key of a slot stands for that slot', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', minLength: 1, maxLength: 20 }), slot => {
        for (const key of legacyKeys({ slot, encoded: encodeURIComponent(slot) }))
          expect(parseLegacyKey(key)).toBe(slot)
      }),
    )
  })
})
