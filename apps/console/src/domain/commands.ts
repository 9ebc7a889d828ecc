/** A page or an action of the palette. */
export interface Command {
  readonly id: string
  readonly label: string
  /** The kind of the target, or its keys. */
  readonly hint: string
  readonly run: () => void
}

/** Each word of the text begins a word of the label. Commands whose label begins with the text come first. */
export const filterCommands = (commands: readonly Command[], text: string): readonly Command[] => {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean)
  const toWords = (label: string) => label.toLowerCase().split(/[^\p{L}\p{N}]+/u)
  const matching = commands.filter(({ label }) => {
    const labelWords = toWords(label)
    return words.every(word => labelWords.some(labelWord => labelWord.startsWith(word)))
  })
  const startsWithText = ({ label }: Command) => label.toLowerCase().startsWith(text.trim().toLowerCase())
  return [...matching.filter(startsWithText), ...matching.filter(command => !startsWithText(command))]
}

export type Shortcut = 'palette' | 'search' | 'help' | 'overview' | 'names' | 'zones' | 'deployments' | 'leases' | 'new'

/** `g` and then a letter opens a page. */
const PAGES: Readonly<Record<string, Shortcut>> = {
  o: 'overview',
  n: 'names',
  z: 'zones',
  d: 'deployments',
  l: 'leases',
}
const SINGLE: Readonly<Record<string, Shortcut>> = { '/': 'search', '?': 'help', c: 'new' }

export interface KeyPress {
  readonly key: string
  readonly hasModifier: boolean
  /** Control, or Command on a Mac. */
  readonly hasControl: boolean
  /** Whether the key writes text where the focus is. */
  readonly isTyping: boolean
}

/** The shortcut of a key press, and whether the next one is the second of two. */
export const readShortcut = (
  isSecond: boolean,
  { key, hasModifier, hasControl, isTyping }: KeyPress,
): { readonly shortcut: Shortcut | null; readonly isNextSecond: boolean } => {
  const none = { shortcut: null, isNextSecond: false }
  if (hasControl && key.toLowerCase() === 'k') return { shortcut: 'palette', isNextSecond: false }
  if (isTyping || hasModifier || hasControl) return none
  if (isSecond) return { shortcut: PAGES[key] ?? null, isNextSecond: false }
  if (key === 'g') return { shortcut: null, isNextSecond: true }
  return { shortcut: SINGLE[key] ?? null, isNextSecond: false }
}

/** The shortcuts for the help. */
export const SHORTCUTS: readonly (readonly [keys: string, meaning: string])[] = [
  ['Ctrl K', 'search, and run a command'],
  ['/', 'the search of the page'],
  ['g o', 'overview'],
  ['g n', 'names'],
  ['g z', 'zones'],
  ['g d', 'deployments'],
  ['g l', 'leases'],
  ['c', 'create a deployment'],
  ['?', 'this help'],
  ['Esc', 'close a dialog'],
]
