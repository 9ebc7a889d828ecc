/** The address in dotted decimals, each without leading zeros. */
export const isIpv4 = (text: string): boolean => /^(?:(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(?:\.(?!$)|$)){4}$/.test(text)

/** The parser of URLs knows the syntax of IPv6 addresses (RFC 4291 section 2.2). */
export const isIpv6 = (text: string): boolean => text.includes(':') && URL.canParse(`http://[${text}]`)

/** The addresses that begin with the same bits (RFC 4632 section 3.1). */
export interface Network {
  readonly address: string
  /** How many bits, up to 32 or 128. */
  readonly prefix: number
  readonly family: 'ipv4' | 'ipv6'
}

/** A network in CIDR notation, or a single address. Null: neither. */
export const parseNetwork = (text: string): Network | null => {
  const [, address = '', bits] = /^([0-9a-f:.]+)(?:\/(\d{1,3}))?$/i.exec(text) ?? []
  const family = isIpv4(address) ? 'ipv4' : isIpv6(address) ? 'ipv6' : null
  if (family === null) return null
  const maxPrefix = family === 'ipv4' ? 32 : 128
  const prefix = bits === undefined ? maxPrefix : Number(bits)
  return prefix <= maxPrefix ? { address, prefix, family } : null
}
