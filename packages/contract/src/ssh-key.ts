import { sshKeyTypes, wireFault } from './ssh-wire.ts'
import { isOneLine } from './text.ts'

/** Room for an RSA key of 16384 bits and a long comment. */
const MOST_BYTES = 8_192

const parts = /^(\S+)[ \t]+(\S+)(?:[ \t]+(.*))?$/s

/** The line with one space between type, base64 and comment, and none around it. */
export const canonicalSshKey = (text: string): string => {
  const [, type = '', base64 = '', comment = ''] = parts.exec(text.trim()) ?? []
  return type === '' ? text.trim() : [type, base64, comment].filter(part => part !== '').join(' ')
}

/** The octets of base64 as OpenSSH writes it: padded, no other letters, no bits left over (RFC 4648 section 3.5). */
const octetsOf = (base64: string): Uint8Array | null => {
  if (base64.length % 4 !== 0 || !/^[A-Za-z0-9+/]+={0,2}$/.test(base64)) return null
  const binary = atob(base64)
  return btoa(binary) === base64 ? Uint8Array.from(binary, letter => letter.charCodeAt(0)) : null
}

export const sshKeyRule =
  'sshPublicKey is required: one line as in ~/.ssh/id_ed25519.pub, its type, its base64 and perhaps a comment.'

/**
 * Why a line is no public key that a host should let in, as a sentence that quotes nothing of it; null: it is one. Of a
 * key's numbers only form and length are looked at: a weak key of good form is not told.
 */
export const sshKeyFault = (line: string): string | null => {
  if (/PRIVATE KEY/.test(line)) {
    return 'sshPublicKey is a private key: send the public one (the .pub file), and use this one no more.'
  }
  if (new TextEncoder().encode(line).length > MOST_BYTES) return 'sshPublicKey must not be longer than 8 KiB.'
  const [, type, base64 = '', comment = ''] = parts.exec(line) ?? []
  if (type === undefined) return sshKeyRule
  if (type === 'ssh-dss') return 'sshPublicKey is a DSA key, which OpenSSH takes no more: send an Ed25519 key.'
  if (!sshKeyTypes.includes(type)) return `sshPublicKey must begin with its type, one of ${sshKeyTypes.join(', ')}.`
  const octets = octetsOf(base64)
  const fault = octets ? wireFault(type, octets) : 'damaged'
  if (fault === 'damaged') return `sshPublicKey is damaged: its base64 does not hold exactly one ${type} key.`
  if (fault) return `sshPublicKey is an RSA key of ${fault.rsaBits} bits: send one of 2048 or more, or an Ed25519 key.`
  return isOneLine(comment) ? null : 'sshPublicKey must be one line without control characters.'
}
