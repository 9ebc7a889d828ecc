import { describe, expect, test } from 'vitest'
import { createAllowlist, parseBearerToken } from './bearer-auth.ts'

const long = 'x'.repeat(10_000)

describe('an allow-list accepts only its tokens', () => {
  test.each<readonly [csv: string | undefined, token: string, isAllowed: boolean]>([
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
    // More bytes than characters: a truncated token must not match.
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
  ])('list %.20j, token %.20j: %j', (csv, token, isAllowed) => {
    expect(createAllowlist(csv)(token)).toBe(isAllowed)
  })
})

describe('the token of an Authorization header', () => {
  test.each<readonly [authorization: string | undefined, token: string | undefined]>([
    [undefined, undefined],
    ['', undefined],
    ['Bearer a', 'a'],
    ['bearer a', 'a'],
    ['BEARER a', 'a'],
    ['bEaReR a', 'a'],
    ['Bearer   a', 'a'],
    ['Bearer a  ', 'a'],
    ['Bearer a=b/c+d.e-f_g~', 'a=b/c+d.e-f_g~'],
    ['Bearer', undefined],
    ['Bearer ', undefined],
    ['Bearera', undefined],
    ['Bearer\ta', undefined],
    [' Bearer a', undefined],
    ['Bearer a b', undefined],
    ['Bearer a, Bearer b', undefined],
    ['Basic a', undefined],
    ['Token a', undefined],
    ['a', undefined],
    ['X-Bearer a', undefined],
    ['Bearer: a', undefined],
  ])('%j', (authorization, token) => {
    expect(parseBearerToken(authorization)).toBe(token)
  })
})
