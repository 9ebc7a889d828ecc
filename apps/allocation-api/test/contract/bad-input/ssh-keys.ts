type Field = string | readonly number[]

/** Fields behind their lengths (RFC 4251 section 5), in base64. */
const wire = (...fields: readonly Field[]): string =>
  Buffer.concat(
    fields.flatMap(field => {
      const octets = Buffer.from(field as string)
      const length = Buffer.alloc(4)
      length.writeUInt32BE(octets.length)
      return [length, octets]
    }),
  ).toString('base64')

const octets = (length: number): readonly number[] => Array<number>(length).fill(7)
const ed25519 = `ssh-ed25519 ${wire('ssh-ed25519', octets(32))}`
const modulus = (bits: number): readonly number[] => [0, 0xc1, ...octets(bits / 8 - 1)]
const rsa = (bits: number): string => `ssh-rsa ${wire('ssh-rsa', [1, 0, 1], modulus(bits))}`

/** Behind the type: a length, and nothing of what it announces. */
const announced = (length: number): string => {
  const [, base64 = ''] = ed25519.split(' ')
  const blob = Buffer.from(base64, 'base64')
  blob.writeUInt32BE(length, 'ssh-ed25519'.length + 4)
  return `ssh-ed25519 ${blob.toString('base64')}`
}

export const goodSshKeys: readonly (readonly [rule: string, key: string])[] = [
  ['CRLF behind it, as Windows writes the file', `${ed25519} ops@acme\r\n`],
  ['RSA of 2048 bits', rsa(2_048)],
]

export const badSshKeys: readonly (readonly [rule: string, key: unknown])[] = [
  ['it is text', { type: 'ssh-ed25519' }],
  ['it is not empty', ' \r\n'],
  ['a private key', '-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjE=\n-----END OPENSSH PRIVATE KEY-----'],
  ['DSA', `ssh-dss ${wire('ssh-dss', octets(128), octets(20), octets(128), octets(128))}`],
  ['RSA of 1024 bits', rsa(1_024)],
  ['RSA of 32768 bits', rsa(32_768)],
  ['another type inside', `ssh-rsa ${wire('ssh-ed25519', octets(32))}`],
  ['a type that is a property of every object', `constructor ${wire('constructor', octets(32))}`],
  ['a length of nothing', announced(0)],
  ['a length that is one too large', announced(33)],
  ['a length of 4 GiB', announced(0xffff_ffff)],
  ['a field too many', `ssh-ed25519 ${wire('ssh-ed25519', octets(32), octets(1))}`],
  ['a certificate', `ssh-ed25519-cert-v01@openssh.com ${wire('ssh-ed25519-cert-v01@openssh.com', octets(32))}`],
  ['options in front', `no-pty,command="sh" ${ed25519}`],
  ['a comment sign in front', `# ${ed25519}`],
  ['two keys', `${ed25519}\n${ed25519}`],
  ['two keys with comments, over CRLF', `${ed25519} a\r\n${ed25519} b`],
  ['a base64 over two lines', ed25519.replace('IAcH', 'IA\ncH')],
  ['full-width base64', ed25519.replace('AAAA', '\uff21\uff21\uff21\uff21')],
  ['a no-break space between its parts, which sshd does not split at', ed25519.replace(' ', '\u00a0')],
  ['NUL in its comment', `${ed25519} a\u0000`],
  ['a terminal escape in its comment', `${ed25519} \u001b[31m`],
  ['a lone surrogate in its comment', `${ed25519} \ud800`],
  ['9 KiB', `${ed25519} ${'a'.repeat(9_216)}`],
]
