import { tokensOf } from './domain/bearer-tokens.ts'

const utf8 = new TextEncoder()
/** No byte of UTF-8 is this one: it tells where a token ends. */
const END = 0xff

const inBytes = (token: string, width: number): { readonly bytes: Uint8Array; readonly isWhole: boolean } => {
  const bytes = new Uint8Array(width).fill(END)
  const { read } = utf8.encodeInto(token, bytes)
  return { bytes, isWhole: read === token.length }
}

/**
 * Whether a token is one of a comma-separated list. Bytes of equal length are compared, with every one of the list, so
 * that the time taken tells neither how much of a token was right nor which one it was.
 */
export const allowList = (csv: string | undefined): ((token: string) => boolean) => {
  const tokens = tokensOf(csv)
  const width = Math.max(0, ...tokens.map(token => utf8.encode(token).byteLength))
  const allowed = tokens.map(token => inBytes(token, width).bytes)
  return token => {
    const { bytes, isWhole } = inBytes(token, width)
    const matches = allowed.filter(one => crypto.subtle.timingSafeEqual(one, bytes)).length
    return isWhole && matches > 0
  }
}
