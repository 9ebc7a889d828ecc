import { createHmac, timingSafeEqual } from 'node:crypto'

/** Milliseconds for which a code is valid. Less than an unused session lives, because its row remembers a used code. */
export const SIGN_IN_CODE_MS = 5 * 60_000

/** When it was issued, and its MAC. No id of a session has a dot. */
const CODE = /^([1-9a-z][0-9a-z]{7,8})\.[\w-]{43}$/

/**
 * A code that starts one session in place of `token`, and reveals nothing about a random token. `issuedAt`: milliseconds
 * since the epoch.
 */
export const createSignInCode = (token: string, issuedAt: number): string =>
  `${issuedAt.toString(36)}.${createHmac('sha256', token).update(`sign-in code ${issuedAt}`).digest('base64url')}`

/** The token that the code was made of, and when; null if it is none of `tokens`. Whether it is still valid is not checked. */
export const readSignInCode = (
  code: string,
  tokens: readonly string[],
): { readonly token: string; readonly issuedAt: number } | null => {
  const issuedAt = Number.parseInt(CODE.exec(code)?.[1] ?? '', 36)
  if (Number.isNaN(issuedAt)) return null
  const [token] = tokens.filter(each =>
    timingSafeEqual(Buffer.from(createSignInCode(each, issuedAt)), Buffer.from(code)),
  )
  return token === undefined ? null : { token, issuedAt }
}
