import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto'

/**
 * A token that only a request with the same Idempotency-Key can read. The key is in no table, so a dump does not contain
 * what it needs. A key that can be guessed protects nothing, because a dump allows any number of guesses.
 */
export interface SealedToken {
  /** Random for each row, so that two rows never have the same encryption key. */
  readonly salt: Buffer
  /** The nonce, the ciphertext and the tag of AES-256-GCM (NIST SP 800-38D). */
  readonly sealed: Buffer
}

const CIPHER = 'aes-256-gcm'
const KEY_BYTES = 32
const SALT_BYTES = 32
const NONCE_BYTES = 12
const TAG_BYTES = 16

/** Public and constant: the hash of a key must be the same in every process. */
const LOOKUP_SALT = Buffer.from('allocation-api idempotency-key v1')

/** HKDF (RFC 5869) with SHA-256. Different `info` values give independent results. */
const derive = (key: string, salt: Buffer, info: 'lookup' | 'seal'): Buffer =>
  Buffer.from(hkdfSync('sha256', key, salt, info, KEY_BYTES))

/** What the tables hold in place of an Idempotency-Key. It does not help to derive an encryption key. */
export const hashIdempotencyKey = (key: string): Buffer => derive(key, LOOKUP_SALT, 'lookup')

/** `keyHash` is the hash of `key`, which the caller needs anyway. */
export const sealToken = (key: string, keyHash: Buffer, token: string): SealedToken => {
  const random = randomBytes(SALT_BYTES + NONCE_BYTES)
  const [salt, nonce] = [random.subarray(0, SALT_BYTES), random.subarray(SALT_BYTES)]
  const cipher = createCipheriv(CIPHER, derive(key, salt, 'seal'), nonce, { authTagLength: TAG_BYTES })
  // Ties the sealed token to its row: copied to the row of another key, it cannot be opened.
  cipher.setAAD(keyHash)
  const ciphertext = Buffer.concat([cipher.update(token, 'utf8'), cipher.final()])
  return { salt, sealed: Buffer.concat([nonce, ciphertext, cipher.getAuthTag()]) }
}

/** Throws if the row was changed, or belongs to another key. */
export const openSealedToken = (key: string, keyHash: Buffer, { salt, sealed }: SealedToken): string => {
  const nonce = sealed.subarray(0, NONCE_BYTES)
  const decipher = createDecipheriv(CIPHER, derive(key, salt, 'seal'), nonce, { authTagLength: TAG_BYTES })
  decipher.setAAD(keyHash)
  decipher.setAuthTag(sealed.subarray(-TAG_BYTES))
  return decipher.update(sealed.subarray(NONCE_BYTES, -TAG_BYTES), undefined, 'utf8') + decipher.final('utf8')
}
