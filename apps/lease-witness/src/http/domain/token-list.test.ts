import { expect, test } from 'vitest'
import { parseTokenList } from './token-list.ts'

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
])('BEARER_TOKENS_CSV=%j', (csv, tokens) => {
  expect(parseTokenList(csv)).toEqual(tokens)
})
