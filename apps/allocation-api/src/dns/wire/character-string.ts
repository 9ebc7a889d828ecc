/** RFC 1035 section 3.3: a character-string has 255 octets at most. */
const LONGEST_STRING = 255

/** A character-string in presentation format (RFC 1035 section 5.1): what is not printable ASCII is written as `\DDD`. */
export const quoteString = (octets: Buffer): string => {
  const text = Array.from(octets, octet => {
    if (octet < 0x20 || octet >= 0x7f) return `\\${String(octet).padStart(3, '0')}`
    const character = String.fromCharCode(octet)
    return character === '"' || character === '\\' ? `\\${character}` : character
  })
  return `"${text.join('')}"`
}

/** As many character-strings as it takes; of nothing, an empty one. */
export const quoteStrings = (octets: Buffer): string =>
  Array.from({ length: Math.max(1, Math.ceil(octets.length / LONGEST_STRING)) }, (_, i) =>
    quoteString(octets.subarray(i * LONGEST_STRING, (i + 1) * LONGEST_STRING)),
  ).join(' ')
