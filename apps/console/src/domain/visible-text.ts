/**
 * Control characters, and characters that change the direction of text (Unicode UAX 9) or have no width. A terminal would
 * obey an escape sequence; a page would show text in another order than it is stored in.
 */
const INVISIBLE = /[\p{Cc}\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/gu

/** The block "Control Pictures" has a symbol for each C0 control character, at the same offset. */
const CONTROL_PICTURES = 0x2400
const DELETE_SYMBOL = '\u2421'

const toSymbol = (character: string): string => {
  const code = character.codePointAt(0) ?? 0
  if (code < 0x20) return String.fromCodePoint(CONTROL_PICTURES + code)
  if (code === 0x7f) return DELETE_SYMBOL
  return `<U+${code.toString(16).toUpperCase().padStart(4, '0')}>`
}

/** Makes every character of a text visible, and none of them effective: escape sequences become symbols. */
export const toVisibleText = (text: string): string => text.replace(INVISIBLE, toSymbol)
