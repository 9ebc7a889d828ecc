import type { WitnessSettings } from '../settings.ts'
import { listAcceptedTokens } from './domain/token-list.ts'
import {
  findPolicy,
  type Grant,
  isExpired,
  parseTokenPolicies,
  type TokenPolicy,
  toFingerprint,
} from './domain/token-policies.ts'

/** The bearer of an accepted token. */
export interface Caller {
  /** The name of the token's policy, or its fingerprint. */
  readonly name: string
  readonly grant: Grant
}

export type Authentication =
  | { readonly kind: 'accepted'; readonly caller: Caller }
  /** An unknown token, by its fingerprint, or an expired one, by its name. */
  | { readonly kind: 'rejected'; readonly name: string }

const utf8 = new TextEncoder()
/** UTF-8 never contains this byte, so it marks the end of a token. */
const END = 0xff

const toBytes = (token: string, width: number): { readonly bytes: Uint8Array; readonly fits: boolean } => {
  const bytes = new Uint8Array(width).fill(END)
  const { read } = utf8.encodeInto(token, bytes)
  return { bytes, fits: read === token.length }
}

/** For arrays of equal length, in constant time. Web Crypto has no such function on every host. */
const isEqual = (a: Uint8Array, b: Uint8Array): boolean => {
  let difference = 0
  for (let at = 0; at < a.length; at += 1) difference |= (a[at] ?? 0) ^ (b[at] ?? 0)
  return difference === 0
}

/**
 * Finds a token in a list. Compares byte arrays of equal length, and always with every token of the list,
 * so that the timing reveals neither how much of a token was right nor which token matched. -1: the list does not have it.
 */
export const createAllowlist = (tokens: readonly string[]): ((token: string) => number) => {
  const width = Math.max(0, ...tokens.map(token => utf8.encode(token).byteLength))
  const allowed = tokens.map(token => toBytes(token, width).bytes)
  return token => {
    const { bytes, fits } = toBytes(token, width)
    const index = allowed.reduce((found, candidate, at) => (isEqual(candidate, bytes) ? at : found), -1)
    return fits ? index : -1
  }
}

const toDigest = async (token: string): Promise<string> => {
  const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', utf8.encode(token)))
  return [...digest].map(byte => byte.toString(16).padStart(2, '0')).join('')
}

/** Decides who the bearer of a token is. Computes the digest of an accepted token only once. */
export class TokenRegistry {
  readonly #findInAllowlist: (token: string) => number
  /** By position in the allow-list. */
  readonly #callers: (Caller | undefined)[] = []
  readonly #policies: readonly TokenPolicy[]
  /**
   * The tokens that have matched a policy: at most as many as there are policies. A map compares two texts only if their
   * hashes are equal, and the engine seeds the hash at random; so the timing reveals nothing that a client could use.
   */
  readonly #known = new Map<string, TokenPolicy>()

  constructor(settings: WitnessSettings) {
    this.#findInAllowlist = createAllowlist(listAcceptedTokens(settings.BEARER_TOKENS_CSV))
    this.#policies = parseTokenPolicies(settings.TOKEN_POLICIES).policies
  }

  /** A promise only if the token's digest is not known yet. */
  authenticate(token: string, now: number): Authentication | Promise<Authentication> {
    const index = this.#findInAllowlist(token)
    if (index >= 0) {
      const caller = this.#callers[index]
      return caller ? { kind: 'accepted', caller } : this.#identify(token, index)
    }
    const policy = this.#known.get(token)
    return policy ? this.#apply(policy, now) : this.#search(token, now)
  }

  async #identify(token: string, index: number): Promise<Authentication> {
    const caller: Caller = { name: toFingerprint(await toDigest(token)), grant: 'full' }
    this.#callers[index] = caller
    return { kind: 'accepted', caller }
  }

  async #search(token: string, now: number): Promise<Authentication> {
    const digest = await toDigest(token)
    const policy = findPolicy(this.#policies, digest)
    if (!policy) return { kind: 'rejected', name: toFingerprint(digest) }
    this.#known.set(token, policy)
    return this.#apply(policy, now)
  }

  #apply(policy: TokenPolicy, now: number): Authentication {
    const { name } = policy
    return isExpired(policy, now) ? { kind: 'rejected', name } : { kind: 'accepted', caller: { name, grant: policy } }
  }
}
