import { hash, randomUUID } from 'node:crypto'

export interface SecretToken {
  /** A UUID v4. Only the client that it was created for may see it. */
  readonly token: string
  readonly tokenHash: Buffer
}

/** SHA-256 of a token: what tables and commands hold in its place. Case does not matter, as in every UUID (RFC 9562). */
export const hashToken = (token: string): Buffer => hash('sha256', token.toLowerCase(), 'buffer')

export const createToken = (): SecretToken => {
  const token = randomUUID()
  return { token, tokenHash: hashToken(token) }
}
