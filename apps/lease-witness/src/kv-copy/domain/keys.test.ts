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

  /** The slot of the table below, as clients of other languages encode it. Computed by those languages. */
  const slot = "région:a@b/c&d=e+f$g,h;i~j!k*l'm(n)o p[q]|r^s"
  test.each<readonly [client: string, encoded: string]>([
    ['encodeURIComponent', encodeURIComponent(slot)],
    ['encodeURI', encodeURI(slot).replaceAll('^', '%5E').replaceAll('|', '%7C')],
    ['new URL()', new URL(`http://witness.test/${slot}`).pathname.slice(1)],
    ['Go url.PathEscape', 'r%C3%A9gion:a@b%2Fc&d=e+f$g%2Ch%3Bi~j%21k%2Al%27m%28n%29o%20p%5Bq%5D%7Cr%5Es'],
    ['Go url.URL', 'r%C3%A9gion:a@b/c&d=e+f$g,h;i~j%21k%2Al%27m%28n%29o%20p%5Bq%5D%7Cr%5Es'],
    [
      "Python quote(safe='')",
      'r%C3%A9gion%3Aa%40b%2Fc%26d%3De%2Bf%24g%2Ch%3Bi~j%21k%2Al%27m%28n%29o%20p%5Bq%5D%7Cr%5Es',
    ],
    ['Python quote', 'r%C3%A9gion%3Aa%40b/c%26d%3De%2Bf%24g%2Ch%3Bi~j%21k%2Al%27m%28n%29o%20p%5Bq%5D%7Cr%5Es'],
    ['Python requests', "r%C3%A9gion:a@b/c&d=e+f$g,h;i~j!k*l'm(n)o%20p[q]%7Cr%5Es"],
  ])('%s of a slot with many reserved characters is one of its legacy keys, also in lower case', (_, encoded) => {
    const keys = legacyKeys({ slot, encoded: slot })
    expect(keys).toContain(`lease:${encoded}`)
    expect(keys).toContain(`lease:${encoded.replace(/%../g, hex => hex.toLowerCase())}`)
  })

  test('up to four different reserved characters are found in every combination', () => {
    const keys = legacyKeys({ slot: 'a:b@c/d', encoded: 'a:b@c/d' })
    for (const name of ['a%3Ab@c/d', 'a:b%40c/d', 'a:b@c%2Fd', 'a%3ab%40c/d', 'a%3Ab%40c%2Fd']) {
      expect(keys).toContain(`lease:${name}`)
    }
  })

  test('the number of legacy keys is limited', () => {
    expect(legacyKeys({ slot, encoded: slot }).length).toBeLessThanOrEqual(100)
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
