import fc from 'fast-check'
import type { Choices } from './choices.ts'
import { naughtyValue } from './naughty-strings.ts'

type Members = Record<string, unknown>
const isObject = (value: unknown): value is Members =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** The value with one change: a member dropped, replaced, added, wrapped. */
export const mutateValue = (value: unknown, choices: Choices): unknown => {
  if (!isObject(value) || choices.chance(0.05)) return choices.draw(naughtyValue)
  const names = Object.keys(value)
  const name = names.length > 0 ? choices.pick(names) : 'x'
  const { [name]: old, ...rest } = value
  switch (choices.below(8)) {
    case 0:
      return rest
    case 1:
    case 2:
    case 3:
      return { ...value, [name]: choices.draw(naughtyValue) }
    case 4:
      return { ...value, [name]: [old] }
    case 5:
      return { ...value, [name]: isObject(old) ? mutateValue(old, choices) : { value: old } }
    case 6:
      return { ...value, [`x${choices.below(9)}`]: choices.draw(naughtyValue) }
    default:
      return [value]
  }
}

const nest = (open: string, close: string) => (text: string) => open.repeat(3_000) + text + close.repeat(3_000)
const truncate = fc.nat(1_000)

/** Changes of the text of a JSON object that JSON.stringify would not make. */
const textMutations: readonly ((text: string, choices: Choices) => string | Buffer)[] = [
  text => text.slice(0, -1),
  (text, choices) => text.slice(0, choices.draw(truncate) % (text.length + 1)),
  text => `${text}${text}`,
  text => `\ufeff${text}`,
  text => text.replaceAll('"', "'"),
  text => `${text.slice(0, -1)},}`,
  text => `${text.slice(0, -1)},"__proto__":{"available":true,"subdomain":"polluted"}}`,
  text => `${text.slice(0, -1)},"constructor":{"prototype":{"polluted":1}}}`,
  // A duplicate name: JSON.parse takes the last one, ECMA-404 leaves it open.
  text => `${text.slice(0, -1)},${text.slice(1)}`,
  text => text.replace(/"([a-z])/i, (_, letter: string) => `"\\u00${letter.charCodeAt(0).toString(16)}`),
  text => `${text.slice(0, -1)},"n":1e999999}`,
  text => `${text.slice(0, -1)},"n":-0,"m":${'9'.repeat(400)}}`,
  text => `${text.slice(0, -1)},"s":"\\ud800"}`,
  text => `${text.slice(0, -1)},"s":"\\u0000"}`,
  nest('[', ']'),
  nest('{"a":', '}'),
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

/** The bytes of a body: unchanged, with a changed value, or with a changed text. */
export const encodeBody = (value: unknown, mutation: 'none' | 'value' | 'text', choices: Choices): Buffer => {
  const text = JSON.stringify(mutation === 'value' ? mutateValue(value, choices) : value) ?? ''
  const changed = mutation === 'text' ? choices.pick(textMutations)(text, choices) : text
  return typeof changed === 'string' ? Buffer.from(changed) : changed
}
