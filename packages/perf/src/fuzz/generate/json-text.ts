import { nastyValue } from './naughty-strings.ts'
import type { Random } from './random.ts'

type Members = Record<string, unknown>
const isObject = (value: unknown): value is Members =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** The value with one thing about it changed: a member dropped, replaced, added, wrapped. */
export const mutated = (value: unknown, random: Random): unknown => {
  if (!isObject(value) || random.chance(0.05)) return nastyValue(random)
  const names = Object.keys(value)
  const name = names.length > 0 ? random.pick(names) : 'x'
  const { [name]: old, ...rest } = value
  switch (random.below(8)) {
    case 0:
      return rest
    case 1:
    case 2:
    case 3:
      return { ...value, [name]: nastyValue(random) }
    case 4:
      return { ...value, [name]: [old] }
    case 5:
      return { ...value, [name]: isObject(old) ? mutated(old, random) : { value: old } }
    case 6:
      return { ...value, [`x${random.below(9)}`]: nastyValue(random) }
    default:
      return [value]
  }
}

const deep = (open: string, close: string) => (text: string) => open.repeat(3_000) + text + close.repeat(3_000)

/** Ways to break or bend the text of an object that JSON.stringify would not come up with. */
const bends: readonly ((text: string, random: Random) => string | Buffer)[] = [
  text => text.slice(0, -1),
  (text, random) => text.slice(0, random.below(text.length + 1)),
  text => `${text}${text}`,
  text => `\ufeff${text}`,
  text => text.replaceAll('"', "'"),
  text => `${text.slice(0, -1)},}`,
  text => `${text.slice(0, -1)},"__proto__":{"available":true,"subdomain":"polluted"}}`,
  text => `${text.slice(0, -1)},"constructor":{"prototype":{"polluted":1}}}`,
  // The same name twice: the last one counts (ECMA-404 leaves it open, JSON.parse does not).
  text => `${text.slice(0, -1)},${text.slice(1)}`,
  text => text.replace(/"([a-z])/i, (_, letter: string) => `"\\u00${letter.charCodeAt(0).toString(16)}`),
  text => `${text.slice(0, -1)},"n":1e999999}`,
  text => `${text.slice(0, -1)},"n":-0,"m":${'9'.repeat(400)}}`,
  text => `${text.slice(0, -1)},"s":"\\ud800"}`,
  text => `${text.slice(0, -1)},"s":"\\u0000"}`,
  deep('[', ']'),
  deep('{"a":', '}'),
  text => `/* comment */${text}`,
  text => `${' '.repeat(2_000)}${text}\n\n`,
  text => text.padEnd(64 * 1_024, ' '),
  text => text.padEnd(64 * 1_024 + 1, ' '),
  () => '',
  () => 'null',
  () => '[]',
  () => 'undefined',
  () => '\u0000',
  text => Buffer.concat([Buffer.from(text.slice(0, -1)), Buffer.from([0xff, 0xfe, 0x7d])]),
  text => Buffer.from(text, 'utf16le'),
]

/** The bytes of a body: as it is, with one value changed, or with its text bent. */
export const bodyBytes = (value: unknown, mutation: 'none' | 'value' | 'text', random: Random): Buffer => {
  const chosen = mutation === 'value' ? mutated(value, random) : value
  const text = JSON.stringify(chosen) ?? ''
  const bent = mutation === 'text' ? random.pick(bends)(text, random) : text
  return typeof bent === 'string' ? Buffer.from(bent) : bent
}
