import { expect, test } from 'vitest'
import { toVisibleText } from './visible-text.ts'

test.each([
  ['plain <b>markup</b> & text: ü 漢', 'plain <b>markup</b> & text: ü 漢'],
  ['\u001b[31mred\u001b[0m', '␛[31mred␛[0m'],
  ['\u001b]0;title\u0007', '␛]0;title␇'],
  ['a\u0000\t\r\n\u007f', 'a␀␉␍␊␡'],
  ['\u009b31m', '<U+009B>31m'],
  ['safe\u202eexe.txt', 'safe<U+202E>exe.txt'],
  ['zero\u200bwidth\ufeff', 'zero<U+200B>width<U+FEFF>'],
])('%j', (text, visible) => expect(toVisibleText(text)).toBe(visible))
