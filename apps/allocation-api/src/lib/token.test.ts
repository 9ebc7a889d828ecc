import { createCipheriv, hash, hkdfSync, randomBytes, randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { createSalt, deriveToken, hashIdempotencyKey, openSealedToken } from './token.ts'

const key = 'k-8f14e45fceea167a5a36dedd4bea2543'
const lookupSalt = 'allocation-api idempotency-key v1'

test('the hash of a key is stable: stored keys must be found after an upgrade', () => {
  const keys = [
    ...Array.from({ length: 255 }, (_, i) => key.repeat(8).slice(0, i + 1)),
    ...Array.from({ length: 100 }, () => randomUUID()),
  ]
  for (const each of [...keys, ...keys.map(text => `operator ${text}`)]) {
    expect(hashIdempotencyKey(each)).toBe(
      Buffer.from(hkdfSync('sha256', each, lookupSalt, 'lookup', 32)).toString('hex'),
    )
  }
})

test.each(['é'.repeat(40), 'k'.repeat(513)])('a key that no client can send is not hashed in part: %s', text => {
  expect(() => hashIdempotencyKey(text)).toThrow(RangeError)
  expect(hashIdempotencyKey(key)).toHaveLength(64)
})

describe('the token of a result', () => {
  const salt = createSalt()

  test('is a UUID v4, stable for a key and a salt: replays must get it after an upgrade', () => {
    const token = deriveToken('key', '01'.repeat(32))
    const digits = hash('sha256', `\0\0\0\u0001keyallocation-api token v2${'01'.repeat(32)}`, 'hex').slice(0, 32)
    expect(token.replaceAll('-', '')).toBe(
      `${digits.slice(0, 12)}4${digits.slice(13, 16)}${token[19]}${digits.slice(17)}`,
    )
    expect(token).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
  })

  test.each([
    ['another key', `${key}x`, salt],
    ['another case', key.toUpperCase(), salt],
    ['no key', '', salt],
    ['another salt', key, createSalt()],
  ])('%s derives another one', (_, otherKey, otherSalt) => {
    expect(deriveToken(otherKey, otherSalt)).not.toBe(deriveToken(key, salt))
  })

  test('each result has its own salt', () => {
    expect(new Set(Array.from({ length: 1_000 }, createSalt)).size).toBe(1_000)
  })
})

test('a token that was sealed with schema 1 opens with its key, in its row, unless a byte was changed', () => {
  const token = randomUUID()
  const [salt, nonce] = [randomBytes(32), randomBytes(12)]
  const sealingKey = Buffer.from(hkdfSync('sha256', key, salt, 'seal', 32))
  const cipher = createCipheriv('aes-256-gcm', sealingKey, nonce).setAAD(Buffer.from(hashIdempotencyKey(key), 'hex'))
  const sealed = Buffer.concat([nonce, cipher.update(token, 'utf8'), cipher.final(), cipher.getAuthTag()])
  expect(openSealedToken(key, salt, sealed)).toBe(token)
  expect(() => openSealedToken(`${key}x`, salt, sealed)).toThrow()
  for (const index of sealed.keys()) {
    const changed = Buffer.from(sealed)
    changed.writeUInt8(sealed.readUInt8(index) ^ 1, index)
    expect(() => openSealedToken(key, salt, changed), String(index)).toThrow()
  }
})
