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
const LOOKUP_SALT = 'allocation-api idempotency-key v1'

const BLOCK_BYTES = 64
const INNER = 0x36
const OUTER = 0x5c
/** More than the longest Idempotency-Key. */
const MAX_MESSAGE_BYTES = 512

/** HMAC (RFC 2104) with SHA-256 of ASCII texts. Its digests are texts too, by default with a character per byte. */
class Hmac {
  readonly #inner = Buffer.alloc(BLOCK_BYTES + MAX_MESSAGE_BYTES)
  readonly #outer = Buffer.alloc(BLOCK_BYTES + KEY_BYTES)

  /** `key`: with a character per byte, not longer than a block. */
  setKey(key: string): this {
    for (let i = 0; i < BLOCK_BYTES; i++) {
      const byte = i < key.length ? key.charCodeAt(i) : 0
      this.#inner[i] = byte ^ INNER
      this.#outer[i] = byte ^ OUTER
    }
    return this
  }

  digest(message: string, encoding: 'binary' | 'hex' = 'binary'): string {
    const bytes = this.#inner.write(message, BLOCK_BYTES)
    if (bytes !== message.length) throw new RangeError('a message of an HMAC must be short and ASCII')
    this.#outer.write(hash('sha256', this.#inner.subarray(0, BLOCK_BYTES + bytes), 'binary'), BLOCK_BYTES, 'binary')
    return hash('sha256', this.#outer, encoding)
  }
}

const extract = new Hmac().setKey(LOOKUP_SALT)
const expand = new Hmac()

/**
 * What the tables hold in place of an Idempotency-Key, hexadecimal: HKDF (RFC 5869) with SHA-256. It does not help to derive a
 * token. `hkdfSync` creates an object for each call, which costs more than all else that a key needs.
 */
export const hashIdempotencyKey = (key: string): string =>
  expand.setKey(extract.digest(key)).digest('lookup\u0001', 'hex')

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
  const decipher = createDecipheriv(CIPHER, Buffer.from(hkdfSync('sha256', key, salt, 'seal', KEY_BYTES)), nonce, {
    authTagLength: TAG_BYTES,
  })
  decipher.setAAD(Buffer.from(hashIdempotencyKey(key), 'hex'))
  decipher.setAuthTag(sealed.subarray(-TAG_BYTES))
  return decipher.update(sealed.subarray(NONCE_BYTES, -TAG_BYTES), undefined, 'utf8') + decipher.final('utf8')
}
