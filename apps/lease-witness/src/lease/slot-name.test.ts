import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { copyKey, olderKeys, slotAddress, slotOfOlderKey } from './slot-name.ts'

describe('the slot that a path spells', () => {
  const rows: readonly (readonly [spelling: string, slot: string | undefined])[] = [
    ['ns/name', 'ns/name'],
    ['ns%2Fname', 'ns/name'],
    ['ns%2fname', 'ns/name'],
    ['n%73%2fname', 'ns/name'],
    ['a', 'a'],
    ['/', '/'],
    ['a/', 'a/'],
    ['a//b', 'a//b'],
    ['a+b', 'a+b'],
    ['a%20b', 'a b'],
    ['%20', ' '],
    ['%00', '\0'],
    ['a%0Ab', 'a\nb'],
    ['%C3%A4', 'ä'],
    ['%F0%9F%98%80', '😀'],
    ['%EF%BB%BFa', '\uFEFFa'],
    ['%252F', '%2F'],
    ['%2525', '%25'],
    ['..', '..'],
    ['..%2Fa', '../a'],
    ['a%5Cb', 'a\\b'],
    ['%3F%23', '?#'],
    ['', undefined],
    ['%', undefined],
    ['a%', undefined],
    ['%2', undefined],
    ['%zz', undefined],
    ['%u0041', undefined],
    ['%FF', undefined],
    ['%80', undefined],
    ['%C3', undefined],
    ['%C3%28', undefined],
    ['%C0%AF', undefined],
    ['%E0%80%AF', undefined],
    ['%ED%A0%80', undefined],
    ['%ED%A0%BD%ED%B8%80', undefined],
    ['%F4%90%80%80', undefined],
    ['%F8%88%80%80%80', undefined],
    ['x'.repeat(506), 'x'.repeat(506)],
    ['x'.repeat(507), undefined],
    ['%C3%A4'.repeat(253), 'ä'.repeat(253)],
    [`${'%C3%A4'.repeat(253)}x`, undefined],
    [`${'%F0%9F%98%80'.repeat(126)}xx`, `${'😀'.repeat(126)}xx`],
    [`${'%F0%9F%98%80'.repeat(126)}xxx`, undefined],
    ['%2F'.repeat(506), '/'.repeat(506)],
  ]

  test.each(rows.map(([spelling, slot]) => [spelling.slice(0, 40), spelling, slot] as const))(
    '%s',
    (_, spelling, slot) => {
      expect(slotAddress(spelling)).toEqual(slot === undefined ? undefined : { slot, spelling })
    },
  )

  test('every text that fits has an address, and every spelling of it is the same slot', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', minLength: 1, maxLength: 60 }), text => {
        const encoded = encodeURIComponent(text)
        const smaller = encoded.replace(/%../g, hex => hex.toLowerCase())
        expect(slotAddress(encoded)?.slot).toBe(text)
        expect(slotAddress(smaller)?.slot).toBe(text)
      }),
    )
  })

  test('no path makes it throw, and no slot is empty or longer than 506 bytes', () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom('%', '2', 'F', 'f', 'C', '0', 'a', '/', '.') }), spelling => {
        const slot = slotAddress(spelling)?.slot
        if (slot === undefined) return
        const bytes = new TextEncoder().encode(slot).length
        expect(bytes).toBeGreaterThan(0)
        expect(bytes).toBeLessThanOrEqual(506)
      }),
    )
  })
})

describe('keys in Workers KV', () => {
  test('the copy of a slot is under its decoded name', () => {
    expect(copyKey('ns/name')).toBe('lease:ns/name')
  })

  test.each<readonly [rule: string, spelling: string, slot: string, keys: string[]]>([
    ['a plain name has no other', 'name', 'name', []],
    ['a slash, plain', 'ns/name', 'ns/name', ['lease:ns%2Fname', 'lease:ns%2fname']],
    ['a slash, encoded', 'ns%2Fname', 'ns/name', ['lease:ns%2Fname', 'lease:ns%2fname']],
    ['a slash, encoded in small letters', 'ns%2fname', 'ns/name', ['lease:ns%2Fname', 'lease:ns%2fname']],
    ['a spelling of the request alone', 'n%61me', 'name', ['lease:n%61me']],
    [
      'a slash and a letter outside ASCII: whole or by segment, in either case',
      'x/%C3%A4',
      'x/ä',
      ['lease:x%2F%C3%A4', 'lease:x%2f%c3%a4', 'lease:x/%C3%A4', 'lease:x/%c3%a4'],
    ],
    ['a percent sign', '%25', '%', ['lease:%25']],
  ])('older ones: %s', (_, spelling, slot, keys) => {
    expect(olderKeys({ slot, spelling }).toSorted()).toEqual(keys.toSorted())
  })

  test('no older key is longer than a key can be', () => {
    const slot = '/'.repeat(506)
    expect(olderKeys({ slot, spelling: slot })).toEqual([])
    const fits = '/'.repeat(168)
    expect(olderKeys({ slot: fits, spelling: fits }).map(key => key.length)).toEqual([510, 510])
    const edge = `xx${fits}`
    expect(olderKeys({ slot: edge, spelling: edge }).map(key => key.length)).toEqual([512, 512])
    const over = `xxx${fits}`
    expect(olderKeys({ slot: over, spelling: over })).toEqual([])
  })

  test.each([
    ['lease:ns%2Fname', 'ns/name'],
    ['lease:ns/name', 'ns/name'],
    ['lease:%', undefined],
    ['lease:', undefined],
  ])('%s meant the slot %s', (key, slot) => {
    expect(slotOfOlderKey(key)).toBe(slot)
  })

  test('an older key means the slot whose older key it is', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', minLength: 1, maxLength: 20 }), slot => {
        for (const key of olderKeys({ slot, spelling: encodeURIComponent(slot) }))
          expect(slotOfOlderKey(key)).toBe(slot)
      }),
    )
  })
})
