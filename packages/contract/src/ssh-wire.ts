/**
 * The fields of a public key's wire form: each is a length of four octets and so many octets (RFC 4251 section 5,
 * `string` and `mpint` alike). Null: the octets are not such fields to the last one.
 */
const fieldsOf = (octets: Uint8Array): readonly Uint8Array[] | null => {
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

/** Bits of a positive `mpint` in its shortest form; 0 when it is none. */
const bitsOf = (mpint: Uint8Array): number => {
  const [first = 0, second = 0] = mpint
  const isNegative = first >= 0x80
  const isPadded = first === 0 && second < 0x80
  if (isNegative || isPadded) return 0
  const length = first === 0 ? mpint.length - 1 : mpint.length
  return length * 8 - (Math.clz32(first === 0 ? second : first) - 24)
}

const isOdd = (mpint: Uint8Array): boolean => ((mpint.at(-1) ?? 0) & 1) === 1

/** An uncompressed point (SEC 1 section 2.3.3), the only form that OpenSSH takes. */
const isPoint = (octets: Uint8Array, length: number): boolean => octets.length === length && octets[0] === 4

const asText = (octets: Uint8Array | undefined): string => String.fromCharCode(...(octets ?? []))

/** OpenSSH's own bounds: no RSA key of less is safe (NIST SP 800-131A), none of more is taken by OpenSSL. */
const RSA_BITS = { least: 2_048, most: 16_384 }

type Fields = readonly Uint8Array[]
/** What is wrong with the fields behind the type; null: nothing. */
type Rule = (fields: Fields) => 'damaged' | { readonly rsaBits: number } | null

const damagedUnless = (isGood: boolean) => (isGood ? null : 'damaged')
const count = (fields: Fields, wanted: number): boolean => fields.length === wanted && fields.every(f => f.length > 0)

const ecdsa =
  (curve: string, pointLength: number, fieldCount: number): Rule =>
  fields => {
    const [name, point] = fields
    const isWhole = count(fields, fieldCount) && point !== undefined && isPoint(point, pointLength)
    return damagedUnless(isWhole && asText(name) === curve)
  }

const ed25519 =
  (fieldCount: number): Rule =>
  fields =>
    damagedUnless(count(fields, fieldCount) && fields[0]?.length === 32)

const rsa: Rule = fields => {
  const [exponent, modulus] = fields
  if (!count(fields, 2) || !exponent || !modulus) return 'damaged'
  const [exponentBits, bits] = [bitsOf(exponent), bitsOf(modulus)]
  if (exponentBits < 2 || !isOdd(exponent) || bits === 0 || !isOdd(modulus) || bits > RSA_BITS.most) return 'damaged'
  return bits < RSA_BITS.least ? { rsaBits: bits } : null
}

/** RFC 4253 section 6.6, RFC 5656, RFC 8709; the `sk-` ones by OpenSSH's PROTOCOL.u2f, which adds the application. */
const rules: ReadonlyMap<string, Rule> = new Map([
  ['ssh-ed25519', ed25519(1)],
  ['ecdsa-sha2-nistp256', ecdsa('nistp256', 65, 2)],
  ['ecdsa-sha2-nistp384', ecdsa('nistp384', 97, 2)],
  ['ecdsa-sha2-nistp521', ecdsa('nistp521', 133, 2)],
  ['ssh-rsa', rsa],
  ['sk-ssh-ed25519@openssh.com', ed25519(2)],
  ['sk-ecdsa-sha2-nistp256@openssh.com', ecdsa('nistp256', 65, 3)],
])

export const sshKeyTypes: readonly string[] = [...rules.keys()]

/** What is wrong with the wire form of a key that is said to be of `type`, one of `sshKeyTypes`; null: nothing. */
export const wireFault = (type: string, octets: Uint8Array): ReturnType<Rule> => {
  const [name, ...fields] = fieldsOf(octets) ?? []
  return asText(name) === type ? (rules.get(type)?.(fields) ?? null) : 'damaged'
}
