import { isOneLine, TRIMMED_LINE } from './common.ts'
import { withWhiteSpace } from './fields.ts'

/** Room for an RSA key of 16384 bits and a long comment. */
const MAX_KEY_BYTES = 8_192
/** Smaller RSA keys are not secure (NIST SP 800-131A). */
const MIN_RSA_BITS = 2_048
/** OpenSSL accepts no larger RSA key. */
const MAX_RSA_BITS = 16_384

type Fields = readonly Uint8Array[]

/**
 * Splits the wire form of a public key into fields: a length of four octets, then the octets (RFC 4251 section 5,
 * `string` and `mpint` alike). Null if the octets do not end with a field.
 */
const parseFields = (octets: Uint8Array): Fields | null => {
  const view = new DataView(octets.buffer, octets.byteOffset, octets.byteLength)
  const fields: Uint8Array[] = []
  for (let at = 0; at < octets.length; ) {
    if (octets.length - at < 4) return null
    const end = at + 4 + view.getUint32(at)
    if (end > octets.length) return null
    fields.push(octets.subarray(at + 4, end))
    at = end
  }
  return fields
}

/** Bits of a positive `mpint` in its shortest form; 0 for other octets. */
const countBits = (mpint: Uint8Array): number => {
  const [first = 0, second = 0] = mpint
  const isNegative = first >= 0x80
  const isPadded = first === 0 && second < 0x80
  if (isNegative || isPadded) return 0
  const length = first === 0 ? mpint.length - 1 : mpint.length
  return length * 8 - (Math.clz32(first === 0 ? second : first) - 24)
}

const isOdd = (mpint: Uint8Array): boolean => ((mpint.at(-1) ?? 0) & 1) === 1

/** An uncompressed point (SEC 1 section 2.3.3), the only form that OpenSSH accepts. */
const isPoint = (octets: Uint8Array, length: number): boolean => octets.length === length && octets[0] === 4

const toText = (octets: Uint8Array | undefined): string => String.fromCharCode(...(octets ?? []))

type WireFormatError = 'damaged' | { readonly rsaBits: number }
/** Validates the fields after the type. Null: valid. */
type FieldRule = (fields: Fields) => WireFormatError | null

const damagedUnless = (isValid: boolean) => (isValid ? null : 'damaged')
const hasFields = (fields: Fields, count: number): boolean =>
  fields.length === count && fields.every(field => field.length > 0)

const ecdsa =
  (curve: string, pointLength: number, fieldCount: number): FieldRule =>
  fields => {
    const [name, point] = fields
    const hasPoint = hasFields(fields, fieldCount) && point !== undefined && isPoint(point, pointLength)
    return damagedUnless(hasPoint && toText(name) === curve)
  }

const ed25519 =
  (fieldCount: number): FieldRule =>
  fields =>
    damagedUnless(hasFields(fields, fieldCount) && fields[0]?.length === 32)

const rsa: FieldRule = fields => {
  const [exponent, modulus] = fields
  if (!hasFields(fields, 2) || !exponent || !modulus) return 'damaged'
  const [exponentBits, bits] = [countBits(exponent), countBits(modulus)]
  if (exponentBits < 2 || !isOdd(exponent) || bits === 0 || !isOdd(modulus) || bits > MAX_RSA_BITS) return 'damaged'
  return bits < MIN_RSA_BITS ? { rsaBits: bits } : null
}

/** RFC 4253 section 6.6, RFC 5656, RFC 8709; `sk-` types: OpenSSH's PROTOCOL.u2f, which appends the application. */
const fieldRules: ReadonlyMap<string, FieldRule> = new Map([
  ['ssh-ed25519', ed25519(1)],
  ['ecdsa-sha2-nistp256', ecdsa('nistp256', 65, 2)],
  ['ecdsa-sha2-nistp384', ecdsa('nistp384', 97, 2)],
  ['ecdsa-sha2-nistp521', ecdsa('nistp521', 133, 2)],
  ['ssh-rsa', rsa],
  ['sk-ssh-ed25519@openssh.com', ed25519(2)],
  ['sk-ecdsa-sha2-nistp256@openssh.com', ecdsa('nistp256', 65, 3)],
])

const sshKeyTypes: readonly string[] = [...fieldRules.keys()]

/** The type, base64 and an optional comment without control characters. */
export const SSH_KEY = withWhiteSpace(
  `(?:${sshKeyTypes.join('|').replaceAll('.', '\\.')})[ \\t]+[A-Za-z0-9+/]+={0,2}(?:[ \\t]+${TRIMMED_LINE})?`,
)

const findWireFormatError = (type: string, octets: Uint8Array): WireFormatError | null => {
  const [name, ...fields] = parseFields(octets) ?? []
  return toText(name) === type ? (fieldRules.get(type)?.(fields) ?? null) : 'damaged'
}

const lineParts = /^(\S+)[ \t]+(\S+)(?:[ \t]+(.*))?$/s

/** The trimmed line with one space between type, base64 and comment. */
export const canonicalSshKey = (text: string): string => {
  const [, type = '', base64 = '', comment = ''] = lineParts.exec(text.trim()) ?? []
  return type === '' ? text.trim() : [type, base64, comment].filter(part => part !== '').join(' ')
}

/** Decodes base64 as OpenSSH writes it: padded, no other characters, no unused bits (RFC 4648 section 3.5). */
const decodeBase64 = (base64: string): Uint8Array | null => {
  if (base64.length % 4 !== 0 || !/^[A-Za-z0-9+/]+={0,2}$/.test(base64)) return null
  const binary = atob(base64)
  return btoa(binary) === base64 ? Uint8Array.from(binary, letter => letter.charCodeAt(0)) : null
}

export const sshKeyRule =
  'sshPublicKey is required: one line as in ~/.ssh/id_ed25519.pub, with type, base64 and an optional comment.'

/**
 * Why a host should not accept the line as a public key, as a sentence that quotes nothing of it; null: valid. Only the
 * form and the size of the numbers are checked, so a well-formed weak key is not detected.
 */
export const sshKeyError = (line: string): string | null => {
  if (/PRIVATE KEY/.test(line)) {
    return 'sshPublicKey is a private key: send the public key (the .pub file), and rotate this key, because it has been disclosed.'
  }
  if (new TextEncoder().encode(line).length > MAX_KEY_BYTES) return 'sshPublicKey must not be longer than 8 KiB.'
  const [, type, base64 = '', comment = ''] = lineParts.exec(line) ?? []
  if (type === undefined) return sshKeyRule
  if (type === 'ssh-dss') return 'sshPublicKey is a DSA key, which OpenSSH no longer supports: send an Ed25519 key.'
  if (!sshKeyTypes.includes(type)) return `sshPublicKey must begin with its type, one of ${sshKeyTypes.join(', ')}.`
  const octets = decodeBase64(base64)
  const error = octets ? findWireFormatError(type, octets) : 'damaged'
  if (error === 'damaged') return `sshPublicKey is damaged: its base64 must contain exactly one ${type} key.`
  if (error) return `sshPublicKey is an RSA key of ${error.rsaBits} bits: send one of 2048 or more, or an Ed25519 key.`
  return isOneLine(comment) ? null : 'sshPublicKey must be one line without control characters.'
}
