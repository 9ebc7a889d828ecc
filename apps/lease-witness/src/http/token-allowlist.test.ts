import { describe, expect, test } from 'vitest'
import { allowList } from './token-allowlist.ts'

const long = 'x'.repeat(10_000)

describe('an allow-list lets in', () => {
  test.each<readonly [csv: string | undefined, token: string, isIn: boolean]>([
    [undefined, '', false],
    ['', '', false],
    [',', '', false],
    ['', 'a', false],
    ['a', 'a', true],
    ['a', 'A', false],
    ['a', '', false],
    ['a', 'b', false],
    ['a', 'aa', false],
    ['a', 'a ', false],
    ['a', 'a\u0000', false],
    ['aa', 'a', false],
    ['aa', 'a\u0000', false],
    ['aa', 'aaa', false],
    ['a,bb', 'a', true],
    ['a,bb', 'bb', true],
    ['a,bb', 'b', false],
    ['a,bb', 'a\u0000', false],
    ['a,bb', 'bba', false],
    ['a,bb', 'bbaa', false],
    ['a,bb', 'a,bb', false],
    [' a , bb ', 'bb', true],
    ['a,a', 'a', true],
    // Of more bytes than characters: what does not fit is not taken for its beginning.
    ['aaa', 'aaaé', false],
    ['aaa', 'aaa€', false],
    ['aaa', 'aaa😀', false],
    ['aaa', 'aaaÿ', false],
    ['é', 'é', true],
    ['é', 'Ã©', false],
    ['é', 'é€', false],
    [long, long, true],
    [long, `${long}x`, false],
    [`${long}x`, long, false],
    ['a', long, false],
  ])('of %.20j: %.20j %j', (csv, token, isIn) => {
    expect(allowList(csv)(token)).toBe(isIn)
  })
})
