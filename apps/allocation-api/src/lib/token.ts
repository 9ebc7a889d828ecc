import { createDecipheriv, hash, hkdfSync, randomBytes, randomUUID } from 'node:crypto'

export interface SecretToken {
  /** A UUID v4. Only the client that it was created for may see it. */
  readonly token: string
  readonly tokenHash: Buffer
}

/** SHA-256 of a token: what tables and commands hold in its place. Case does not matter, as in every UUID (RFC 9562). */
export const hashToken = (token: string): Buffer => hash('sha256', token.toLowerCase(), 'buffer')

export const createToken = (token: string = randomUUID()): SecretToken => ({ token, tokenHash: hashToken(token) })

/** So that scanners of secrets find it. */
const RECORD_TOKEN_PREFIX = 'pdr_'

/** A token of a tenant's tools: 256 bits, in base64url. */
export const toRecordToken = (secret: Buffer): string => RECORD_TOKEN_PREFIX + secret.toString('base64url')

/** SHA-256 of a token of a tenant's tools. Case matters. */
export const hashRecordToken = (token: string): Buffer => hash('sha256', token, 'buffer')

const CIPHER = 'aes-256-gcm'
const KEY_BYTES = 32
const SALT_BYTES = 32
const NONCE_BYTES = 12
const TAG_BYTES = 16

/** Public and constant: the hash of a key must be the same in every process and every build. */
const LOOKUP_SALT = Buffer.from('allocation-api idempotency-key v1')

/** HKDF (RFC 5869) with SHA-256. Different `info` values give independent results. */
const derive = (key: string, salt: Buffer, info: 'lookup' | 'seal'): Buffer =>
  Buffer.from(hkdfSync('sha256', key, salt, info, KEY_BYTES))

/** What the tables hold in place of an Idempotency-Key. It does not help to derive a token. */
export const hashIdempotencyKey = (key: string): Buffer => derive(key, LOOKUP_SALT, 'lookup')

/** Each call of the system costs more than the bytes. None of them is used twice. */
const POOL_BYTES = 4_096
let pool = Buffer.alloc(0)

/** Hexadecimal. Random for each result, so that two results under one key never have the same token. */
export const createSalt = (): string => {
  if (pool.length < SALT_BYTES) pool = randomBytes(POOL_BYTES)
  const salt = pool.toString('hex', 0, SALT_BYTES)
  pool = pool.subarray(SALT_BYTES)
  return salt
}

const COUNTER = '\0\0\0\u0001'
const LABEL = 'allocation-api token v2'
const VARIANTS = '89ab'

/**
 * The token of a result, a UUID v4 that only a request with the same Idempotency-Key can derive: the key is in no table, so a
 * dump does not contain what it needs, and the salt is in no response. A key that can be guessed protects nothing, because a
 * dump allows any number of guesses. One-step key derivation with SHA-256 (NIST SP 800-56C, 4.1), of texts.
 */
export const deriveToken = (key: string, salt: string): string => {
  const hex = hash('sha256', COUNTER + key + LABEL + salt, 'hex')
  // With the version and the variant of RFC 9562, 5.4.
  const variant = VARIANTS[Number.parseInt(hex.charAt(16), 16) % VARIANTS.length]
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20, 32)}`
}

/** As `deriveToken`, of a token of a tenant's tools: 256 bits. */
export const deriveSecret = (key: string, salt: string): Buffer =>
  hash('sha256', `${COUNTER}${key}allocation-api record token v1${salt}`, 'buffer')

/**
 * The token of a result that a build with schema 1 stored, encrypted. Throws if the row was changed, or belongs to
 * another key.
 */
export const openSealedToken = (key: string, salt: Buffer, sealed: Buffer): string => {
  const nonce = sealed.subarray(0, NONCE_BYTES)
  const decipher = createDecipheriv(CIPHER, derive(key, salt, 'seal'), nonce, { authTagLength: TAG_BYTES })
  decipher.setAAD(hashIdempotencyKey(key))
  decipher.setAuthTag(sealed.subarray(-TAG_BYTES))
  return decipher.update(sealed.subarray(NONCE_BYTES, -TAG_BYTES), undefined, 'utf8') + decipher.final('utf8')
}
