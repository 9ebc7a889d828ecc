/**
 * Control characters, and characters that change the direction of text (Unicode UAX 9) or have no width. A terminal would
 * obey an escape sequence; a page would show text in another order than it is stored in.
 */
const INVISIBLE = /[\p{Cc}\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/gu

/** The abbreviations of the C0 control characters in Unicode, in their order. Few fonts have a legible symbol for them. */
const C0_NAMES =
  'NUL SOH STX ETX EOT ENQ ACK BEL BS TAB LF VT FF CR SO SI DLE DC1 DC2 DC3 DC4 NAK SYN ETB CAN EM SUB ESC FS GS RS US'.split(
    ' ',
  )

const toName = (character: string): string => {
  const code = character.codePointAt(0) ?? 0
  return `<${C0_NAMES[code] ?? `U+${code.toString(16).toUpperCase().padStart(4, '0')}`}>`
}

/** Makes every character of a text visible, and none of them effective: an escape character becomes `<ESC>`. */
export const toVisibleText = (text: string): string => text.replace(INVISIBLE, toName)
