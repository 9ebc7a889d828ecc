import { decodeSlot, type SlotAddress } from '../../lease/request.ts'

export const KEY_PREFIX = 'lease:'
/** Limit of Workers KV. */
const MAX_KEY_BYTES = 512

/** The key of a slot's copy in Workers KV. */
export const copyKey = (slot: string): string => `${KEY_PREFIX}${slot}`

/**
 * The characters beside letters, digits, `-`, `.` and `_` that a client leaves as they are in a path. Each client escapes
 * all others.
 */
const UNESCAPED_BY_CLIENT = [
  // The unreserved characters of RFC 3986: Rust, C#, PHP, and Python with safe=''.
  '~',
  // Java's URLEncoder.
  '*',
  // JavaScript's encodeURIComponent.
  "~!*'()",
  // Go's url.PathEscape.
  '~$&+=:@',
  // Go's url.URL.
  '~$&+,;=:@',
  // RFC 3986 `pchar`: JavaScript's encodeURI, Java's and Guava's path escapers.
  "~!$&'()*+,;=:@",
  // Python's requests.
  "~!$&'()*+,;=:@[]",
  // The WHATWG URL Standard: fetch with an unescaped name, Rust's url.
  "~!$&'()*+,;=:@[]|",
  "~!$&'()*+,;=:@[]|^",
]

/** Up to this many different characters, all combinations are tried: at most 32 keys. */
const MAX_COMBINED = 4
const OPTIONAL_ESCAPES = /[~!$&'()*+,;=:@[\]|^/]/g

const utf8 = new TextEncoder()

const escapeCharacter = (character: string): string =>
  [...utf8.encode(character)].map(byte => `%${byte.toString(16).toUpperCase().padStart(2, '0')}`).join('')

const escapeExcept = (slot: string, unescaped: string): string =>
  [...slot].map(c => (/^[A-Za-z0-9._-]$/.test(c) || unescaped.includes(c) ? c : escapeCharacter(c))).join('')

const withLowerCaseEscapes = (encoded: string): string => encoded.replace(/%[0-9A-F]{2}/g, hex => hex.toLowerCase())

const combinations = (characters: readonly string[]): string[] => {
  let sets = ['']
  for (const character of characters) sets = sets.flatMap(set => [set, set + character])
  return sets
}

/**
 * The keys under which a deployment that did not decode paths may have stored the slot: one per way in which clients encode
 * it.
 */
export const legacyKeys = ({ slot, encoded }: SlotAddress): string[] => {
  const optional = [...new Set(slot.match(OPTIONAL_ESCAPES))]
  const unescaped = [
    ...UNESCAPED_BY_CLIENT.flatMap(characters => [characters, `${characters}/`]),
    ...(optional.length <= MAX_COMBINED ? combinations(optional) : []),
  ]
  const names = new Set([encoded])
  for (const characters of unescaped) {
    const name = escapeExcept(slot, characters)
    names.add(name).add(withLowerCaseEscapes(name))
  }
  names.delete(slot)
  // Percent-encoded text is ASCII: one byte per character.
  return [...names].map(copyKey).filter(key => key.length <= MAX_KEY_BYTES)
}

/** Every key under which the slot can be looked up, that of its copy first. */
export const lookupKeys = (address: SlotAddress): string[] => [copyKey(address.slot), ...legacyKeys(address)]

/** The slot that a legacy key stands for. */
export const parseLegacyKey = (key: string): string | undefined => decodeSlot(key.slice(KEY_PREFIX.length))
