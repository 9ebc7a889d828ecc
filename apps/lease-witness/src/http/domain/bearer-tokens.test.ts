import { describe, expect, test } from 'vitest'
import { bearerToken, tokensOf } from './bearer-tokens.ts'

describe('the allow-list', () => {
  test.each<readonly [csv: string | undefined, tokens: string[]]>([
    [undefined, []],
    ['', []],
    [' ', []],
    [',', []],
    [' , ,, ', []],
    ['a', ['a']],
    [' a ', ['a']],
    ['a,b', ['a', 'b']],
    ['a, b ,\n\tc', ['a', 'b', 'c']],
    [',a,,b,', ['a', 'b']],
    ['a b', ['a b']],
    ['a=,b==', ['a=', 'b==']],
  ])('%j', (csv, tokens) => {
    expect(tokensOf(csv)).toEqual(tokens)
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
    expect(bearerToken(authorization)).toBe(token)
  })
})
