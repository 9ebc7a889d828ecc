/** A DNS message is malformed (FORMERR). The text does not quote the message. */
export class FormatError extends Error {}

const specials = new Set('.\\"();@$')

/** One octet of a label in presentation format (RFC 1035 section 5.1). */
const escapeOctet = (octet: number): string => {
  const character = String.fromCharCode(octet)
  if (octet <= 0x20 || octet >= 0x7f) return `\\${String(octet).padStart(3, '0')}`
  return specials.has(character) ? `\\${character}` : character
}

/** Decodes `\DDD` (an octet in decimal) and `\X` (the character X). Undefined: an invalid escape, or not ASCII. */
export const unescapeText = (text: string): Buffer | undefined =>
  /^(?:[\x20-\x5b\x5d-\x7e]|\\(?:[01]\d\d|2[0-4]\d|25[0-5]|[\x20-\x2f\x3a-\x7e]))*$/.test(text)
    ? Buffer.from(
        text.replace(/\\(\d{3}|.)/g, (_, code) => (code.length === 3 ? String.fromCharCode(Number(code)) : code)),
        'latin1',
      )
    : undefined

const label = /(?:[^.\\\s]|\\\d{3}|\\\D)+/.source
const labels = new RegExp(label, 'g')
const wholeName = new RegExp(`^(?:${label}\\.)*${label}\\.?$`)

/**
 * A name on the wire, uncompressed and in its original case, with or without a trailing dot.
 * Undefined: not a name (RFC 1035 section 2.3.4: labels of 1 to 63 octets, 255 in all).
 */
export const encodeName = (text: string): Buffer | undefined => {
  if (text === '.') return Buffer.of(0)
  // Longer than the longest name with all octets escaped.
  if (text.length > 1_024 || !wholeName.test(text)) return undefined
  const parts: Buffer[] = []
  for (const part of text.match(labels) ?? []) {
    const octets = unescapeText(part)
    if (!octets || octets.length > 63) return undefined
    parts.push(Buffer.of(octets.length), octets)
  }
  const wire = Buffer.concat([...parts, Buffer.of(0)])
  return wire.length <= 255 ? wire : undefined
}

/** Reads the name at offset `at`, without the trailing dot (the root is empty), and the offset after it. */
export const readName = (message: Buffer, at: number): { name: string; next: number; isCompressed: boolean } => {
  const labelTexts: string[] = []
  let next: number | undefined
  let octets = 1
  for (let here = at; ; ) {
    const length = message[here]
    if (length === undefined) throw new FormatError('a name runs past the end')
    if (length >= 0xc0) {
      const low = message[here + 1]
      // A pointer must point backwards (RFC 1035 section 4.1.4), so pointers cannot form a loop.
      const target = low === undefined ? here : ((length & 0x3f) << 8) | low
      if (target >= here) throw new FormatError('a compression pointer in a name does not point backwards')
      next ??= here + 2
      here = target
    } else if (length > 63) {
      throw new FormatError('a name has a label of an unknown type')
    } else if (length === 0) {
      return { name: labelTexts.join('.'), next: next ?? here + 1, isCompressed: next !== undefined }
    } else {
      octets += length + 1
      if (octets > 255 || here + 1 + length > message.length) throw new FormatError('a name is too long')
      labelTexts.push(Array.from(message.subarray(here + 1, here + 1 + length), escapeOctet).join(''))
      here += 1 + length
    }
  }
}
