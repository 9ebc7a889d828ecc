/** The first four groups of an IPv6 address as `node:net` writes it (RFC 5952), each without leading zeros. */
const prefixOf = (address: string): string => {
  const [plain = ''] = address.split('%')
  // A dotted quad at the end stands for two groups (RFC 4291 section 2.2).
  const [head = '', tail] = plain.replace(/\d+(?:\.\d+){3}$/, '0:0').split('::')
  const groups = (part: string): string[] => part.split(':').filter(group => group !== '')
  const [before, after] = [groups(head), groups(tail ?? '')]
  const zeros: string[] = Array(Math.max(0, 8 - before.length - after.length)).fill('0')
  return [...before, ...zeros, ...after].slice(0, 4).join(':')
}

/**
 * Who counts as one caller: an IPv4 address, or a network of 64 bits, of which a single host of IPv6 has all addresses
 * (RFC 6177). A caller without an address shares one budget with all such.
 */
export const callerKeyOf = (address: string | null): string => {
  if (address === null) return 'unknown'
  return address.includes(':') ? `${prefixOf(address)}::/64` : address
}
