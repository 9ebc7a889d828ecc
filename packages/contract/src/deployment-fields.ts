import { asciiLowerCase, isHostName } from './names.ts'
import { isOneLine } from './text.ts'

/** Marks that turn the direction of text around (Unicode UAX 9): a name that has them reads as another. */
const turning = /[\u202a-\u202e\u2066-\u2069]/

/**
 * Not all letters and symbols show: the fillers of Hangul are letters (Unicode UAX 44, Default_Ignorable_Code_Point),
 * and the Braille pattern without dots is a symbol.
 */
const visible = /(?![\p{Default_Ignorable_Code_Point}\u2800])[\p{L}\p{N}\p{P}\p{S}]/u

/** 1 to 100 characters of any script, of which one at least can be seen. */
export const isOrgName = (text: string): boolean =>
  [...text].length <= 100 && isOneLine(text) && visible.test(text) && !turning.test(text)

/** The domain is lower-cased; the local part is its host's to read (RFC 5321 section 2.4). */
export const canonicalMailbox = (text: string): string => {
  const address = text.trim()
  const domainAt = address.lastIndexOf('@') + 1
  return address.slice(0, domainAt) + asciiLowerCase(address.slice(domainAt))
}

const dotString = /^[\w!#$%&'*+/=?^`{|}~-]+(?:\.[\w!#$%&'*+/=?^`{|}~-]+)*$/

/**
 * RFC 5321 section 4.1.2 mailbox without what nobody uses: quoted strings, address literals, domains of one label. At
 * most 64 octets before the @ (section 4.5.3.1.1), 254 in all, for the path with its brackets has 256. Whether somebody
 * reads it is not known.
 */
export const isMailbox = (address: string): boolean => {
  const at = address.lastIndexOf('@')
  const [local, domain] = [address.slice(0, Math.max(at, 0)), address.slice(at + 1)]
  return address.length <= 254 && local.length <= 64 && dotString.test(local) && isHostName(domain)
}
