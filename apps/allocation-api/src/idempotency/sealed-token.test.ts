import { createDecipheriv, hkdfSync, randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { hashIdempotencyKey, openSealedToken, type SealedToken, sealToken } from './sealed-token.ts'

const key = 'k-8f14e45fceea167a5a36dedd4bea2543'
const token = randomUUID()
const seal = () => sealToken(key, hashIdempotencyKey(key), token)
const open = (used: string, sealed: SealedToken) => openSealedToken(used, hashIdempotencyKey(used), sealed)

test('the same key opens the token', () => {
  expect(open(key, seal())).toBe(token)
})

test.each([
  ['another key', `${key}x`],
  ['another case', key.toUpperCase()],
  ['no key', ''],
])('%s does not', (_, other) => {
  expect(() => open(other, seal())).toThrow()
})

test('a changed salt, nonce, ciphertext or tag does not open', () => {
  const { salt, sealed } = seal()
  const flip = (bytes: Buffer, index: number) => {
    const changed = Buffer.from(bytes)
    changed.writeUInt8(changed.readUInt8(index) ^ 1, index)
    return changed
  }
  expect(() => open(key, { salt: flip(salt, 0), sealed })).toThrow()
  for (const index of sealed.keys()) {
    expect(() => open(key, { salt, sealed: flip(sealed, index) }), String(index)).toThrow()
  }
  expect(() => open(key, { salt, sealed: sealed.subarray(0, -1) })).toThrow()
})

test('each seal has its own salt and nonce', () => {
  const seals = Array.from({ length: 100 }, () => seal())
  for (const part of [(s: (typeof seals)[0]) => s.salt, (s: (typeof seals)[0]) => s.sealed.subarray(0, 12)]) {
    expect(new Set(seals.map(seal => part(seal).toString('hex'))).size).toBe(100)
  }
})

test('in the row of another key it does not open, even with the key', () => {
  expect(() => openSealedToken(key, hashIdempotencyKey(`${key}x`), seal())).toThrow()
})

describe('the format, computed apart from the module', () => {
  const lookupSalt = 'allocation-api idempotency-key v1'
  const hash = Buffer.from(hkdfSync('sha256', key, lookupSalt, 'lookup', 32))

  test('the hash of a key is stable: stored keys must be found after an upgrade', () => {
    expect(hashIdempotencyKey(key)).toEqual(hash)
    expect(hashIdempotencyKey('k').toString('hex')).toBe(
      Buffer.from(hkdfSync('sha256', 'k', lookupSalt, 'lookup', 32)).toString('hex'),
    )
    expect(hashIdempotencyKey(`${key}x`)).not.toEqual(hash)
  })

  test('AES-256-GCM under HKDF of key and salt, with the hash of the key as additional data', () => {
    const { salt, sealed } = seal()
    const decipher = createDecipheriv(
      'aes-256-gcm',
      Buffer.from(hkdfSync('sha256', key, salt, 'seal', 32)),
      sealed.subarray(0, 12),
    )
    decipher.setAAD(hash).setAuthTag(sealed.subarray(-16))
    expect(decipher.update(sealed.subarray(12, -16), undefined, 'utf8') + decipher.final('utf8')).toBe(token)
  })
})
