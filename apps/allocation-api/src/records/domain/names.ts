import { asciiLowerCase } from '@pool/contract'
import { isAtOrBelow } from '../../dns/domain/rrset.ts'

/** RFC 1035 section 2.3.4. */
export const MAX_NAME_LENGTH = 253

/** Labels of 1 to 63, the first may be the wildcard. Escapes and Unicode have no normal form here: they are rejected. */
const LABEL = '[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?'
const NAME = new RegExp(`^(?:\\*\\.)?(?:${LABEL}\\.)*${LABEL}$`)

/** The form in which names are compared: in lower case, without the final dot. Null: it is not a name of a record. */
export const toRecordName = (text: string): string | null => {
  const name = asciiLowerCase(text).replace(/\.$/, '')
  return name.length <= MAX_NAME_LENGTH && NAME.test(name) ? name : null
}

/** What a client has sent, as an error shows it. */
export const quoteInput = (text: string): string => JSON.stringify(text.length > 60 ? `${text.slice(0, 60)}…` : text)

export const explainName = (text: string): string =>
  `${quoteInput(text)} is not the name of a record: use labels of a-z, 0-9, "-" and "_", "*" as the first one only, and xn--… for other letters.`

/** Of data that is not published: a tool can put a label of its own before a wildcard. */
const DATA_NAME = /^[a-z0-9_*.-]+$/

export const toDataName = (text: string): string | null => {
  const name = asciiLowerCase(text).replace(/\.$/, '')
  return name.length <= MAX_NAME_LENGTH && DATA_NAME.test(name) ? name : null
}

/** The name above. */
export const toParent = (name: string): string => name.slice(name.indexOf('.') + 1)

/** The names between `name` and `top`, without both, from the top. */
export const namesBetween = (name: string, top: string): string[] => {
  const names: string[] = []
  for (let above = toParent(name); above !== top && isAtOrBelow(above, top); above = toParent(above))
    names.unshift(above)
  return names
}

/**
 * Whether TXT records at `name`, which is below `fqdn`, are challenges of ACME: `_acme-challenge.X`, or
 * `_<label>._acme-challenge.X` (draft-ietf-acme-dns-account-label), with X at or below `fqdn`.
 */
export const isChallengeName = (name: string, fqdn: string): boolean => {
  const [first = '', second] = name.slice(0, -fqdn.length - 1).split('.')
  return first === '_acme-challenge' || (first.startsWith('_') && second === '_acme-challenge')
}
