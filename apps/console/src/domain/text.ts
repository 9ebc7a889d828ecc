/** A number with its unit, which gets an s unless the number is one: `1 name`, `2,500 names`. */
export const formatCount = (count: number, unit: string): string =>
  `${count.toLocaleString('en')} ${unit}${count === 1 ? '' : 's'}`

/** The form of a verb for a number of things. */
export const pickVerb = (count: number, singular: string, plural: string): string => (count === 1 ? singular : plural)

const fieldLabels: Readonly<Record<string, string>> = {
  consoleLoadBalancerIP: 'The console address',
  ds: 'A DS record',
  loadBalancerHostname: 'The host name',
  loadBalancerIP: 'The address',
  loadBalancerIPv6: 'The IPv6 address',
  nameservers: 'The name servers',
  objectStorageRegion: 'The region of the object storage',
  orgEmail: 'The mail address',
  orgName: 'The organisation',
  providers: 'A provider',
  region: 'The region',
  sovereignFQDN: 'The domain',
  sovereignPoolDomain: 'The pool',
  sovereignSubdomain: 'The subdomain',
  sshPublicKey: 'The SSH key',
  subdomain: 'The subdomain',
}

/** A message of the contract, which begins with the name of a field of the API, with the label of the form instead. */
export const toFieldText = (message: string): string => message.replace(/^\w+/, name => fieldLabels[name] ?? name)

/**
 * Control characters, and characters that change the direction of text (Unicode UAX 9) or have no width. A terminal would
 * obey an escape sequence; a page would show text in another order than it is stored in.
 */
const INVISIBLE = /[\p{Cc}\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/gu

/** The abbreviations of the C0 control characters in Unicode, in their order. Few fonts have a legible symbol for them. */
const C0_NAMES =
  'NUL SOH STX ETX EOT ENQ ACK BEL BS TAB LF VT FF CR SO SI DLE DC1 DC2 DC3 DC4 NAK SYN ETB CAN EM SUB ESC FS GS RS US'.split(
    ' ',
  )

const toName = (character: string): string => {
  const code = character.codePointAt(0) ?? 0
  return `<${C0_NAMES[code] ?? `U+${code.toString(16).toUpperCase().padStart(4, '0')}`}>`
}

/** Makes every character of a text visible, and none of them effective: an escape character becomes `<ESC>`. */
export const toVisibleText = (text: string): string => text.replace(INVISIBLE, toName)
