/** RFC 1035 section 3.3: a character-string has 255 octets at most. */
const MAX_STRING_LENGTH = 255

/** A character-string in presentation format (RFC 1035 section 5.1): what is not printable ASCII is written as `\DDD`. */
export const quoteString = (octets: Buffer): string => {
  const text = Array.from(octets, octet => {
    if (octet < 0x20 || octet >= 0x7f) return `\\${String(octet).padStart(3, '0')}`
    const character = String.fromCharCode(octet)
    return character === '"' || character === '\\' ? `\\${character}` : character
  })
  return `"${text.join('')}"`
}

/** Splits octets into as many character-strings as necessary. No octets give an empty one. */
export const quoteStrings = (octets: Buffer): string =>
  Array.from({ length: Math.max(1, Math.ceil(octets.length / MAX_STRING_LENGTH)) }, (_, i) =>
    quoteString(octets.subarray(i * MAX_STRING_LENGTH, (i + 1) * MAX_STRING_LENGTH)),
  ).join(' ')
