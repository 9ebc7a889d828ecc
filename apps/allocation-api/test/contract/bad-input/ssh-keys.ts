type Field = string | readonly number[]

/** Encodes fields with their lengths (RFC 4251 section 5), in base64. */
const encodeFields = (...fields: readonly Field[]): string =>
  Buffer.concat(
    fields.flatMap(field => {
      const octets = Buffer.from(field as string)
      const length = Buffer.alloc(4)
      length.writeUInt32BE(octets.length)
      return [length, octets]
    }),
  ).toString('base64')

const octets = (length: number): readonly number[] => Array<number>(length).fill(7)
const ed25519 = `ssh-ed25519 ${encodeFields('ssh-ed25519', octets(32))}`
const modulus = (bits: number): readonly number[] => [0, 0xc1, ...octets(bits / 8 - 1)]
const rsa = (bits: number): string => `ssh-rsa ${encodeFields('ssh-rsa', [1, 0, 1], modulus(bits))}`

/** A key whose second field announces another length than it has. */
const withAnnouncedLength = (length: number): string => {
  const [, base64 = ''] = ed25519.split(' ')
  const blob = Buffer.from(base64, 'base64')
  blob.writeUInt32BE(length, 'ssh-ed25519'.length + 4)
  return `ssh-ed25519 ${blob.toString('base64')}`
}

export const validSshKeys: readonly (readonly [rule: string, key: string])[] = [
  ['a trailing CRLF, as in a file written on Windows', `${ed25519} ops@acme\r\n`],
  ['RSA of 2048 bits', rsa(2_048)],
]

export const invalidSshKeys: readonly (readonly [rule: string, key: unknown])[] = [
  ['not a string', { type: 'ssh-ed25519' }],
  ['blank', ' \r\n'],
  ['a private key', '-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjE=\n-----END OPENSSH PRIVATE KEY-----'],
  ['DSA', `ssh-dss ${encodeFields('ssh-dss', octets(128), octets(20), octets(128), octets(128))}`],
  ['RSA of 1024 bits', rsa(1_024)],
  ['RSA of 32768 bits', rsa(32_768)],
  ['another type inside', `ssh-rsa ${encodeFields('ssh-ed25519', octets(32))}`],
  ['a type that is a property of every object', `constructor ${encodeFields('constructor', octets(32))}`],
  ['an announced length of 0', withAnnouncedLength(0)],
  ['an announced length that is too large by one', withAnnouncedLength(33)],
  ['an announced length of 4 GiB', withAnnouncedLength(0xffff_ffff)],
  ['an additional field', `ssh-ed25519 ${encodeFields('ssh-ed25519', octets(32), octets(1))}`],
  ['a certificate', `ssh-ed25519-cert-v01@openssh.com ${encodeFields('ssh-ed25519-cert-v01@openssh.com', octets(32))}`],
  ['leading options', `no-pty,command="sh" ${ed25519}`],
  ['a leading comment sign', `# ${ed25519}`],
  ['two keys', `${ed25519}\n${ed25519}`],
  ['two keys with comments, over CRLF', `${ed25519} a\r\n${ed25519} b`],
  ['base64 on two lines', ed25519.replace('IAcH', 'IA\ncH')],
  ['full-width base64', ed25519.replace('AAAA', '\uff21\uff21\uff21\uff21')],
  ['a no-break space as a separator, which sshd does not accept', ed25519.replace(' ', '\u00a0')],
  ['NUL in the comment', `${ed25519} a\u0000`],
  ['a terminal escape in the comment', `${ed25519} \u001b[31m`],
  ['a lone surrogate in the comment', `${ed25519} \ud800`],
  ['9 KiB', `${ed25519} ${'a'.repeat(9_216)}`],
]
