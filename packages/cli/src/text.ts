import stringWidth from 'string-width'

/** C0, DEL and C1 controls, and the characters that change the direction of text (Unicode UAX 9). */
const CONTROL = /[\p{Cc}\u202a-\u202e\u2066-\u2069]/gu

const toEscape = (character: string): string => {
  const code = character.charCodeAt(0)
  return code < 0x100 ? `\\x${code.toString(16).padStart(2, '0')}` : `\\u${code.toString(16).padStart(4, '0')}`
}

/** Text of a service that a terminal does not interpret: one line, with other control characters than breaks as escapes. */
export const toPlainLine = (text: string): string =>
  text
    .trimEnd()
    .replace(/[\r\n]+/g, ' ')
    .replace(CONTROL, toEscape)

/** The same for text of several lines. */
export const toPlainText = (text: string): string =>
  text
    .split(/\r?\n/)
    .map(line => line.split('\t').map(toPlainLine).join('\t'))
    .join('\n')

/** JSON without characters that a terminal interprets; it has the same meaning. */
export const toJson = (value: unknown, indent?: number): string =>
  JSON.stringify(value, null, indent).replace(
    /[\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g,
    character => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )

export const toCount = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? '' : 's'}`

/** Columns of a terminal. */
export const toWidth = (text: string): number => stringWidth(text)

const graphemes = new Intl.Segmenter('en', { granularity: 'grapheme' })

/** Shortens text to a number of columns, with an ellipsis as the last one. */
export const truncate = (text: string, width: number): string => {
  if (toWidth(text) <= width) return text
  let kept = ''
  let used = 0
  for (const { segment } of graphemes.segment(text)) {
    const columns = toWidth(segment)
    if (used + columns > width - 1) break
    kept += segment
    used += columns
  }
  return `${kept}…`
}

export const padEnd = (text: string, width: number): string => text + ' '.repeat(Math.max(0, width - toWidth(text)))

export type Colour = 'green' | 'yellow' | 'red' | 'dim' | 'bold'

const CODES: Readonly<Record<Colour, readonly [number, number]>> = {
  green: [32, 39],
  yellow: [33, 39],
  red: [31, 39],
  dim: [2, 22],
  bold: [1, 22],
}

export type Paint = (text: string, colour: Colour | undefined) => string

/** Without colour, text stays as it is. */
export const createPaint =
  (isColoured: boolean): Paint =>
  (text, colour) =>
    isColoured && colour !== undefined && text !== ''
      ? `\u001b[${CODES[colour][0]}m${text}\u001b[${CODES[colour][1]}m`
      : text

export interface ColourOptions {
  readonly isTerminal: boolean
  readonly env: NodeJS.ProcessEnv
}

/** Colour is for terminals only, and https://no-color.org turns it off. */
export const acceptsColour = ({ isTerminal, env }: ColourOptions): boolean =>
  isTerminal && !env.NO_COLOR && env.TERM !== 'dumb'

/** The colours of states, of both services. */
const STATE_COLOURS: Readonly<Record<string, Colour>> = {
  active: 'green',
  published: 'green',
  ready: 'green',
  held: 'green',
  good: 'green',
  yes: 'green',
  reserved: 'yellow',
  pending: 'yellow',
  provisioning: 'yellow',
  destroying: 'yellow',
  vacant: 'yellow',
  'not checked': 'yellow',
  warn: 'yellow',
  failing: 'red',
  failed: 'red',
  bad: 'red',
  no: 'red',
  error: 'red',
  destroyed: 'dim',
}

export const toStateColour = (state: string): Colour | undefined => STATE_COLOURS[state]
