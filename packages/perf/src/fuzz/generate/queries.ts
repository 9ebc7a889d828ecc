import { nastyText } from './naughty-strings.ts'
import type { Random } from './random.ts'

/** As encodeURIComponent, and of lone surrogates the bytes that WTF-8 would have. */
export const encoded = (text: string): string =>
  text.isWellFormed()
    ? encodeURIComponent(text)
    : [...text].map(letter => (letter.isWellFormed() ? encodeURIComponent(letter) : '%ed%a0%80')).join('')

type Bend = (name: string, value: string, random: Random) => string

const bends: readonly Bend[] = [
  (name, value) => `${name}=${value}&${name}=${value}`,
  (name, value) => `${name}=&${name}=${value}`,
  name => `${name}`,
  name => `${name}=`,
  (name, value) => `=${value}&${name}=${value}`,
  (name, value) => `&&&${name}=${value}&&`,
  (name, value) => `${name}=${value}?${name}=${value}`,
  (name, value) => `${name}[]=${value}`,
  (name, value) => `${name}[a]=${value}`,
  (name, value) => `${name.toUpperCase()}=${value}`,
  (name, value) => `%${name.charCodeAt(0).toString(16)}${name.slice(1)}=${value}`,
  (name, value) => `${name}=+${value}+`,
  (name, value) => `${name}=%20${value}%20`,
  (name, value) => `${name}=${value}%`,
  (name, value) => `${name}=${value}%zz`,
  name => `${name}=%ff%fe`,
  name => `${name}=%00`,
  name => `${name}=%ed%a0%80`,
  name => `${name}=\u00ff\u00fe`,
  (name, value) => `${name};${name}=${value}`,
  name => `${name}=${'a'.repeat(8_000)}`,
  (name, value) => `${`${name}=${value}&`.repeat(200)}`,
  (name, value) => `__proto__[x]=1&constructor=2&${name}=${value}`,
  (name, _, random) => `${name}=${encoded(nastyText(random)).slice(0, 8_000)}`,
]

/** A query that says something about `name`, in one of the ways that parsers differ about. */
export const bentQuery = (name: string, value: string, random: Random): string =>
  random.pick(bends)(name, encoded(value), random)
