import { expect, test } from 'vitest'
import { toVisibleText } from './visible-text.ts'

test.each([
  ['plain <b>markup</b> & text: ü 漢', 'plain <b>markup</b> & text: ü 漢'],
  ['\u001b[31mred\u001b[0m', '<ESC>[31mred<ESC>[0m'],
  ['\u001b]0;title\u0007', '<ESC>]0;title<BEL>'],
  ['a\u0000\t\r\n\u007f', 'a<NUL><TAB><CR><LF><U+007F>'],
  ['\u009b31m', '<U+009B>31m'],
  ['safe\u202eexe.txt', 'safe<U+202E>exe.txt'],
  ['zero\u200bwidth\ufeff', 'zero<U+200B>width<U+FEFF>'],
])('%j', (text, visible) => expect(toVisibleText(text)).toBe(visible))
