import type { Choices } from './choices.ts'
import { naughtyText } from './naughty-strings.ts'

/** Like encodeURIComponent, with the WTF-8 bytes of lone surrogates. */
export const encodeText = (text: string): string =>
  text.isWellFormed()
    ? encodeURIComponent(text)
    : [...text].map(letter => (letter.isWellFormed() ? encodeURIComponent(letter) : '%ed%a0%80')).join('')

type QueryMutation = (name: string, value: string, choices: Choices) => string

const mutations: readonly QueryMutation[] = [
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
  (name, _, choices) => `${name}=${encodeText(choices.draw(naughtyText)).slice(0, 8_000)}`,
]

/** A query with `name`, spelled in a way that parsers treat differently. */
export const mutateQuery = (name: string, value: string, choices: Choices): string =>
  choices.pick(mutations)(name, encodeText(value), choices)
