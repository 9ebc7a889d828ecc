const KEY_BYTES = 16

/** 128 random bits in hexadecimal digits. `crypto.randomUUID` does not exist on pages that were loaded over plain HTTP. */
export const createIdempotencyKey = (): string =>
  Array.from(crypto.getRandomValues(new Uint8Array(KEY_BYTES)), byte => byte.toString(16).padStart(2, '0')).join('')
